"""Concurrent agents do in a replay what they did, on whatever event loop."""

import asyncio
import contextvars
import random
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import uvloop

from tests.unit.sdk.replays import RUN, InMemory, recorded, recorded_async, unsent
from twiceshy import Recording, Run
from twiceshy._replay import replay, replay_async
from twiceshy._replayed import Replayed
from twiceshy._replaying import replaying
from twiceshy_contract.events import Delivery, Event, Intent

AGENTS = 150
SECONDS = 10.0
"""When a thread that waits for another one gives up."""
LOOPS = {"asyncio": asyncio.run, "uvloop": uvloop.run}
guard = unsent()
_weather = random.Random()  # noqa: S311 - how long a provider takes


async def provider(number: int) -> int:
    await asyncio.sleep(_weather.random() * 0.002)
    if number % 7 == 3:
        raise ValueError(f"no {number}")
    return number * 3


class RandomAgent:
    """An agent that does what its seed says, and reacts to which call is done first."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    async def __call__(self) -> tuple[list[int], int]:
        self._chance = random.Random(self.seed)  # noqa: S311 - what the agent is
        self._state, self._trace = self.seed, list[int]()
        self._begun: dict[asyncio.Future[int], int] = {}
        async with guard.run(RUN) as run:
            for _ in range(3):
                await self._fan_out(run)
                run.now()
                self._state = (self._state + int(run.random() * 1000)) % 10007
        return self._trace, self._state

    async def _fan_out(self, run: Run) -> None:
        fan = range(self._chance.randint(2, 8))
        pending = {self._begin(self._two(run, (self._state * k + k) % 11)) for k in fan}
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for future in self._in_order(done):
                result = self._result(future)
                self._trace.append(result)
                self._state = (self._state * 31 + result) % 10007
                if result % 3 == 0 and len(self._trace) < 40:
                    pending = pending | {self._begin(run.custom("late", provider, self._state % 13))}
                if result % 5 == 0 and pending:
                    pending = pending - {await self._cancelled(pending)}

    async def _two(self, run: Run, number: int) -> int:
        value = await run.custom("first", provider, number)
        return value + (await run.custom("second", provider, value % 5) if value % 2 else 0)

    async def _cancelled(self, pending: set[asyncio.Future[int]]) -> asyncio.Future[int]:
        victim = self._in_order(pending)[0]
        victim.cancel()
        with suppress(asyncio.CancelledError, ValueError):
            await victim
        return victim

    def _begin(self, call: Any) -> asyncio.Future[int]:
        future: asyncio.Future[int] = asyncio.ensure_future(call)
        self._begun[future] = len(self._begun)
        return future

    def _in_order(self, futures: set[asyncio.Future[int]]) -> list[asyncio.Future[int]]:
        return sorted(futures, key=lambda future: self._begun[future])

    def _result(self, future: asyncio.Future[int]) -> int:
        try:
            return future.result()
        except ValueError as error:
            return len(str(error))


def shape(events: Any) -> list[tuple[Any, ...]]:
    """Return what of events does not depend on when they were."""
    return [shape_of(event) for event in events]


def shape_of(event: Event) -> tuple[Any, ...]:
    if isinstance(event, Intent):
        return (event.seq, event.kind, event.name, event.digest)
    assert isinstance(event, Delivery)
    return (event.seq, event.intent, event.outcome, event.value, str(event.error))


def delivered(recording: Recording) -> list[Any]:
    """Return the numbers that calls were made with, in the order in which their outcomes came."""
    made = {event.seq: recording.arguments(event) for event in recording.events if isinstance(event, Intent)}
    return [made[event.intent]["number"] for event in recording.events if isinstance(event, Delivery)]


def replayed_on(run: Callable[[Awaitable[Replayed]], Replayed], recording: Recording, agent: Any) -> Replayed:
    async def main() -> Replayed:
        return await replay_async(recording, agent)

    return run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_random_agents_that_react_to_completion_order_replay_identically(loop: str) -> None:
    run: Any = LOOPS[loop]
    different = []
    for seed in range(AGENTS):
        agent = RandomAgent(seed)
        value, recording = recorded_async(agent, run)
        again = replayed_on(run, recording, agent)
        if not (again.is_same and again.value == value and shape(again.events) == shape(recording.events)):
            different.append((seed, again.report()))
    assert different == []


def test_what_was_recorded_on_one_event_loop_replays_on_the_other() -> None:
    for seed in range(10):
        agent = RandomAgent(seed)
        value, recording = recorded_async(agent, uvloop.run)
        again = replay(recording, agent)
        assert (again.value, again.divergences) == (value, ())


def test_a_race_that_was_lost_by_the_slow_one_is_lost_again_when_nothing_is_slow() -> None:
    is_second_there = asyncio.Event()

    async def slow(name: str) -> str:
        if name == "second":
            is_second_there.set()
        await is_second_there.wait()
        return name

    async def agent() -> list[str]:
        nonlocal is_second_there
        is_second_there = asyncio.Event()
        async with guard.run(RUN) as run:
            asked = [run.custom("ask", slow, name) for name in ("first", "second")]
            return [value async for value in run.as_completed(asked)]

    value, recording = recorded_async(agent)
    assert value == ["second", "first"]
    again = replay(recording, agent)
    assert (again.value, again.divergences) == (["second", "first"], ())


def test_threads_get_their_own_outcomes_again() -> None:
    all_are_entered = threading.Barrier(3)
    has_heard = [threading.Event() for _ in range(4)]
    has_heard[3].set()

    def look(number: int) -> int:
        all_are_entered.wait(SECONDS)
        assert has_heard[number + 1].wait(SECONDS)
        return number * 10

    def agent() -> list[int]:
        with guard.run(RUN) as run, ThreadPoolExecutor(3) as pool:

            def one(number: int) -> int:
                value: int = run.custom("look", look, number)
                has_heard[number].set()
                return value

            work = [pool.submit(contextvars.copy_context().run, one, number) for number in range(3)]
            return [future.result() for future in work]

    value, recording = recorded(agent)
    assert (value, delivered(recording)) == ([0, 10, 20], [2, 1, 0])
    again = replay(recording, agent, patience=SECONDS)
    assert (again.value, again.differences) == ([0, 10, 20], ())
    assert delivered(again.log) == [2, 1, 0]


def test_calls_in_threads_and_on_the_loop_keep_the_recorded_order() -> None:
    order: list[str] = []
    loop_has_heard = threading.Event()

    def slow() -> str:
        assert loop_has_heard.wait(SECONDS)
        return "thread"

    def in_thread(run: Run) -> None:
        order.append(run.custom("slow", slow))

    async def quick(name: str) -> str:
        await asyncio.sleep(0)
        return name

    async def on_loop(run: Run) -> None:
        order.append(await run.custom("quick", quick, "loop"))
        loop_has_heard.set()

    async def agent() -> list[str]:
        order.clear()
        async with guard.run(RUN) as run:
            await asyncio.gather(asyncio.to_thread(in_thread, run), on_loop(run))
        return list(order)

    value, recording = recorded_async(agent)
    assert value == ["loop", "thread"]
    again = replay(recording, agent)
    assert (again.value, again.differences) == (value, ())


async def test_a_process_that_ends_writes_down_no_outcome_that_the_code_did_not_see() -> None:
    memory = InMemory()
    entered = asyncio.Event()

    async def never(number: int) -> int:
        entered.set()
        await asyncio.sleep(3600)
        return number

    async def agent() -> int:
        async with guard.run(RUN) as run:
            return await run.custom("ask", never, 1)

    with replaying(memory):
        task = asyncio.create_task(agent())
        await entered.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert [type(event) for event in memory.events] == [Intent]
    again = await replay_async(memory.recording(), agent)
    assert again.incomplete is not None
    assert (again.incomplete.seq, again.differences) == (1, ())


async def test_a_timeout_that_cut_a_call_off_cuts_it_off_again() -> None:
    memory = InMemory()

    async def never(number: int) -> int:
        await asyncio.sleep(3600)
        return number

    async def agent() -> str:
        async with guard.run(RUN) as run:
            try:
                async with asyncio.timeout(0.3):
                    await run.custom("ask", never, 1)
            except TimeoutError:
                run.now()
                return "too late"
            return "in time"

    with replaying(memory):
        assert await agent() == "too late"
    again = await replay_async(memory.recording(), agent, patience=0.1)
    assert (again.value, again.divergences) == ("too late", ())


async def test_a_call_that_was_cancelled_and_is_not_any_more_is_told() -> None:
    memory = InMemory()
    is_hurried = True

    async def never(number: int) -> int:
        await asyncio.sleep(3600)
        return number

    async def agent() -> str:
        async with guard.run(RUN) as run:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01 if is_hurried else 3600):
                    await run.custom("ask", never, 1)
            run.now()
            return "went on"

    with replaying(memory):
        await agent()
    is_hurried = False
    again = await replay_async(memory.recording(), agent, patience=0.1)
    first = again.differences[0]
    assert (first.class_, first.message) == (
        "missing",
        "The code cancelled ask (event 1) when it was recorded, and waits for it now.",
    )
