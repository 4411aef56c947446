"""What a flow asks of its driver, and what it gets. A flow is a generator: it decides, the driver acts."""

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

import msgspec

from twiceshy._binding import Bound
from twiceshy._effect import CurrentEffect
from twiceshy._transports.base import NoReply, Reply, Request


class Send(msgspec.Struct, frozen=True):
    """Send a request; the driver gives back a Reply or NoReply."""

    request: Request


class Sleep(msgspec.Struct, frozen=True):
    """Let seconds pass; the driver gives back None."""

    seconds: float


class Pause(msgspec.Struct, frozen=True):
    """Let seconds pass after an attempt that left nothing to be seen through: a cancellation ends it at once.

    `after` is what the attempt's tool raised.
    """

    seconds: float
    after: BaseException


class Blocking(msgspec.Struct, frozen=True):
    """Do work that waits for a disk or another service, off the event loop; the driver gives back None."""

    work: Callable[[], None]


class RunTool(msgspec.Struct, frozen=True):
    """Run the tool under its effect; the driver gives back Returned or Raised."""

    function: Callable[..., Any]
    bound: Bound
    effect: CurrentEffect


class Render(msgspec.Struct, frozen=True):
    """Let a stage-only tool make its messages; the driver gives back Returned or Raised. There is no effect yet."""

    tool: str
    function: Callable[..., Any]
    bound: Bound


class RunProbe(msgspec.Struct, frozen=True):
    """Ask a tool's probe; the driver gives back Returned or Raised. One that can be interrupted has a time limit."""

    call: Callable[[], Any]
    is_async: bool
    timeout_seconds: float


class Returned(msgspec.Struct, frozen=True):
    """The tool, or the whole guarded call, returned."""

    value: Any


class Raised(msgspec.Struct, frozen=True):
    """The tool, or the whole guarded call, raised."""

    error: BaseException


Step: TypeAlias = Send | Sleep | Pause | Blocking | RunTool | RunProbe | Render
Given: TypeAlias = Reply | NoReply | Returned | Raised | None
T = TypeVar("T")
Flow: TypeAlias = Generator[Step, Given, T]


def send(request: Request) -> Flow[Reply | NoReply]:
    """Send a request."""
    given = yield Send(request)
    if not isinstance(given, (Reply, NoReply)):
        raise TypeError(f"the driver answered Send with {given!r}")
    return given


def sleep(seconds: float) -> Flow[None]:
    """Let seconds pass."""
    yield Sleep(seconds)


def pause(seconds: float, after: BaseException) -> Flow[None]:
    """Let seconds pass after an attempt, before another."""
    yield Pause(seconds, after)


def blocking(work: Callable[[], T]) -> Flow[T]:
    """Do blocking work off the event loop and return what it returns."""
    done: list[T] = []
    yield Blocking(lambda: done.append(work()))
    return done[0]


def run_probe(step: RunProbe) -> Flow[Returned | Raised]:
    """Ask a probe."""
    given = yield step
    if not isinstance(given, (Returned, Raised)):
        raise TypeError(f"the driver answered RunProbe with {given!r}")
    return given


def run_tool(step: RunTool) -> Flow[Returned | Raised]:
    """Run the tool."""
    given = yield step
    if not isinstance(given, (Returned, Raised)):
        raise TypeError(f"the driver answered RunTool with {given!r}")
    return given


def render(step: Render) -> Flow[Returned | Raised]:
    """Let a stage-only tool make its messages."""
    given = yield step
    if not isinstance(given, (Returned, Raised)):
        raise TypeError(f"the driver answered Render with {given!r}")
    return given
