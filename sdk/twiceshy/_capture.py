"""The boundaries of a run that an agent's code passes itself: models, time, chance, waiting, people, and its own.

In a run that is neither recorded nor replayed each does just what it says.
"""

import asyncio
import functools
import inspect
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import FunctionType, MethodType
from typing import Any, Final, ParamSpec, TypeVar, overload

from msgspec.structs import replace

from twiceshy._boundaries import Boundary, Outcome
from twiceshy._boundary_names import required_boundary_name, told_name
from twiceshy._encode import encode
from twiceshy._event_loop import is_on_loop
from twiceshy._model_calls import asked, asked_async
from twiceshy._pieces import by_pieces
from twiceshy._scopes import scoped
from twiceshy._served import by_annotation
from twiceshy._session import Session, is_inside, observed, observed_async
from twiceshy.exceptions import SetupError, ToolArgumentError
from twiceshy_contract.events import EventKind
from twiceshy_contract.refusals import JsonValue, Refusal

P = ParamSpec("P")
T = TypeVar("T")
_random: Final = random.SystemRandom()


class Capture:
    """What a run gives to the code inside of it."""

    _session: Session | None = None

    @property
    def session(self) -> Session | None:
        """The run's boundaries here; None where it is not recorded, and inside of what a boundary runs."""
        session = self._session
        return None if session is None or is_inside(session) else session

    @overload
    def llm(
        self, call: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def llm(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def llm(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a model: `run.llm(client.chat.completions.create, model=..., messages=...)`, awaited where it is async.

        It is recorded under the name of the model, else of the function. An answer that is a stream passes through
        piece by piece, and is recorded when it ends.
        """
        model = kwargs.get("model")
        name = model if isinstance(model, str) and model else _name_of(call)
        if self.session is None:
            return call(*args, **kwargs)
        boundary = _boundary("llm_call", name, call, args, kwargs)
        boundary = replace(boundary, restore=by_pieces(boundary.restore))
        live = functools.partial(call, *args, **kwargs)
        if is_awaited(call):
            return asked_async(self.session, boundary, lambda: _awaited(live))
        return asked(self.session, boundary, lambda: _settled(name, live()))

    @overload
    def custom(
        self, name: str, call: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def custom(self, name: str, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def custom(self, name: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Pass a boundary of one's own: whatever the code gets from the world otherwise, such as a file or a queue."""
        return self._called("custom", required_boundary_name(name), call, args, kwargs)

    @overload
    def human(self, question: str, ask: Callable[[str], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]: ...
    @overload
    def human(self, question: str, ask: Callable[[str], T]) -> T: ...
    def human(self, question: str, ask: Callable[[str], Any]) -> Any:
        """Ask a person: `ask` is given the question and returns the answer."""
        return self._called("human", _name_of(ask), ask, (question,), {})

    def now(self) -> datetime:
        """Return the time, in UTC."""
        moment: datetime = self._passed(Boundary(kind="time", name="now"), lambda: datetime.now(UTC))
        return moment

    def random(self) -> float:
        """Return a number from 0 up to 1, without 1."""
        number: float = self._passed(Boundary(kind="random", name="random"), _random.random)
        return number

    def uuid4(self) -> uuid.UUID:
        """Return a random UUID."""
        drawn: uuid.UUID = self._passed(Boundary(kind="uuid", name="uuid4"), uuid.uuid4)
        return drawn

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Let seconds pass, which a replay does not: `await run.sleep(1)`, and in blocking code without `await`."""
        boundary = Boundary(kind="sleep", name="sleep", arguments={"seconds": float(seconds)})
        if is_on_loop():
            return self._passed_async(boundary, functools.partial(asyncio.sleep, seconds))
        self._passed(boundary, functools.partial(time.sleep, seconds))
        return _DONE

    async def gather(self, *calls: Awaitable[Any], return_exceptions: bool = False) -> list[Any]:
        """Await several at the same time, begun in their order; return what they returned, in their order."""
        return await asyncio.gather(*calls, return_exceptions=return_exceptions)

    def as_completed(self, calls: Iterable[Coroutine[Any, Any, T]]) -> "AsCompleted":
        """Await several at the same time, begun in their order: `async for value in run.as_completed(calls)`."""
        return AsCompleted(calls)

    def scope(self, name: str) -> AbstractContextManager[None]:
        """Put the boundaries in the `with` block into a named scope, so that calls that are alike are told apart."""
        return scoped(name)

    async def to_thread(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking code in a thread that sees the run around it; what it passes there is recorded as its own.

        The thread is no boundary itself: two of them at a time, or one beside other awaits, have no recorded order.
        """
        return await asyncio.to_thread(call, *args, **kwargs)

    def _called(
        self, kind: EventKind, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        live = functools.partial(call, *args, **kwargs)
        if self.session is None:
            return live()
        boundary = _boundary(kind, name, call, args, kwargs)
        if is_awaited(call):
            return self._passed_async(boundary, lambda: _awaited(live))
        return self._passed(boundary, lambda: _settled(name, live()))

    def _passed(self, boundary: Boundary, live: Callable[[], Any]) -> Any:
        session = self.session
        return live() if session is None else session.perform(boundary, lambda: observed(live))

    async def _passed_async(self, boundary: Boundary, live: Callable[[], Awaitable[Any]]) -> Any:
        session = self.session
        if session is None:
            return await live()

        async def outcome() -> Outcome:
            return await observed_async(live)

        return await session.perform_async(boundary, outcome)


class AsCompleted:
    """Values of several calls, whichever is there first."""

    def __init__(self, calls: Iterable[Coroutine[Any, Any, Any]]) -> None:
        self._calls = list(calls)

    async def __aiter__(self) -> Any:
        tasks = [asyncio.ensure_future(call) for call in self._calls]
        ready: asyncio.Queue[asyncio.Future[Any]] = asyncio.Queue()
        for task in tasks:
            task.add_done_callback(ready.put_nowait)
        try:
            for _ in tasks:
                yield (await ready.get()).result()
        finally:
            for task in tasks:
                task.cancel()


class _Done:
    """Nothing to wait for, said to code that awaits nevertheless."""

    def __await__(self) -> Any:
        return iter(())


_DONE: Final = _Done()


def _name_of(call: Callable[..., Any]) -> str:
    while isinstance(call, functools.partial):
        call = call.func
    return str(getattr(call, "__qualname__", None) or type(call).__qualname__)


def _boundary(
    kind: EventKind, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Boundary:
    """Describe a call. Raises ToolArgumentError before anything is called."""
    return Boundary(
        kind=kind,
        name=told_name(name),
        arguments=_written(name, call, args, kwargs),
        restore=by_annotation(functools.partial(_returns, call)),
    )


def child_boundary(
    run: str, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Boundary:
    """Describe a call in a child run. Raises ToolArgumentError before anything is called."""
    return replace(_boundary("child_run", name, call, args, kwargs), child=run)


def is_awaited(call: Callable[..., Any]) -> bool:
    """Say whether a call is awaited, though it may stand in a wrapper that is not `async def` itself."""
    if inspect.iscoroutinefunction(call):
        return True
    return is_on_loop() and inspect.iscoroutinefunction(inspect.unwrap(call))


async def _awaited(call: Callable[[], Any]) -> Any:
    value = call()
    return await value if inspect.isawaitable(value) else value


def _settled(name: str, value: Any) -> Any:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise SetupError(f"{name} returned an awaitable, which was not awaited; wrap it in an `async def` function.")
    return value


def _written(
    name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, JsonValue]:
    """Write the arguments of a call by their names. Raises ToolArgumentError before anything is called."""
    named = {**_positional(call, args), **kwargs}
    written: dict[str, JsonValue] = {}
    for member, value in named.items():
        try:
            written[f"${member}" if member.startswith("$") else member] = encode(value, depth=2)
        except Refusal as refusal:
            told = refusal.under(member)
            raise ToolArgumentError(
                f"{name}: the argument at {told.path} ({type(value).__name__}) cannot be recorded: {told.reason}. "
                "Nothing was called; correct the call.",
                path=told.path,
            ) from refusal
    return written


def _positional(call: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    if not args:
        return {}
    names = _names_of(call)
    if len(args) <= len(names):
        return dict(zip(names, args, strict=False))
    try:
        bound = inspect.signature(call).bind_partial(*args).arguments
    except (TypeError, ValueError):
        return {"args": list(args)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in bound.items()}


def _names_of(call: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a plain function's positional parameters; none for any other callable."""
    function = call.__func__ if isinstance(call, MethodType) else call
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return ()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return names if function is call else names[1:]


def _returns(call: Callable[..., Any]) -> object:
    while isinstance(call, functools.partial):
        call = call.func
    try:
        return inspect.get_annotations(call, eval_str=True).get("return", Any)
    except Exception:  # noqa: BLE001 - an annotation may be any expression
        return Any
