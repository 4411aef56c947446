"""Messages in lanes for brokers that are killed while a relay sends, and what must be found at a broker afterwards."""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal
from uuid import UUID

from guard.ports.store import Store
from outbox_relay.networks import networks_of
from outbox_relay.reaching import opener
from outbox_relay.relay import Relay
from outbox_relay.settings import RelaySettings
from outbox_relay.sinks.base import Delivered, Outgoing, Reached, Result, Sink, Unknown
from tests.contract.given import TENANT
from tests.contract.given_outbox import row, stage
from tests.integration.relaying import running, until
from twiceshy_contract.destinations import Destination

LANES: Final = 10
PATIENCE: Final = 300 if "SOAK" in os.environ else 60
_AT_ONCE: Final = 100
_QUICK: Final = RelaySettings(shortest_poll=0.05, longest_poll=0.1, refresh_seconds=0.05)
_OPEN: Final = opener(networks_of("127.0.0.0/8"), {})
_PERHAPS: Final = ("unknown", "expired")
"""What a try came to that may have arrived."""

Arrival = tuple[str, str]
"""The identity and the body of a message, as a broker holds them."""
Act = Callable[[], object]


class Watch:
    """Opens destinations with their real sinks, and sees what becomes of every send."""

    def __init__(self) -> None:
        self.arrived: set[str] = set()
        self.failed = 0
        self.unknown = 0
        self._changed = asyncio.Condition()

    def open(self, name: str, settings: Destination) -> Sink:
        """Open a destination."""
        return _Watched(_OPEN(name, settings), self)

    async def see(self, outgoing: Outgoing, result: Result) -> None:
        """Count a result."""
        async with self._changed:
            if isinstance(result, Delivered):
                self.arrived.add(outgoing.identity)
            else:
                self.failed += 1
                self.unknown += isinstance(result, Unknown)
            self._changed.notify_all()

    async def arrivals(self, count: int) -> None:
        """Wait until so many messages have arrived."""
        await self._until(lambda: len(self.arrived) >= count)

    async def trouble(self, before: int) -> None:
        """Wait until more sends have failed than before."""
        await self._until(lambda: self.failed > before)

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(holds)


class _Watched:
    def __init__(self, sink: Sink, watch: Watch) -> None:
        self._sink = sink
        self._watch = watch

    @property
    def capability(self) -> Literal["deduplicates", "sends_blindly"]:
        return self._sink.capability

    async def send(self, outgoing: Outgoing) -> Result:
        result = await self._sink.send(outgoing)
        await self._watch.see(outgoing, result)
        return result

    async def check(self) -> Reached:
        return await self._sink.check()

    async def close(self) -> None:
        await self._sink.close()


async def stage_lanes(store: Store, settings: Destination, count: int, form: str = "{}", **other: Any) -> None:
    """Declare a destination, and stage so many messages for it in lanes; a body is a lane and a number, in a form."""
    record, _ = await store.destinations.declare(TENANT, "there", settings)
    for first in range(0, count // LANES, _AT_ONCE):
        for lane in range(LANES):
            effect = first * LANES + lane + 1
            rows = [
                row(effect, record.place.id, f"lane-{lane}", place, body=form.format(body).encode(), **other)
                for place, body in enumerate(_bodies(lane, count)[first : first + _AT_ONCE])
            ]
            await stage(store, effect, *rows)


async def deliver(store: Store, weather: Callable[[Watch], Awaitable[None]]) -> Watch:
    """Deliver all by one relay, through some weather."""
    watch = Watch()
    async with running(Relay(store.relay, watch.open, _QUICK, lambda: 0.0)):
        await weather(watch)
        await all_sent(store)
    return watch


def interrupting(count: int, times: int, end: Act, begin: Act) -> Callable[[Watch], Awaitable[None]]:
    """Return weather: each time when another part of all has arrived, something ends; once noticed, it begins again."""

    async def weather(watch: Watch) -> None:
        for turn in range(1, times + 1):
            await watch.arrivals(count * turn // (times + 1))
            failed = watch.failed
            await asyncio.to_thread(end)
            await watch.trouble(failed)
            await asyncio.to_thread(begin)

    return weather


async def nothing(_: Watch) -> None:
    """Let all go well."""


async def all_sent(store: Store) -> None:
    """Wait until nothing is left to be sent."""
    await few_left(store, 0)


async def few_left(store: Store, count: int) -> None:
    """Wait until only so many messages are left to be sent."""

    async def are_few() -> bool:
        backlogs = await store.relay.backlogs()
        return sum(backlog.pending + backlog.in_flight for backlog in backlogs.values()) <= count

    await until(are_few, PATIENCE)


async def check_nothing_stands(store: Store) -> None:
    """Check that no message waits for a person."""
    backlogs = (await store.relay.backlogs()).values()
    assert sum(backlog.dead + backlog.unknown + backlog.parked for backlog in backlogs) == 0


def check_lanes(arrivals: Sequence[Arrival], count: int) -> None:
    """Check that nothing was lost, and that each lane arrived in its order."""
    first = list(dict.fromkeys(body for _, body in arrivals))
    for lane in range(LANES):
        assert [body for body in first if body.startswith(f"lane-{lane} ")] == _bodies(lane, count)
    assert len(first) == count


def check_once(arrivals: Sequence[Arrival], count: int) -> None:
    """Check that nothing arrived twice."""
    assert len(arrivals) == len(set(arrivals)) == count


async def check_duplicates_are_counted(store: Store, arrivals: Sequence[Arrival], count: int) -> None:
    """Check that what arrived twice carries one identity, and had so many tries that may have arrived."""
    assert len(set(arrivals)) == count
    for (identity, body), times in Counter(arrivals).items():
        if times == 1:
            continue
        found = await store.outbox.get(TENANT, UUID(identity.partition(".")[0]))
        assert found is not None
        perhaps = [line for line in found[1] if line.result in _PERHAPS]
        assert times <= 1 + len(perhaps), f"{body} arrived {times} times"


def _bodies(lane: int, count: int) -> list[str]:
    return [f"lane-{lane} {number}" for number in range(count // LANES)]
