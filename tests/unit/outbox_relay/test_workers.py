"""Workers: the slots that all destinations share, of which none takes the last."""

import asyncio
from collections import Counter

import pytest

from outbox_relay.route import Flight, Route
from outbox_relay.workers import Workers
from tests.unit.outbox_relay.test_routes import claimed, way
from twiceshy_contract.destinations import LogDestination

pytestmark = pytest.mark.anyio


class Shift:
    """Workers whose sends end when they are let go."""

    def __init__(self, slots: int, routes: int) -> None:
        self.routes = [Route(way(number, LogDestination(concurrency=100))) for number in range(routes)]
        self.under_way: Counter[int] = Counter()
        self.workers = Workers(slots, self._fly, lambda *_: None)
        self.workers.able = routes
        self._ends: dict[int, list[asyncio.Event]] = {number: [] for number in range(routes)}

    async def _fly(self, flight: Flight, route: Route, _: asyncio.Task[None]) -> None:
        ended = asyncio.Event()
        self._ends[route.way.id].append(ended)
        self.under_way[route.way.id] += 1
        await ended.wait()
        self.under_way[route.way.id] -= 1
        flight.is_over = True

    async def sends(self, number: int, count: int) -> None:
        """Let so many messages of a route wait, and their workers come."""
        route, ends = self.routes[number], asyncio.get_running_loop().time() + 30
        route.waiting += [Flight(route, claimed(each), None, ends - 30, ends) for each in range(count)]
        self.workers.stand_ready(route)
        await _all_done()

    async def end(self, number: int) -> None:
        """End one send of a route."""
        self._ends[number].pop().set()
        await _all_done()

    async def close(self) -> None:
        """End all sends."""
        for route in self.routes:
            route.waiting.clear()
        for ended in [each for ends in self._ends.values() for each in ends]:
            ended.set()
        await self.workers.ended(5)


async def _all_done() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_route_that_never_ends_takes_no_slot_that_is_kept_for_others() -> None:
    shift = Shift(slots=16, routes=3)
    await shift.sends(0, 50)
    assert shift.under_way == {0: 14}
    await shift.sends(1, 3)
    await shift.sends(2, 1)
    assert shift.under_way == {0: 14, 1: 1, 2: 1}
    await shift.close()


async def test_a_route_whose_slot_is_free_again_goes_on_before_those_that_have_many() -> None:
    shift = Shift(slots=16, routes=2)
    await shift.sends(0, 50)
    await shift.sends(1, 3)
    assert shift.under_way == {0: 15, 1: 1}
    await shift.end(1)
    assert shift.under_way == {0: 15, 1: 1}
    await shift.end(1)
    await shift.end(1)
    assert +shift.under_way == {0: 15}
    await shift.end(0)
    assert +shift.under_way == {0: 15}
    await shift.close()
