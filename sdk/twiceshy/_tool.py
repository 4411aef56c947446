"""A guarded tool: it is called as the function it wraps, and runs once for what is the same call."""

import asyncio
import functools
import inspect
import types
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, overload

import msgspec

from twiceshy._arguments import Signature
from twiceshy._calls import CallKeys, ToolCall, checked
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment
from twiceshy._flow import guarded
from twiceshy._options import ToolSpec
from twiceshy._run import current_run
from twiceshy.exceptions import NoRun, SetupError

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")
InstanceT = TypeVar("InstanceT")
_KEYS: Final = ("business_key", "step", "occurrence")


class Tool(Generic[P, R]):
    """A function behind the guard.

    `business_key=`, `step=` and `occurrence=` are taken from a call's keywords unless the function has a parameter
    of that name; `with_key` is the way that always works and that type checkers know.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    def __init__(
        self, environment: Environment, function: Callable[..., Any], spec: ToolSpec, keys: CallKeys | None = None
    ) -> None:
        functools.update_wrapper(self, function)
        self.name: Final = spec.name
        self._environment = environment
        self._function = function
        self._spec = spec
        self._keys = keys or CallKeys()
        self._spec_of_method: ToolSpec | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function once, or return what it returned before."""
        call = self._call(args, kwargs)
        result: R
        if self._spec.rules.effect == "read":
            result = self._function(*call.bound.args, **call.bound.kwargs)
        else:
            result = drive(guarded(self._environment, call), self._environment.transport)
        return result

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: "Tool[Concatenate[InstanceT, Q], R]", instance: InstanceT, owner: type | None = None
    ) -> "Tool[Q, R]": ...
    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Bind a method to its instance, which is no argument of the effect."""
        if instance is None:
            return self
        if self._spec_of_method is None:
            signature = Signature(self.name, self._function, is_bound=True)
            self._spec_of_method = msgspec.structs.replace(self._spec, signature=signature)
        bound = types.MethodType(self._function, instance)
        return self._again(bound, self._spec_of_method, self._keys)

    def with_key(
        self,
        *,
        business_key: str | None = None,
        step: int | str | None = None,
        occurrence: int = 1,
        reopen: bool = False,
        distinct: bool = False,
        priority: int = 0,
    ) -> Self:
        """Return the tool under a key for the calls made through it.

        `business_key` names the intent across all runs, `step` by the caller's own count, `occurrence` the n-th
        intended repeat. `reopen` allows another try where the attempts were exhausted. `distinct` says that it is
        another intent than one of the same tool that is in doubt. `priority` is that of the hold on its resource.
        """
        keys = CallKeys(
            business_key=business_key,
            step=step,
            occurrence=occurrence,
            reopen=reopen,
            distinct=distinct,
            priority=priority,
        )
        return self._again(self._function, self._spec, keys)

    def __reduce__(self) -> str:
        """Travel to another process as the name under which it is defined; be itself in a copy."""
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<guarded {self._spec.rules.effect} tool {self.name}>"

    def _again(self, function: Callable[..., Any], spec: ToolSpec, keys: CallKeys) -> Self:
        return type(self)(self._environment, function, spec, keys)

    def _call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> ToolCall:
        """Bind and write a call. Nothing is sent."""
        spec = self._spec
        taken: dict[str, Any] = {
            key: kwargs.pop(key) for key in _KEYS if key in kwargs and key not in spec.signature.parameters
        }
        bound = spec.signature.bind(args, kwargs)
        is_read = spec.rules.effect == "read"
        call = ToolCall(
            spec=spec,
            function=self._function,
            bound=bound,
            written={} if is_read else spec.signature.written(bound),
            run=current_run(self._environment),
            keys=_merged(self._keys, taken),
        )
        if is_read:
            return call
        if call.run is None and call.keys.business_key is None:
            raise NoRun(f"{spec.name} did not run. {inspect.cleandoc(NoRun.__doc__ or '')}")
        return checked(call)


class AsyncTool(Tool[P, Coroutine[Any, Any, T]]):
    """An `async def` function behind the guard."""

    def __init__(
        self, environment: Environment, function: Callable[..., Any], spec: ToolSpec, keys: CallKeys | None = None
    ) -> None:
        super().__init__(environment, function, spec, keys)
        mark = getattr(inspect, "markcoroutinefunction", None)
        if mark is not None:
            mark(self)
        else:  # Python 3.11 knows a coroutine function that is an object by this attribute alone
            self._is_coroutine = getattr(asyncio.coroutines, "_is_coroutine", None)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function once, or return what it returned before."""
        call = self._call(args, kwargs)
        result: T
        if self._spec.rules.effect == "read":
            result = await self._function(*call.bound.args, **call.bound.kwargs)
        else:
            result = await drive_async(guarded(self._environment, call), self._environment.transport)
        return result


def kind_of(function: Callable[..., Any]) -> type[Tool[..., Any]]:
    """Say which class guards a function. Raises SetupError for what cannot be guarded."""
    if isinstance(function, (staticmethod, classmethod)):
        raise SetupError("Put @guard.tool below @staticmethod or @classmethod, directly above the function.")
    if not callable(function):
        raise SetupError(f"@guard.tool stands above a function; this is a {type(function).__name__}.")
    call = getattr(type(function), "__call__", None)  # noqa: B004 - its kind is asked, not whether it is there
    if any(
        is_stream(it)
        for it in (function, call)
        for is_stream in (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    ):
        raise SetupError(
            f"{function!r} yields: a stream has no one result to keep. Guard the function that consumes it."
        )
    return AsyncTool if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call) else Tool


def _merged(keys: CallKeys, taken: Mapping[str, Any]) -> CallKeys:
    return msgspec.structs.replace(keys, **taken) if taken else keys
