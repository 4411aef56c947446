"""The relay: it claims what is due, sends it, and settles what came of it, for ever.

A claim and the settling of what was sent before are one turn at the database, and no transaction is open while a
message is sent. Whatever a relay knows it keeps until it is written; what it has under a lease and never hears of
again is taken back by others when the lease has run out.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID, uuid4

from guard.core.effects import SECOND
from guard.logs import logger
from guard.ports.relay import Ask, Claimed, RelayStore, Settlement
from guard.ports.store import StoreUnavailable
from outbox_relay.dispatch import Dispatch
from outbox_relay.leases import Leases
from outbox_relay.measures import Measures
from outbox_relay.reporting import report
from outbox_relay.route import OpenSink, Route
from outbox_relay.routes import Routes
from outbox_relay.settings import RelaySettings
from outbox_relay.settling import settle_apart
from outbox_relay.starter import Starter
from outbox_relay.upkeep import Upkeep
from outbox_relay.wakeup import Wakeup

_log = logger("guard.relay")
_MOST_SETTLED: Final = 1000
_MANY: Final = 100
"""So many at once are hardly all there is."""
_FEW: Final = 64
"""So many destinations are asked at once; of more it is looked first which of them have anything."""
_SHORTEST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0
_WATCH_SECONDS: Final = 0.1


class Relay:
    """One relay over one store, made within the event loop that it works in."""

    def __init__(
        self,
        store: RelayStore,
        open_sink: OpenSink,
        settings: RelaySettings | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._settings = settings or RelaySettings()
        self._loop = asyncio.get_running_loop()
        self._lease: UUID = uuid4()
        self._stirred = asyncio.Event()
        self.measures: Final = Measures()
        self._routes = Routes(open_sink, self._settings.concurrency)
        self._starter = Starter(store, self._lease)
        self._dispatch = Dispatch(
            self._starter.start, self._settings.concurrency, jitter, self.measures, self._stirred.set
        )
        self._leases = Leases(store, self._lease, self._dispatch)
        self._upkeep = Upkeep(store, self.measures, self._settings)
        self._wakeup = Wakeup(self._look, jitter, self._settings.shortest_poll, self._settings.longest_poll)
        self._jitter = jitter
        self._unsettled: list[Settlement] = []
        self._is_doubtful = False
        self._is_look_due = False
        self._pause = _SHORTEST_PAUSE
        self._away_until = 0.0
        self._refresh_at = 0.0
        self._stop_at: float | None = None

    async def run(self) -> None:
        """Relay until `stop` is called; then end what is under way, settle it, and return."""
        async with self._store.listening(self._wakeup.ring):
            self._wakeup.start()
            upkeep = asyncio.create_task(self._upkeep.run())
            watch = asyncio.create_task(self._watch())
            try:
                await self._pump(for_ever=True)
            finally:
                self._wakeup.stop()
                for task in (upkeep, watch):
                    task.cancel()
                await asyncio.gather(upkeep, watch, return_exceptions=True)
                await self.close()

    async def run_once(self) -> None:
        """Send all that is due now, settle it, and return. Raises StoreUnavailable where nothing can be begun."""
        await self._upkeep.reap()
        await self._refresh()
        self._routes.wake()
        watch = asyncio.create_task(self._watch())
        try:
            await self._pump(for_ever=False)
            await self._report([route for route in self._routes.by_id.values() if not route.hearing.is_empty])
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    def stop(self) -> None:
        """Claim nothing more, and let `run` return once what is under way is settled."""
        if self._stop_at is None:
            slack, routes = self._settings.overrun_seconds + 2 * _WATCH_SECONDS, self._routes.by_id.values()
            drain, now = self._settings.drain_seconds, self._loop.time()
            self._stop_at = self._dispatch.last_end(now, slack, routes) if drain is None else now + drain
            for route in self._routes.by_id.values():
                self._dispatch.settle(route.give_back())
            self._stirred.set()

    async def close(self) -> None:
        """Give back all connections of sinks."""
        await self._starter.close()
        await self._routes.close()

    def _look(self) -> None:
        if len(self._routes.by_id) <= _FEW:
            self._routes.wake()
        else:
            self._is_look_due = True
        self._stirred.set()

    async def _pump(self, *, for_ever: bool) -> None:
        """Take turns while there is anything to claim or to settle; else wait until there is."""
        while True:
            self._stirred.clear()
            if self._is_done(for_ever=for_ever):
                return
            try:
                await self._tend()
                asks = self._asks()
                if self._is_turn_due(asks):
                    await self._turn(asks)
                    continue
            except StoreUnavailable as error:
                self._be_away(error)
            except Exception:  # noqa: BLE001  a relay that ended would leave all that comes later undelivered
                _log.error("relay_failed", exc_info=True)
                self._away_until = self._loop.time() + _LONGEST_PAUSE
            if not self._is_done(for_ever=for_ever):
                await self._wait()

    def _is_done(self, *, for_ever: bool) -> bool:
        is_all_told = not self._unsettled and not self._dispatch.results and not self._leases.is_unheard
        is_idle = is_all_told and self._routes.in_flight == 0
        if self._stop_at is not None:
            if is_idle:
                return True
            left = len(self._unsettled) + len(self._dispatch.results)
            if self._loop.time() < self._stop_at + _LONGEST_PAUSE:
                return False
            _log.error("relay_stopped_unsettled", count=left)
            return True
        is_news = any(route.has_urgent_news for route in self._routes.by_id.values())
        return is_idle and not for_ever and not is_news and not self._asks() and self._loop.time() >= self._away_until

    async def _tend(self) -> None:
        """Do what must come before the next claim: keep leases, tell of breakers, follow the destinations."""
        now = self._loop.time()
        if now < self._away_until:
            return
        if self._leases.is_unheard:
            await self._leases.give_back_unheard()
            self._routes.wake()
        if self._is_look_due:
            due = await self._store.due()
            self._is_look_due = False
            self._routes.wake(due)
        if now >= self._leases.renew_at:
            await self._leases.renew(self._loop.time())
        urgent = [route for route in self._routes.by_id.values() if route.has_urgent_news]
        is_due = now >= self._refresh_at
        if is_due:
            urgent = [route for route in self._routes.by_id.values() if not route.hearing.is_empty]
        if urgent:
            await self._report(urgent)
        if is_due:
            await self._refresh()
        elif self._routes.has_changes:
            self._routes.open(now)

    async def _report(self, routes: Sequence[Route]) -> None:
        if await report(self._store, routes):
            self._refresh_at = min(self._refresh_at, self._loop.time() + self._settings.refresh_seconds / 4)

    async def _refresh(self) -> None:
        asked = self._loop.time()
        at = await self._store.now()
        self._dispatch.clock.tell(at, asked, self._loop.time())
        ways = await self._store.ways()
        now = self._loop.time()
        self._refresh_at = now + self._settings.refresh_seconds
        self._dispatch.settle(self._routes.follow(ways))
        self._routes.open(now)
        self._dispatch.workers.able = self._routes.able
        self.measures.stand(tuple(ways))

    def _asks(self) -> list[Ask]:
        is_away = self._loop.time() < self._away_until
        return [] if self._stop_at is not None or is_away or self._unsettled else self._routes.asks()

    def _is_turn_due(self, asks: Sequence[Ask]) -> bool:
        now = self._loop.time()
        if now < self._away_until:
            return False
        results = self._dispatch.results
        if self._unsettled or (asks and not results):
            return True
        if not results:
            return False
        if len(results) >= self._settings.flush_size or self._routes.in_flight == 0:
            return True
        is_running_dry = any(self._routes.by_id[ask.destination].is_running_dry for ask in asks)
        return is_running_dry or now - self._dispatch.results_since >= self._settings.flush_seconds

    async def _turn(self, asks: Sequence[Ask]) -> None:
        """Settle what was sent, and claim as much as there is room for."""
        results = self._dispatch.results
        batch = self._unsettled + results[:_MOST_SETTLED]
        self._unsettled, self._dispatch.results = batch, results[_MOST_SETTLED:]
        self._dispatch.results_since = began = self._loop.time()
        asked = [self._routes.by_id[ask.destination] for ask in asks]
        for route in asked:
            route.is_hungry = False  # what is heard of from now on may come too late for this claim
        length = self._leases.length(asked)
        try:
            turn = await self._store.turn(self._lease, length, batch, asks)
        except StoreUnavailable:
            self._is_doubtful = self._is_doubtful or bool(batch)
            self._leases.is_unheard |= bool(asks)
            raise
        except Exception as error:
            self._leases.is_unheard |= bool(asks)
            _log.error("turn_failed", settlements=len(batch), exc_info=True)
            if not batch:
                raise StoreUnavailable(str(error)) from error
            await self._settle_apart(batch)  # one row that cannot be written keeps back no other
            return
        self._unsettled = []
        self._pause = _SHORTEST_PAUSE
        self._note_fenced(turn.fenced)
        self._dispatch.settled(batch)
        self._leases.slowness.took(self._loop.time() - began)
        self._take(turn.claimed, asks, began + length / SECOND)
        self.measures.turned(len(turn.claimed), self._loop.time() - began, self._routes.in_flight)

    async def _settle_apart(self, batch: Sequence[Settlement]) -> None:
        rest = list(batch)
        while rest:
            fenced = await settle_apart(self._store, self._lease, rest[0])
            self._dispatch.settled(rest[:1])
            if fenced is None:
                self._dispatch.adrift.add(rest[0].id)
            else:
                self._note_fenced(fenced)
            rest = rest[1:]
            self._unsettled = rest

    def _note_fenced(self, fenced: Sequence[int]) -> None:
        is_doubtful, self._is_doubtful = self._is_doubtful, False
        if not fenced:
            return
        if is_doubtful:
            self.measures.repeated(len(fenced))
        else:
            self.measures.fenced(len(fenced))
        _log.warning("results_fenced", count=len(fenced), rows=list(fenced[:20]), may_be_written=is_doubtful)
        self._dispatch.lost(fenced)

    def _take(self, claimed: Sequence[Claimed], asks: Sequence[Ask], ends: float) -> None:
        """Begin what was claimed under a lease that `ends`; who gave all that was asked for may have more."""
        given = Counter(message.destination for message in claimed if message.is_first)
        is_cut = len(claimed) >= _MANY
        for ask in asks:
            taken = given[ask.destination]
            if taken >= ask.slots or (is_cut and taken):
                self._routes.by_id[ask.destination].is_hungry = True
        if not claimed:
            return
        self._wakeup.worked()
        self._leases.took(claimed, self._routes.by_id, self._loop.time())
        self._dispatch.launch(claimed, self._routes.by_id, ends)
        if self._stop_at is not None:
            for route in self._routes.by_id.values():
                self._dispatch.settle(route.give_back())

    def _be_away(self, error: Exception) -> None:
        """Leave the store alone for a while; nothing more is claimed, and nothing is forgotten."""
        self._away_until = self._loop.time() + self._pause * (0.5 + self._jitter() / 2)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        _log.warning("store_unavailable", unsettled=len(self._unsettled), reason=str(error))

    async def _wait(self) -> None:
        """Wait until something is new, or the next thing is due."""
        until = [max(self._away_until, min(self._leases.renew_at, self._refresh_at))]
        if self._dispatch.results:
            until.append(max(self._away_until, self._dispatch.results_since + self._settings.flush_seconds))
        if self._unsettled or self._leases.is_unheard:
            until.append(self._away_until)
        if self._stop_at is not None:
            until.append(self._stop_at)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(min(until)):
                await self._stirred.wait()

    async def _watch(self) -> None:
        """End what takes too long, and everything once a relay that is to stop has waited long enough."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            now = self._loop.time()
            routes = self._routes.by_id.values()
            for route in routes:
                self._dispatch.return_late(route, now)
            self._dispatch.end_overdue(now, self._settings.overrun_seconds, routes)
            if self._stop_at is not None and now >= self._stop_at:
                await self._dispatch.end_all(routes)
