"""Dispatch: continuous slots. Every message is sent on its own, and none waits for another one's answer.

A worker sends one message after another, and another worker stands ready as soon as one has to wait: a sink that
answers at once costs no task a message, and one that does not takes as many as it has slots. A lane is one worker's,
and its next message is started only when the one before has arrived. What a sink does not end in time is ended here.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, Literal

from guard.core.effects import Duration
from guard.logs import logger
from guard.ports.relay import Again, Claimed, Done, Settlement, Verdict
from outbox_relay.clock import DatabaseClock
from outbox_relay.delivery import WAIT, Judged, Tried, judge, printable, stopped
from outbox_relay.measures import Measures
from outbox_relay.outgoing import outgoing
from outbox_relay.route import Flight, Route, again, give_back
from outbox_relay.sinks.base import Delivered, Result, Retryable, Unknown
from outbox_relay.workers import Workers

Started = Verdict | Literal["lost", "away"]
"""What came of starting a message that was claimed behind others: it is no longer ours, or the store is away."""
Start = Callable[[int, Duration], Awaitable[tuple[Started, float]]]
"""Starts a message; says besides until when its lease surely lasts, by the loop's clock."""
_log = logger("guard.relay")


class Dispatch:
    """What is under way. `results` are what is to be settled; `stir` is called when there is something new.

    `adrift` is what was sent and cannot be settled: its lease ends.
    """

    def __init__(
        self, start: Start, slots: int, jitter: Callable[[], float], measures: Measures, stir: Callable[[], None]
    ) -> None:
        self._start = start
        self._jitter = jitter
        self._measures = measures
        self._stir = stir
        self._loop = asyncio.get_running_loop()
        self.workers: Final = Workers(slots, self._fly_until_ended, self.return_late)
        self.clock: Final = DatabaseClock()
        self.results: list[Settlement] = []
        self.results_since = 0.0
        self.held: dict[int, Flight] = {}
        self.adrift: set[int] = set()

    def launch(self, claimed: Iterable[Claimed], routes: Mapping[int, Route], ends: float) -> None:
        """Send what was claimed: the messages of a lane one after another, all others at once.

        `ends` is until when their lease surely lasts, by the loop's clock.
        """
        answered = self._loop.time()
        lanes: dict[tuple[int, str], Flight] = {}
        touched: set[Route] = set()
        for message in sorted(claimed, key=_by_id):
            route = routes.get(message.destination)
            if route is None:
                self._add(Again(id=message.id, delay=WAIT))
                continue
            flight = None if message.lane is None else lanes.get((message.destination, message.lane))
            if flight is None:
                flight = Flight(route, message, None if message.lane is None else deque(), answered, ends)
                if message.lane is not None:
                    lanes[message.destination, message.lane] = flight
                route.flights.add(flight)
                route.waiting.append(flight)
                touched.add(route)
            elif flight.rest is not None:
                flight.rest.append(message)
            self._hold(message.id, flight)
        for route in touched:
            self.workers.stand_ready(route)

    def settled(self, settlements: Iterable[Settlement]) -> None:
        """Let go of what was settled."""
        for settlement in settlements:
            self.held.pop(settlement.id, None)

    def renewed(self, ids: Iterable[int], ends: float) -> None:
        """Note until when the lease of these messages surely lasts now."""
        for id_ in ids:
            flight = self.held.get(id_)
            if flight is not None and flight.current.id == id_:
                flight.ends = max(flight.ends, ends)

    def lost(self, ids: Iterable[int]) -> None:
        """Send nothing more of what is no longer under the lease: what lies behind it in its lane goes back."""
        for id_ in ids:
            flight = self.held.get(id_)
            if flight is None:
                continue
            self.settle(give_back(flight))
            if flight in flight.route.waiting:
                self._drop(flight)

    def settle(self, settlements: Iterable[Settlement]) -> None:
        """Add to what is to be settled."""
        for settlement in settlements:
            self._add(settlement)

    def end_overdue(self, now: float, overrun: float, routes: Iterable[Route]) -> None:
        """End every send that has taken longer than its sink was to allow."""
        for route in routes:
            longest = route.way.settings.timeout_seconds + overrun
            for flight in [each for each in route.flights if each.since is not None and now - each.since > longest]:
                self._end(flight, f"no answer within {longest:g} seconds")

    def return_late(self, route: Route, now: float) -> None:
        """Give back what was claimed and has not been begun in time: whether it may be sent is to be asked anew."""
        late: list[Flight] = []
        while route.waiting and not route.waiting[0].is_fresh(now):
            late.append(route.waiting.popleft())
        for flight in late:
            self._give(flight, again(flight.current))
            self._land(flight)
        if late:
            route.fell_behind()

    def last_end(self, now: float, slack: float, routes: Iterable[Route]) -> float:
        """Say when the last send will have had its time, and so much besides."""
        ends = (
            (flight.since or now) + route.way.settings.timeout_seconds + slack
            for route in routes
            for flight in route.flights
        )
        return max(ends, default=now)

    async def end_all(self, routes: Iterable[Route]) -> None:
        """End every send, because the relay stops: nobody knows what becomes of them."""
        for route in routes:
            for flight in list(route.flights):
                self._end(flight, None)
        await self.workers.ended(1)

    def _hold(self, id_: int, flight: Flight) -> None:
        before = self.held.get(id_)
        if before is not None:  # its lease had run out: whoever sends it still was overtaken by us ourselves
            self._overtaken(id_, before)
        self.held[id_] = flight

    def _overtaken(self, id_: int, flight: Flight) -> None:
        self._measures.fenced(1)
        _log.warning("message_overtaken", destination=flight.route.way.name, row=id_)
        self.lost((id_,))
        self.results = [settlement for settlement in self.results if settlement.id != id_]

    def _drop(self, flight: Flight) -> None:
        """Forget what waits to be sent: it is others' now, or its lease will say so."""
        flight.route.waiting.remove(flight)
        flight.route.flights.discard(flight)
        self.held.pop(flight.current.id, None)

    async def _fly_until_ended(self, flight: Flight, route: Route, worker: asyncio.Task[None]) -> None:
        try:
            await self._fly(flight, route)
        except asyncio.CancelledError:
            if not flight.is_ended:
                raise
        except Exception:  # noqa: BLE001  what cannot even be judged is left to its lease, and its slot is free
            _log.error("message_not_judged", message=str(flight.current.message), exc_info=True)
            self.held.pop(flight.current.id, None)
            self.adrift.add(flight.current.id)
            self._land(flight)
        while flight.is_ended and worker.cancelling():
            worker.uncancel()  # the send was ended, not the worker

    async def _fly(self, flight: Flight, route: Route) -> None:
        """Send a message, and where it has a lane, those behind it, as long as each one arrives."""
        verdict: Verdict | None = flight.current.verdict
        while verdict is not None:
            if verdict != "send":
                arrived = self._not_sent(flight, verdict)
            elif not flight.has_time(self._loop.time()):
                self._give(flight, again(flight.current))
                break
            else:
                result = await self._attempt(flight, route)
                if flight.is_over:
                    return
                arrived = isinstance(result, Delivered)
                self._judge(flight, result)
            if not arrived or not flight.rest:
                break
            verdict = await self._next(flight, route)
        self._land(flight)

    async def _attempt(self, flight: Flight, route: Route) -> Result:
        message, sink = flight.current, route.sink
        flight.since = began = self._loop.time()
        route.begins()
        try:
            if sink is None:
                return Retryable(why="its destination is not open")
            return await sink.send(outgoing(message, route.way.name, self.clock.at(began)))
        except Exception as error:  # noqa: BLE001  a sink that breaks its promise stops nobody else
            _log.error("sink_failed", destination=route.way.name, message=str(message.message), exc_info=True)
            return Unknown(why=printable(f"the sink failed: {error!r}"))
        finally:
            flight.since = None
            route.took(self._loop.time() - began)

    async def _next(self, flight: Flight, route: Route) -> Verdict | None:
        """Begin with the next message of a lane; None where it is no longer to be sent by us."""
        assert flight.rest  # noqa: S101  asked only where there is one
        flight.current = flight.rest.popleft()
        id_ = flight.current.id
        started, flight.ends = await self._start(id_, route.lease)
        if flight.is_over:
            return None
        if started == "lost":
            self.held.pop(id_, None)
            return None
        if started == "away" or flight.rest is None:  # None: the destination was changed, or the relay is to stop
            self._give(flight, again(flight.current))
            return None
        return started

    def _not_sent(self, flight: Flight, verdict: Verdict) -> bool:
        """Settle a message whose effect no longer wants it sent, or does not know; say whether the next may go."""
        id_ = flight.current.id
        if verdict == "withdrawn":
            self._give(flight, Done(id=id_, over="withdrawn", note="its effect was taken back", counts=False))
            return True
        self._give(flight, Again(id=id_, delay=WAIT, note="its effect may be taken back"))
        return False

    def _judge(self, flight: Flight, result: Result) -> None:
        route = flight.route
        judged = judge(result, _tried(flight), route.way.settings, self._jitter())
        route.hearing.add(judged)
        self._rule(flight, judged)

    def _rule(self, flight: Flight, judged: Judged) -> None:
        route, message = flight.route, flight.current
        self._measures.tried(route.way.name, judged)
        self._log(judged, message)
        if isinstance(judged.settlement, Again) and not judged.settlement.delay:
            route.is_hungry = True
        self._give(flight, judged.settlement)

    def _log(self, judged: Judged, message: Claimed) -> None:
        if judged.note is not None:
            _log.warning(
                "message_not_delivered",
                destination=message.name,
                message=f"{message.message}.{message.epoch}",
                outcome=judged.outcome,
                number=message.attempts + 1,
                reason=judged.note,
            )

    def _give(self, flight: Flight, settlement: Settlement) -> None:
        """Hand a settlement on, unless the message is another flight's by now."""
        if self.held.get(settlement.id) is flight:
            self._add(settlement)

    def _add(self, settlement: Settlement) -> None:
        if not self.results:
            self.results_since = self._loop.time()
            self._stir()
        self.results.append(settlement)

    def _land(self, flight: Flight) -> None:
        """Free the slot; a lane may have more than was claimed."""
        flight.is_over = True
        if flight.current.lane is not None:
            flight.route.is_hungry = True
            self.settle(give_back(flight))
        flight.route.flights.discard(flight)
        self._stir()

    def _end(self, flight: Flight, why: str | None) -> None:
        """End a send because of its receiver, or (None) because the relay stops, of which nothing is to be learnt."""
        if flight.is_over:
            return
        if flight.since is None:
            self._give(flight, again(flight.current))
        elif why is None:
            self._rule(flight, stopped(_tried(flight), flight.route.way.settings))
        else:
            self._judge(flight, Unknown(why=why))
        self._land(flight)
        if flight.worker is not None:
            flight.is_ended = True
            flight.worker.cancel()


def _by_id(message: Claimed) -> int:
    return message.id


def _tried(flight: Flight) -> Tried:
    message = flight.current
    return Tried(
        id=message.id,
        number=message.attempts + 1,
        in_lane=message.lane is not None,
        repeatable=flight.route.repeatable,
    )
