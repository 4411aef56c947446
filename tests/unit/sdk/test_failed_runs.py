"""A run that fails has seen what it failed by, and replays; one that was interrupted has not."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import closing
from typing import Any

import pytest

from tests.unit.sdk.recording import brief
from tests.unit.sdk.replays import RUN, recorded, recorded_async, unsent
from twiceshy import GuardUnavailable, Recording, Run
from twiceshy._boundaries import Outcome
from twiceshy._log import Entry, Log
from twiceshy._payloads import Kept
from twiceshy._pump import Pump
from twiceshy._replay import replay
from twiceshy._waiting import Waiting
from twiceshy.exceptions import EffectRef
from twiceshy_contract.events import Event

Body = Callable[[Run], Awaitable[object]]
guard = unsent()


async def never() -> None:
    await asyncio.Event().wait()


async def refuse() -> None:
    raise ValueError("no")


async def unavailable() -> None:
    raise GuardUnavailable("nobody answers", effect=EffectRef(tool="pay", run=RUN))


def failing(body: Body) -> Callable[[], Awaitable[str]]:
    """Return an agent whose run ends by what a body raises; it returns the error's name."""

    async def agent() -> str:
        try:
            async with guard.run(RUN) as run:
                await body(run)
        except BaseException as error:  # noqa: BLE001 - that is what is asked for
            return type(error).__name__
        return "nothing"

    return agent


def log_of(recording: Recording) -> list[str]:
    return [brief(event) for event in recording.events]


async def in_time(run: Run) -> None:
    run.now()
    await asyncio.wait_for(run.custom("never", never), 0.01)


async def beside_a_failure(run: Run) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(run.custom("never", never))
        group.create_task(run.custom("refuse", refuse))


@pytest.mark.parametrize(
    ("body", "error", "log"),
    [
        (in_time, "TimeoutError", ["1 time now", "2 result of 1", "3 custom never", "4 cancelled of 3"]),
        (
            beside_a_failure,
            "ExceptionGroup",
            ["1 custom never", "2 custom refuse", "3 error of 2", "4 cancelled of 1"],
        ),
    ],
)
def test_what_a_run_cancelled_before_it_failed_is_recorded_and_replays(body: Body, error: str, log: list[str]) -> None:
    agent = failing(body)
    raised, recording = recorded_async(agent)
    assert (raised, log_of(recording)) == (error, log)
    replayed = replay(recording, agent, patience=1.0)
    assert (replayed.value, replayed.exit_code, log_of(replayed.log)) == (error, 0, log)


async def interrupted(run: Run) -> None:
    waiting = asyncio.ensure_future(run.custom("never", never))
    await asyncio.sleep(0)
    waiting.cancel()
    await waiting


async def beside_an_interruption(run: Run) -> None:
    async def interrupt() -> None:
        raise asyncio.CancelledError

    waiting = asyncio.ensure_future(run.custom("never", never))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await interrupt()


async def beside_what_passes(run: Run) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(run.custom("never", never))
        group.create_task(run.custom("pay", unavailable))


async def beside_what_passes_and_is_no_outcome(run: Run) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(run.custom("never", never))
        group.create_task(unavailable())


@pytest.mark.parametrize(
    ("body", "error", "log"),
    [
        (interrupted, "CancelledError", ["1 custom never"]),
        (beside_an_interruption, "CancelledError", ["1 custom never"]),
        (beside_what_passes, "ExceptionGroup", ["1 custom never", "2 custom pay"]),
        (beside_what_passes_and_is_no_outcome, "ExceptionGroup", ["1 custom never"]),
    ],
)
def test_what_came_of_an_interruption_or_of_what_passes_is_no_outcome(body: Body, error: str, log: list[str]) -> None:
    raised, recording = recorded_async(failing(body))
    assert (raised, log_of(recording)) == (error, log)


def test_a_stream_that_the_code_failed_in_is_recorded_as_far_as_it_was_read() -> None:
    def pieces(*, model: str) -> Generator[str, None, None]:
        yield from (f"{model} {number}" for number in range(3))

    def read_badly(run: Run) -> None:
        with closing(run.llm(pieces, model="m")) as answer:
            raise ValueError(next(answer))

    def agent() -> str:
        with pytest.raises(ValueError, match="m 0") as raised, guard.run(RUN) as run:
            read_badly(run)
        return str(raised.value)

    value, recording = recorded(agent)
    assert (value, log_of(recording)) == ("m 0", ["1 llm_call m", "2 result of 1"])
    assert replay(recording, agent).exit_code == 0


class Sink:
    """Holds what a log writes."""

    def __init__(self) -> None:
        self.kept = Kept()
        self.events: list[Event] = []

    def append(self, event: Event) -> None:
        self.events.append(event)


@pytest.mark.anyio
async def test_a_wait_that_was_thrown_away_is_let_go() -> None:
    sink = Sink()
    pump = Pump(Log(sink))

    def wait(seq: int) -> Coroutine[Any, Any, None]:
        return pump.give_async(Waiting(Entry(seq, 0), Outcome(kind="result", value=seq), None))

    first = asyncio.ensure_future(wait(1))
    await asyncio.sleep(0)  # its outcome is on its way, so that those that follow wait
    for seq in (2, 3):
        thrown = wait(seq)
        thrown.send(None)
        thrown.close()
    await first
    await wait(4)
    assert [brief(event) for event in sink.events] == ["1 result of 1", "2 result of 4"]
    assert not pump._live
