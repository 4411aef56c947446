"""Runs that are recorded in memory, and a guard that may send nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.unit.sdk.call_logs import head
from twiceshy import Guard, Recording
from twiceshy._log import Log
from twiceshy._payloads import Kept
from twiceshy._replay_errors import ReplayStopped
from twiceshy._replaying import replaying
from twiceshy._session import Session
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.events import Event

RUN = "contract-7"


class Nobody:
    """A service that nothing may be sent to."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send(self, request: Request) -> Reply | NoReply:
        self.asked.append(request.path)
        raise AssertionError(f"a replay sent {request.method} {request.path}")

    async def send_async(self, request: Request) -> Reply | NoReply:
        return self.send(request)

    def close(self) -> None: ...

    async def close_async(self) -> None: ...


def unsent() -> Guard:
    """Return a guard whose every request fails the test."""
    return Guard("http://nobody.invalid", transport=Nobody(), spool=None)


class InMemory:
    """Records the run that the code enters, and sends nothing."""

    def __init__(self) -> None:
        self.kept = Kept()
        self.events: list[Event] = []
        self._session = Session(Log(self))

    def append(self, event: Event) -> None:
        self.events.append(event)

    def session_for(self, run: str) -> Session:
        assert run == RUN
        return self._session

    def refusal(self, what: str) -> ReplayStopped:
        raise AssertionError(what)

    def input_of(self, run: str) -> object:
        return None

    def recording(self) -> Recording:
        return Recording.from_events(head(RUN, events=len(self.events)), self.events, self.kept.pending)


def recorded(agent: Callable[[], Any]) -> tuple[Any, Recording]:
    """Run an agent of boundaries that need no service; return what it returned, and its recording."""
    memory = InMemory()
    with replaying(memory):
        value = agent()
    return value, memory.recording()


def recorded_async(
    agent: Callable[[], Awaitable[Any]], run: Callable[[Any], Any] = asyncio.run
) -> tuple[Any, Recording]:
    """Do the same on an event loop."""
    return recorded(lambda: run(agent()))
