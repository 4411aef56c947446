"""An agent that is recorded in memory, and replayed."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.unit.sdk.logs import head
from tests.unit.sdk.scripted import ScriptedService
from twiceshy import Guard, Recording
from twiceshy._log import Log
from twiceshy._payloads import Kept
from twiceshy._replay import replay
from twiceshy._replayed import Replayed
from twiceshy._session import Session
from twiceshy_contract.events import Delivery, Event, Intent

GUARD = Guard("http://guard.test", transport=ScriptedService(), spool=None)


class Recorder:
    """Takes down what a run passes, in memory."""

    def __init__(self) -> None:
        self.kept = Kept()
        self.events: list[Event] = []
        self.session = Session(Log(self))

    def append(self, event: Event) -> None:
        self.events.append(event)

    @property
    def recording(self) -> Recording:
        return Recording.from_events(head("agent", len(self.events)), self.events, self.kept.pending)


def in_run(agent: Callable[[], Any], session: Session | None = None) -> Callable[[], Any]:
    """Return a function that does what an agent does inside of a run, whose boundaries may be given."""

    def run() -> Any:
        with GUARD.run("agent") as entered:
            entered._session = session or entered._session
            return agent()

    async def run_async() -> Any:
        async with GUARD.run("agent") as entered:
            entered._session = session or entered._session
            return await agent()

    return run_async if asyncio.iscoroutinefunction(agent) else run


def recorded(agent: Callable[[], Any]) -> tuple[Any, Recording]:
    """Run an agent once; return what it returned, and the recording."""
    recorder = Recorder()
    value = in_run(agent, recorder.session)()
    return asyncio.run(value) if asyncio.iscoroutine(value) else value, recorder.recording


def replayed(recording: Recording, agent: Callable[[], Any], **options: Any) -> Replayed:
    """Run an agent again from its recording."""
    return replay(recording, in_run(agent), **options)


def same_again(recording: Recording, agent: Callable[[], Any]) -> Any:
    """Replay an agent, hold that it did the same, and return what it returned."""
    again = replayed(recording, agent)
    assert again.is_same, again.report()
    if again.error is not None:
        raise again.error
    return again.value


def calls(recording: Recording) -> list[tuple[str, str]]:
    """Return the kinds and names of the calls, in their order."""
    return [(event.kind, event.name) for event in recording.events if isinstance(event, Intent)]


def arguments(recording: Recording, call: int = 0) -> Any:
    """Return the arguments of the n-th call."""
    return recording.arguments([event for event in recording.events if isinstance(event, Intent)][call])


def outcome(recording: Recording, call: int = 0) -> Delivery:
    """Return how the n-th call ended."""
    intent = [event for event in recording.events if isinstance(event, Intent)][call]
    return next(event for event in recording.events if isinstance(event, Delivery) and event.intent == intent.seq)


def value(recording: Recording, call: int = 0) -> Any:
    """Return what the n-th call was answered."""
    return recording.value(outcome(recording, call))
