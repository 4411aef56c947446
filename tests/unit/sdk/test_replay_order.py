"""Long and wide runs replay with work that grows with their length, whatever the order of their calls."""

import asyncio
import cProfile
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.replays import RUN, unsent
from twiceshy import Recording, Run
from twiceshy._replay import replay, replay_async
from twiceshy._replayed import Replayed
from twiceshy._script import Order

guard = unsent()
SMALL, LARGE = 200, 1600
MOST = 12
"""How many times the work eight times as many calls may make; what looks at all of them for each makes 64 times."""


async def value_of(number: int) -> int:
    raise AssertionError(f"{number} really ran")


def at_once(count: int) -> Recording:
    """Return the log of calls that were made together, and whose outcomes came the last first."""
    log = Writing(RUN)
    intents = [log.asked("custom", "value", {"number": number}) for number in range(count)]
    for number, intent in reversed(list(enumerate(intents))):
        log.gave(intent, number)
    return log.recording()


def one_by_one(count: int) -> Recording:
    log = Writing(RUN)
    for number in range(count):
        log.call("custom", "value", {"number": number}, number)
    return log.recording()


def concurrent(count: int) -> Callable[[], Any]:
    async def agent() -> list[int]:
        async with guard.run(RUN) as run:
            return list(await asyncio.gather(*(run.custom("value", value_of, number) for number in range(count))))

    return agent


def with_clocks(count: int) -> Callable[[], Any]:
    def agent() -> list[int]:
        with guard.run(RUN) as run:
            for _ in range(count):
                run.now()
            return [_asked(run, number) for number in range(count)]

    return agent


def _asked(run: Run, number: int) -> int:
    def value(number: int) -> int:
        raise AssertionError(f"{number} really ran")

    return int(run.custom("value", value, number))


def work(recording: Recording, agent: Callable[[], Any], mode: Any) -> tuple[int, Replayed]:
    """Replay, and return how many functions were called for it, beside what came of it."""
    with cProfile.Profile() as profile:
        again = replay(recording, agent, mode=mode)
    return sum(entry.callcount for entry in profile.getstats()), again


@pytest.mark.parametrize(
    ("record", "agent", "mode"),
    [(at_once, concurrent, "full"), (at_once, concurrent, "retest"), (one_by_one, with_clocks, "retest")],
)
def test_eight_times_as_many_calls_make_about_eight_times_the_work(
    record: Callable[[int], Recording], agent: Callable[[int], Callable[[], Any]], mode: str
) -> None:
    few, _ = work(record(SMALL), agent(SMALL), mode)
    many, again = work(record(LARGE), agent(LARGE), mode)
    assert (again.value, again.is_same) == (list(range(LARGE)), True)
    assert many < MOST * few


async def test_a_call_that_is_cancelled_as_the_replay_stops_ends_too() -> None:
    log = Writing(RUN)
    log.call("custom", "value", {"number": 1}, 1)
    first, second = (log.asked("custom", "value", {"number": number}) for number in (2, 3))
    log.gave(second, 3)
    log.gave(first, 2)

    async def agent() -> None:
        async with guard.run(RUN) as run:
            await run.custom("value", value_of, 1)
            waiting = asyncio.create_task(run.custom("value", value_of, 2))
            await asyncio.sleep(0)
            try:
                await run.custom("value", value_of, 4)
            finally:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    again = await asyncio.wait_for(replay_async(log.recording(), agent), 10)
    assert [(one.class_, one.seq) for one in again.differences] == [("arguments", 4)]


def due(order: Order, *intents: int) -> tuple[int | None, list[bool]]:
    """Return what is due, and of these whether each may be given."""
    return order.due, [order.is_due(intent) for intent in intents]


def test_in_the_free_order_the_first_of_the_record_that_is_there_is_due() -> None:
    order = Order(at_once(3).events)  # the outcomes of 3, 2 and 1 came in this order
    order.free()
    assert due(order) == (None, [])
    order.enter(1)
    order.enter(2)
    assert due(order, 2, 1) == (2, [True, False])
    order.enter(3)
    assert due(order, 3, 2, 1) == (3, [True, False, False])
    order.gave(2)
    order.gave(3)
    assert due(order, 1) == (1, [True])
    assert order.forget([])
    assert due(order, 1) == (None, [True])


def test_in_the_recorded_order_nothing_is_due_before_the_calls_before_it_are_entered() -> None:
    order = Order(at_once(2).events)
    order.enter(2)
    assert due(order, 1, 2) == (None, [False, False])
    order.enter(1)
    assert due(order, 1, 2) == (2, [False, True])
    order.gave(2)
    assert due(order, 1) == (1, [True])


def test_calls_are_taken_by_what_they_are_alike_in_the_order_of_the_record() -> None:
    order = Order(one_by_one(4).events)
    first, *_ = [key for _, key in order.left()]
    assert order.take(first) == 1
    assert (order.take_like(first[:3]), order.take_like(first[:2])) == (3, 5)
    assert [intent for intent, _ in order.left()] == [7]
    assert (order.take_like(("", "custom", "other")), order.take(first)) == (None, None)
    assert (order.take_like(first[:3]), order.take_like(first[:2])) == (7, None)
