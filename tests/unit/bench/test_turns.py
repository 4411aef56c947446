"""A turn counts whole calls; a stampede is one execution and nothing else."""

import asyncio
from contextlib import nullcontext

import pytest

from bench.failure import BadAnswer
from bench.load import Grant
from bench.stampede import Answered, waits
from bench.turns import Call, Callers, Turn


def answered(decision: str, at: float) -> Answered:
    return Answered(Grant(decision=decision, key="k", fence=1), "attempt", at)


def test_the_rate_is_calls_by_seconds() -> None:
    assert Turn(calls=500, seconds=2.5, milliseconds=()).per_second == 200


async def test_no_number_comes_twice_in_all_turns_of_all_callers() -> None:
    numbers: list[int] = []

    async def call(number: int) -> None:
        numbers.append(number)
        await asyncio.sleep(0)

    callers = Callers(lambda _: nullcontext(call))
    first = await callers.turn(3, 0.01)
    second = await callers.turn(3, 0.01)
    assert sorted(numbers) == list(range(first.calls + second.calls))
    assert len(first.milliseconds) == first.calls


async def test_a_call_that_has_begun_is_waited_for_and_counted() -> None:
    release = asyncio.Event()

    async def call(_: int) -> None:
        await release.wait()

    turn = asyncio.ensure_future(Callers(lambda _: nullcontext(call)).turn(4, 0.0001))
    asyncio.get_running_loop().call_later(0.01, release.set)
    assert (await turn).calls == 4


async def test_every_caller_is_set_up_once_a_turn() -> None:
    opened: list[int] = []

    async def call(_: int) -> None:
        await asyncio.sleep(0)

    def open_one(index: int) -> nullcontext[Call]:
        opened.append(index)
        return nullcontext(call)

    await Callers(open_one).turn(3, 0.001)
    assert opened == [0, 1, 2]


async def test_a_call_that_fails_ends_the_turn() -> None:
    async def call(_: int) -> None:
        raise BadAnswer("status 500")

    with pytest.raises(ExceptionGroup):
        await Callers(lambda _: nullcontext(call)).turn(2, 1)


def test_a_waiters_time_counts_from_the_commits_answer() -> None:
    late, early = waits([answered("execute", 1.0), answered("replay", 2.25), answered("replay", 1.99)], 2.0)
    assert (late, early) == (250, 0)


@pytest.mark.parametrize("decisions", [("replay", "replay"), ("execute", "execute", "replay")])
def test_a_stampede_without_exactly_one_execution_is_no_figure(decisions: tuple[str, ...]) -> None:
    with pytest.raises(BadAnswer, match="begins of one key"):
        waits([answered(decision, 1.0) for decision in decisions], 1.0)
