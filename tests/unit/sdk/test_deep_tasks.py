"""What an agent does on an outcome, six tasks deep, is done before the next outcome comes, in a replay too."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
import uvloop

from tests.unit.sdk.replays import RUN, recorded_async, unsent
from twiceshy import Run
from twiceshy._replay import replay_async

DEEP = 6
Nest: TypeAlias = Callable[[Run, int], Awaitable[str]]
LOOPS: dict[str, Any] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
guard = unsent()


async def told(name: str, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return name


async def in_groups(run: Run, deep: int) -> str:
    if not deep:
        return await run.custom("ask", told, "deep", 0.005)
    async with asyncio.TaskGroup() as group:
        inner = group.create_task(in_groups(run, deep - 1))
    return inner.result()


async def gathered(run: Run, deep: int) -> str:
    if not deep:
        return await run.custom("ask", told, "deep", 0.005)
    (value,) = await asyncio.gather(gathered(run, deep - 1))
    return value


async def timed(run: Run, deep: int) -> str:
    if not deep:
        return await run.custom("ask", told, "deep", 0.005)
    return await asyncio.wait_for(asyncio.ensure_future(timed(run, deep - 1)), 60)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("nest", [in_groups, gathered, timed])
def test_an_outcome_six_tasks_deep_arrives_before_the_next_one_again(nest: Nest, loop: str) -> None:
    async def agent() -> list[str]:
        came: list[str] = []

        async def one(call: Awaitable[str]) -> None:
            came.append(await call)

        async with guard.run(RUN) as run:
            await asyncio.gather(one(nest(run, DEEP)), one(run.custom("ask", told, "flat", 0.05)))
        return came

    value, recording = recorded_async(agent, LOOPS[loop])
    assert value == ["deep", "flat"]
    again = LOOPS[loop](replay_async(recording, agent))
    assert (again.value, again.divergences) == (value, ())
