"""What a flow asks of its driver, and what it gets. A flow is a generator: it decides, the driver acts."""

import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

import msgspec

from twiceshy._effect import CurrentEffect
from twiceshy._transports.base import NoReply, Reply, Request


class Send(msgspec.Struct, frozen=True):
    """Send a request; the driver gives back a Reply or NoReply."""

    request: Request


class Sleep(msgspec.Struct, frozen=True):
    """Let seconds pass; the driver gives back None."""

    seconds: float


class RunTool(msgspec.Struct, frozen=True):
    """Run the tool under its effect; the driver gives back Returned or Raised."""

    function: Callable[..., Any]
    bound: inspect.BoundArguments
    effect: CurrentEffect


class Returned(msgspec.Struct, frozen=True):
    """The tool, or the whole guarded call, returned."""

    value: Any


class Raised(msgspec.Struct, frozen=True):
    """The tool, or the whole guarded call, raised."""

    error: BaseException


Step: TypeAlias = Send | Sleep | RunTool
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


def run_tool(step: RunTool) -> Flow[Returned | Raised]:
    """Run the tool."""
    given = yield step
    if not isinstance(given, (Returned, Raised)):
        raise TypeError(f"the driver answered RunTool with {given!r}")
    return given
