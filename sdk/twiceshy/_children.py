"""Child runs: a run that an agent starts for a part of its work, with a log of its own.

What becomes of it is one event of its parent, which pins how far the child had come.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import msgspec

from twiceshy._boundaries import Boundary, Outcome
from twiceshy._capture import Capture, child_boundary, is_awaited
from twiceshy._child_names import Children
from twiceshy._scopes import current_scope
from twiceshy._session import observed, observed_async
from twiceshy_contract.events import ChildHead

P = ParamSpec("P")
T = TypeVar("T")


class Parent(Capture, ABC):
    """A run that can have children."""

    name: str

    def __init__(self) -> None:
        self._children = Children()

    @overload
    def child(
        self, name: str, call: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def child(self, name: str, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def child(self, name: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function in a run of its own, a child of this one, whose outcome is one of this run's events.

        The child is called after this run, the scope, and `name`; the same name again is another child.
        """
        children = self._children if self._session is None else self._session.children
        inner = self._child(children.name(self.name, current_scope(), name))
        boundary = child_boundary(inner.name, name, call, args, kwargs)
        live = functools.partial(call, *args, **kwargs)
        if is_awaited(call):
            return self._pass_async(boundary, inner, live)
        session = self.session
        return ran(inner, live).give() if session is None else session.perform(boundary, lambda: ran(inner, live))

    async def _pass_async(self, boundary: Boundary, inner: "Inner", live: Callable[[], Any]) -> Any:
        session = self.session
        if session is None:
            return (await ran_async(inner, live)).give()
        return await session.perform_async(boundary, lambda: ran_async(inner, live))

    @abstractmethod
    def _child(self, name: str) -> "Inner":
        """Return a child's run, which is not entered yet."""


class Inner(Protocol):
    """A child's block, and how far its log has come."""

    @property
    def name(self) -> str:
        """The run's name."""
        ...

    @property
    def events(self) -> int:
        """The number of the newest event of its log."""
        ...

    def __enter__(self) -> Any: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def __aenter__(self) -> Any: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def ran(child: Inner, call: Callable[[], Any]) -> Outcome:
    """Run a call in a child's block, and return what the parent sees of it."""

    def inside() -> Any:
        with child:
            return call()

    return _pinned(child, observed(inside))


async def ran_async(child: Inner, call: Callable[[], Awaitable[Any]]) -> Outcome:
    """Do the same on an event loop."""

    async def inside() -> Any:
        async with child:
            return await call()

    return _pinned(child, await observed_async(inside))


def _pinned(child: Inner, outcome: Outcome) -> Outcome:
    return msgspec.structs.replace(outcome, child=ChildHead(run=child.name, events=child.events))
