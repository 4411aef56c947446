"""Routes: the destinations as this relay stands to them, each with its open sink and what is under way there.

A route follows its destination: one that was changed sends nothing more by its old settings than what is under way,
and one that is paused, disabled or removed nothing at all.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from guard.logs import logger
from guard.ports.relay import Again, Ask, Way
from outbox_relay.route import OpenSink, Route
from outbox_relay.sinks.base import Sink

_log = logger("guard.relay")
_CLOSE_SECONDS: Final = 5.0
_KEPT: Final = 8
"""One slot of so many is kept for destinations that have nothing under way."""


class Routes:
    """All destinations, by their ids."""

    def __init__(self, open_sink: OpenSink, concurrency: int) -> None:
        self._open_sink = open_sink
        self._concurrency = concurrency
        self._order: deque[int] = deque()
        self._closing: set[asyncio.Task[None]] = set()
        self.by_id: dict[int, Route] = {}

    def follow(self, ways: Iterable[Way]) -> list[Again]:
        """Take destinations as they are now; return what is given back because of it."""
        given: list[Again] = []
        seen = {way.id: way for way in ways}
        for id_, way in seen.items():
            if id_ not in self.by_id:
                self.by_id[id_] = Route(way)
                self._order.append(id_)
        for id_, route in self.by_id.items():
            given += _followed(route, seen.get(id_))
        return given

    def open(self, now: float) -> None:
        """Open what may be opened, after closing what was changed and has nothing under way any more."""
        for route in [route for route in self.by_id.values() if route.next is not None and not route.is_sending]:
            sink, route.sink = route.sink, None
            if sink is not None:
                self._close(route.way.name, sink)
            assert route.next is not None  # noqa: S101  chosen so above, and nobody takes it back
            route.way, route.next = route.next, None
            if route.way.state == "removed":
                del self.by_id[route.way.id]
                self._order.remove(route.way.id)
        for route in self.by_id.values():
            if route.next is None:
                route.open(self._open_sink, now)

    async def close(self) -> None:
        """Close all sinks."""
        for route in self.by_id.values():
            sink, route.sink = route.sink, None
            if sink is not None:
                self._close(route.way.name, sink)
        if self._closing:
            await asyncio.wait(self._closing)

    def wake(self, ids: Iterable[int] | None = None) -> None:
        """Let these destinations be asked again, else all."""
        for id_ in self.by_id if ids is None else ids:
            if id_ in self.by_id:
                self.by_id[id_].is_hungry = True

    @property
    def in_flight(self) -> int:
        """How many slots are taken."""
        return sum(len(route.flights) for route in self.by_id.values())

    @property
    def has_changes(self) -> bool:
        """Whether a destination waits for its sends to end before it is opened anew."""
        return any(route.next is not None and not route.is_sending for route in self.by_id.values())

    @property
    def able(self) -> int:
        """How many destinations may be sent to."""
        return sum(route.may_claim for route in self.by_id.values())

    def asks(self) -> list[Ask]:
        """Ask for what could be begun at once, fairly: where not all get what they want, all take turns.

        Those that have nothing under way come first, and some slots are kept for those that want nothing now: however
        many slots others take and never give back, there is one for each of them.
        """
        wanting = [route for route in self._in_turn() if route.is_hungry and route.may_claim and route.free > 0]
        if not wanting:
            return []
        sending = [route for route in self.by_id.values() if route.flights]
        idle = self.able - sum(route.may_claim for route in {*sending, *wanting})
        most = max(1, self._concurrency // len({*sending, *wanting}))
        taken = min(self._concurrency // _KEPT, idle) + sum(route.taken(most) for route in sending)
        extra = self._concurrency // _KEPT
        wanting.sort(key=_is_sending)
        asks: list[Ask] = []
        for number, route in enumerate(wanting):
            left = self._concurrency - taken
            more = max(1, left // (len(wanting) - number)) if left > 0 else 0
            if not more and not route.flights and extra > 0:
                more, extra = 1, extra - 1
            slots = min(route.free, round((route.taken(most) + more) * (1 + route.ahead)) - len(route.flights))
            if slots > 0:
                taken += min(more, slots)
                asks.append(route.ask(slots))
        if len(asks) < len(wanting):
            self._order.rotate(-len(asks))
        return asks

    def _close(self, name: str, sink: Sink) -> None:
        closing = asyncio.create_task(_close(name, sink))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _in_turn(self) -> list[Route]:
        return [self.by_id[id_] for id_ in self._order]


def _followed(route: Route, way: Way | None) -> list[Again]:
    """Let a route follow its destination; None: it is removed."""
    if way is None:
        way = Way(
            id=route.way.id,
            tenant=route.way.tenant,
            name=route.way.name,
            version=route.way.version,
            state="removed",
            settings=route.way.settings,
            breaker="closed",
            is_open=False,
        )
    if way.state == "removed" or way.version != route.way.version:
        route.next = way
        return route.give_back()
    route.next = None
    route.way = way
    return route.give_back() if way.state != "active" else []


async def _close(name: str, sink: Sink) -> None:
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await sink.close()
    except Exception as error:  # noqa: BLE001  a sink that cannot be closed is done with all the same
        _log.warning("sink_not_closed", destination=name, reason=repr(error))


def _is_sending(route: Route) -> bool:
    return route.is_sending
