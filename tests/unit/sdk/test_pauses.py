"""Code that pauses without a boundary takes the same time again when its run is resumed, and is waited for."""

import asyncio
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.sdk.call_logs import head
from tests.unit.sdk.replays import RUN, InMemory, recorded, recorded_async, unsent
from twiceshy import Recording, ReplayDiverged, Run
from twiceshy import _pace as pace
from twiceshy._log import Log
from twiceshy._replay import replay
from twiceshy._replaying import replaying
from twiceshy._resume import resumed
from twiceshy._session import Session
from twiceshy_contract.events import Event, Intent

PATIENCE = 0.05
A_DAY = 24 * 3600 * 1_000_000
guard = unsent()


@pytest.fixture(autouse=True)
def _little_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_SLACK_SECONDS", 0.1)


class Resumed(InMemory):
    """Goes on with a run from its log."""

    def __init__(self, log: Recording) -> None:
        super().__init__()
        self.script = resumed(log)
        self._session = Session(Log(self, head=len(log)), self.script, patience=PATIENCE)


def cut(log: Recording, last: str, *, pause: int = 0) -> Recording:
    """Return a log up to its last call of a name, before which there was another pause."""
    events: list[Event] = list(log.events)
    at = max(place for place, event in enumerate(events) if isinstance(event, Intent) and event.name == last)
    kept = [*events[:at], *(replace(event, at=event.at + pause) for event in events[at : at + 1])]
    return Recording.from_events(head(RUN, events=len(kept)), kept, {})


def goes_on(log: Recording, agent: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Resume a run; return what it comes to, and the calls that are new."""
    going = Resumed(log)
    with replaying(going):
        value = agent()
    return value, [event.name for event in going.events if isinstance(event, Intent)]


async def later(name: str, seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    return name


async def paused(run: Run) -> str:
    await run.custom("a1", later, "a1")
    await asyncio.sleep(0.4)
    return await run.custom("a2", later, "a2")


async def pausing() -> list[str]:
    async with guard.run(RUN) as run:
        return list(await asyncio.gather(paused(run), run.custom("slow", later, "slow", 0.5)))


async def beside_quick_ones() -> list[str]:
    async def quick(run: Run) -> str:
        for _ in range(4):
            await run.custom("quick", later, "quick", 0.09)
        return await run.custom("slow", later, "slow", 0.1)

    async with guard.run(RUN) as run:
        return list(await asyncio.gather(paused(run), quick(run)))


@pytest.mark.parametrize("agent", [pausing, beside_quick_ones])
def test_a_pause_longer_than_the_patience_is_waited_for_by_a_run_that_goes_on(agent: Callable[[], Any]) -> None:
    value, log = recorded_async(agent)
    assert value == ["a2", "slow"]
    assert goes_on(log, lambda: asyncio.run(agent())) == (value, [])


def test_a_pause_longer_than_the_patience_is_waited_for_by_a_replay() -> None:
    value, log = recorded_async(pausing)
    again = replay(log, pausing, patience=PATIENCE)
    assert (again.value, again.divergences) == (value, ())


async def going_ahead() -> list[str]:
    async def ahead(run: Run) -> str:
        await run.custom("b1", later, "b1", 0.2)
        await asyncio.sleep(0.1)
        return await run.custom("b2", later, "b2")

    async def behind(run: Run) -> str:
        await asyncio.sleep(0.25)
        return await run.custom("a2", later, "a2")

    async with guard.run(RUN) as run:
        return list(await asyncio.gather(behind(run), ahead(run)))


def test_a_new_call_waits_for_a_recorded_one_that_its_code_is_still_on_the_way_to() -> None:
    value, log = recorded_async(going_ahead)
    assert goes_on(cut(log, "a2"), lambda: asyncio.run(going_ahead())) == (value, ["b2"])


def test_a_new_call_in_a_thread_waits_for_a_recorded_one_of_another_thread() -> None:
    def slow(name: str, seconds: float) -> str:
        time.sleep(seconds)
        return name

    def ahead(run: Run) -> str:
        run.custom("b1", slow, "b1", 0.4)
        time.sleep(0.3)
        return run.custom("b2", slow, "b2", 0)

    def behind(run: Run) -> str:
        time.sleep(0.5)
        return run.custom("a2", slow, "a2", 0)

    def agent() -> list[str]:
        with guard.run(RUN) as run, ThreadPoolExecutor(2) as pool:
            work = [pool.submit(contextvars.copy_context().run, call, run) for call in (behind, ahead)]
            return [one.result() for one in work]

    value, log = recorded(agent)
    assert goes_on(cut(log, "a2"), agent) == (value, ["b2"])


def test_code_that_waits_for_itself_alone_is_told_at_once_however_long_ago_the_record_is() -> None:
    names = ["a", "b"]

    async def agent() -> list[str]:
        async with guard.run(RUN) as run:
            await run.custom("before", later, "before")
            return await asyncio.gather(*(run.custom(name, later, name) for name in names))

    _, log = recorded_async(agent)
    events = [event if event.seq < 3 else replace(event, at=event.at + A_DAY) for event in log.events]
    names.remove("a")
    began = time.monotonic()
    with pytest.raises(ReplayDiverged, match="not called any more"):
        goes_on(Recording.from_events(log.head, events, {}), lambda: asyncio.run(agent()))
    assert time.monotonic() - began < 3


def test_a_call_that_is_not_of_the_record_is_told_at_once_where_nothing_else_goes_on() -> None:
    names = ["a", "b"]

    async def agent() -> list[str]:
        async with guard.run(RUN) as run:
            return [await run.custom(name, later, name) for name in names]

    _, log = recorded_async(agent)
    names[1] = "c"
    began = time.monotonic()
    with pytest.raises(ReplayDiverged):
        goes_on(cut(log, "b", pause=A_DAY), lambda: asyncio.run(agent()))
    assert time.monotonic() - began < 3


def test_a_long_wait_for_the_recorded_code_is_told(caplog: pytest.LogCaptureFixture) -> None:
    _, log = recorded_async(pausing)
    goes_on(log, lambda: asyncio.run(pausing()))
    assert [record.getMessage() for record in caplog.records if "waits for a2 (event" in record.getMessage()] != []
