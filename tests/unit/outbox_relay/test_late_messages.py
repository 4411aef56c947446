"""What was claimed and is not begun in time is given back; a relay that stops learns nothing of a destination."""

import asyncio

import pytest

from guard.core.effects import Duration
from guard.ports.relay import Again
from outbox_relay.sinks.base import Result
from tests.integration.relaying import OK
from tests.unit.outbox_relay.test_dispatch import Desk, back, behind, claimed, done

pytestmark = pytest.mark.anyio


def now() -> float:
    return asyncio.get_running_loop().time()


def hanging() -> tuple[Desk, asyncio.Future[Result]]:
    """Return a desk with one slot, whose first send takes until it is told to end."""
    first: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    desk = Desk(lambda _: first if len(desk.sink.sent) == 1 else OK, concurrency=1)
    desk.route.repeatable = True
    for _ in range(200):
        desk.route.took(0.001)
    return desk, first


async def test_what_waits_behind_a_receiver_that_hangs_is_given_back_and_nothing_more_is_claimed_ahead() -> None:
    desk, first = hanging()
    assert desk.route.ahead == 8
    desk.launch(claimed(1), claimed(2), claimed(3, "a"), behind(4))
    await desk.sink.came.wait()
    desk.dispatch.return_late(desk.route, now() + 0.2)
    assert desk.dispatch.results == []
    desk.dispatch.return_late(desk.route, now() + 0.26)
    assert (desk.route.ahead, desk.route.is_hungry) == (0, True)
    first.set_result(OK)
    assert await desk.settled() == [back(2), back(3), back(4), done(1)]
    assert desk.sink.bodies == ["1"]


async def test_what_waited_too_long_is_given_back_by_the_worker_that_comes_to_it() -> None:
    desk, first = hanging()
    desk.launch(claimed(1), claimed(2))
    await desk.sink.came.wait()
    desk.route.waiting[0].answered -= 0.26
    first.set_result(OK)
    assert await desk.settled() == [done(1), back(2)]
    assert desk.sink.bodies == ["1"]


async def test_what_is_never_begun_in_time_may_wait_longer_each_time_until_something_is_begun() -> None:
    desk = Desk()
    waits = []
    for _ in range(5):
        waits.append(desk.route.patience)
        desk.route.fell_behind()
    assert waits == [0.25, 0.5, 1.0, 2.0, 2.0]
    await desk.send(claimed(1))
    assert desk.route.patience == 0.25


async def test_nothing_is_begun_that_may_outlive_its_lease() -> None:
    desk = Desk()
    desk.dispatch.launch([claimed(1), claimed(2, "a"), behind(3)], {1: desk.route}, now() + 14.9)
    assert await desk.settled() == [back(1), back(2), back(3)]
    assert desk.sink.sent == []


async def test_nothing_of_a_lane_is_begun_that_may_outlive_its_lease() -> None:
    desk = Desk()
    desk.launch(claimed(1, "a"), behind(2), behind(3))
    desk.ends = now() + 14.9
    assert await desk.settled() == [done(1), back(2), back(3)]
    assert desk.sink.bodies == ["1"]


async def test_a_lease_that_is_kept_lasts_longer() -> None:
    desk, first = hanging()
    desk.launch(claimed(1), claimed(2))
    await desk.sink.came.wait()
    desk.route.waiting[0].ends = now() + 1
    desk.dispatch.renewed([2], now() + 20)
    first.set_result(OK)
    assert await desk.settled() == [done(1), done(2)]


async def test_a_relay_that_stops_blames_no_destination_and_spends_no_try_on_what_may_be_sent_again() -> None:
    desk, _ = hanging()
    desk.launch(claimed(1))
    await desk.sink.came.wait()
    await desk.dispatch.end_all([desk.route])
    note = "the relay stopped before an answer came"
    assert await desk.settled() == [Again(id=1, delay=Duration(0), note=note)]
    assert desk.route.hearing.is_empty


async def test_a_drain_lasts_as_long_as_what_is_under_way_may_take() -> None:
    desk, _ = hanging()
    assert desk.dispatch.last_end(100.0, 1, [desk.route]) == 100
    desk.launch(claimed(1))
    await desk.sink.came.wait()
    (flight,) = desk.route.flights
    assert desk.dispatch.last_end(100.0, 1, [desk.route]) == (flight.since or 0) + 15 + 1
