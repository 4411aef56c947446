"""A guarded tool: it is called as the function it wraps, and runs once for what is the same call."""

import asyncio
import functools
import inspect
import types
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Final, Generic, Never, ParamSpec, Self, TypeVar, overload

import msgspec

from twiceshy._arguments import Signature
from twiceshy._calls import CallKeys, ToolCall, checked
from twiceshy._declare import class_of
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment, home_of
from twiceshy._flow import guarded
from twiceshy._held_redaction import informed, informed_async
from twiceshy._lost_threads import heed_thread
from twiceshy._option_checks import SINK_ALONE
from twiceshy._options import ToolSpec
from twiceshy._probes import Look, probe_of
from twiceshy._reads import read
from twiceshy._recorded import Answer
from twiceshy._replaying import refuse_lost_in_replay
from twiceshy._run import current_run, current_saga
from twiceshy._tool_boundary import answered, answered_async
from twiceshy.exceptions import SetupError
from twiceshy_contract.variables import did_you_mean
from twiceshy_contract.wire import EffectKey

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")
InstanceT = TypeVar("InstanceT")
LookT = TypeVar("LookT", bound=Look)
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
        result = spec.signature.result
        if result is not None:  # frameworks read here what a call returns
            self.__signature__ = inspect.signature(function).replace(return_annotation=result)
            self.__annotations__ = {**getattr(function, "__annotations__", {}), "return": result}
        self.name: Final = spec.name
        self._environment = environment
        self._function = function
        self._spec = spec
        self._keys = keys or CallKeys()
        self._spec_of_method: ToolSpec | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function once, or return what it returned before."""
        answer: Answer[R] = self._answered(self._call(args, kwargs))
        return answer.value

    def answer(self, *args: P.args, **kwargs: P.kwargs) -> Answer[R]:
        """Do what a call does, and return its value with where it comes from: from now, or from which step before.

        An agent's loop shows a model `said`, so that it sees that what it asks for was done already. An `async def`
        function is asked with `answer_async`.
        """
        return self._answered(self._call(args, kwargs))

    async def answer_async(self: "Tool[P, Coroutine[Any, Any, T]]", *args: P.args, **kwargs: P.kwargs) -> Answer[T]:
        """Do the same for an `async def` function."""
        return await self._answered_async(self._call(args, kwargs))

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
            result = self._spec.signature.result
            signature = Signature(self.name, self._function, is_bound=True, result=result)
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
        **misspelt: Never,
    ) -> Self:
        """Return the tool under a key for the calls made through it.

        `business_key` names the intent across all runs, `step` by the caller's own count, `occurrence` the n-th
        intended repeat. `reopen` allows another try where the attempts were exhausted. `distinct` says that it is
        another intent than one of the same tool that is in doubt. `priority` is that of the hold on its resource.
        """
        for name in misspelt:
            raise TypeError(f"with_key takes no argument {name!r}{did_you_mean(name, CallKeys.__struct_fields__)}")
        keys = CallKeys(
            business_key=business_key,
            step=step,
            occurrence=occurrence,
            reopen=reopen,
            distinct=distinct,
            priority=priority,
        )
        return self._again(self._function, self._spec, keys)

    @overload
    def probe(self, function: LookT, /) -> LookT: ...
    @overload
    def probe(self, function: None = None, /, *, timeout_seconds: float | None = None) -> Callable[[LookT], LookT]: ...
    def probe(self, function: Any = None, /, *, timeout_seconds: float | None = None) -> Any:
        """Put a function beside the tool that finds out at the provider what became of a call that is in doubt.

            @pay.probe
            def look(effect, order): ...

        It is given the DoubtfulEffect, then those of the tool's arguments that it names, and returns Applied(result),
        NotFound() or Unproven(why). It is asked after the tool raised and nobody knows, when a call finds an old doubt,
        and by `guard.serve_probes()`. An `async def` probe is cut off after `timeout_seconds` (10); one that blocks
        needs a time limit of its own. It must change nothing.
        """
        if self._spec.rules.sink is not None:
            raise SetupError(
                f"{self.name}: {SINK_ALONE}, which is never in doubt: there is nothing to probe. "
                "`twiceshy outbox list` shows what became of its messages."
            )

        def register(function: Any) -> Any:
            before = self._environment.probes.get(self.name)
            if before is not None and home_of(before.function) != home_of(function):
                raise SetupError(
                    f"The tool {self.name} has a probe, {home_of(before.function)}; {home_of(function)} would be a "
                    "second one. Look in one function at all that can tell."
                )
            self._environment.probes[self.name] = probe_of(
                function, self._spec, is_async_tool=isinstance(self, AsyncTool), timeout_seconds=timeout_seconds
            )
            return function

        return register if function is None else register(function)

    def __reduce__(self) -> str:
        """Travel to another process as the name under which it is defined; be itself in a copy."""
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<guarded {self._spec.rules.effect} tool {self.name}>"

    def _again(self, function: Callable[..., Any], spec: ToolSpec, keys: CallKeys) -> Self:
        return type(self)(self._environment, function, spec, keys)

    def _answered(self, call: ToolCall) -> Answer[Any]:
        session = call.session
        if session is None:
            return self._asked(call)
        return answered(session, informed(self._environment, call), lambda: self._asked(call))

    def _asked(self, call: ToolCall) -> Answer[Any]:
        refuse_lost_in_replay(call.spec.name)
        is_read = call.spec.rules.effect == "read"
        flow = (read if is_read else guarded)(self._environment, call)
        answer: Answer[Any] | None = drive(flow, self._environment.transport)
        if answer is None:
            return Answer(value=self._function(*call.bound.args, **call.bound.kwargs))
        self._reaches_the_agent(call, answer)
        return answer

    async def _answered_async(self, call: ToolCall) -> Answer[Any]:
        raise SetupError(f"{call.spec.name} is no `async def` function; ask it with answer(...).")

    def _reaches_the_agent(self, call: ToolCall, answer: Answer[Any]) -> None:
        """Note that the agent knows an outcome of an idempotent tool: the same call is another intent from now on.

        What is named by a step or a business key stays one intent, however often it is asked for.
        """
        is_named = call.keys.step is not None or call.keys.business_key is not None
        if is_named or call.run is None or answer.key is None:
            return
        if class_of(self._environment, call.spec) != "idempotent":
            return
        if answer.run == call.run:
            self._environment.deliveries.give(call.run, EffectKey(answer.key))
            run = current_run(self._environment)
            if run is not None and call.nth is not None:
                run.numbering.give(call)

    def _call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> ToolCall:
        """Bind and write a call. Nothing is sent."""
        spec = self._spec
        taken: dict[str, Any] = {
            key: kwargs.pop(key) for key in _KEYS if key in kwargs and key not in spec.signature.parameters
        }
        bound = spec.signature.bind(args, kwargs)
        is_read = spec.rules.effect == "read"
        run = current_run(self._environment)
        name, in_fork = (None, False) if run is None else (run.name, run.is_fork)
        call = ToolCall(
            spec=spec,
            function=self._function,
            bound=bound,
            written={} if is_read and not in_fork else spec.signature.written(bound),
            run=name,
            keys=_merged(self._keys, taken),
            known=self._environment.deliveries.known(name),
            requester=None if run is None else run.requester,
            in_fork=in_fork,
            saga=current_saga(self._environment),
            session=None if run is None else run.session,
            writer=None if run is None else run.writer,
        )
        if is_read:
            heed_thread(self._environment, call)
            return call
        if run is not None and in_fork:
            is_harmless = spec.rules.repeat == "replay" and class_of(self._environment, spec) == "idempotent"
            call = msgspec.structs.replace(call, nth=run.numbering.number(call, is_harmless=is_harmless))
        call = checked(call, self._environment.recorder.names)
        heed_thread(self._environment, call)
        return call


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
        answer: Answer[T] = await self._answered_async(self._call(args, kwargs))
        return answer.value

    def _answered(self, call: ToolCall) -> Answer[Any]:
        raise SetupError(f"{call.spec.name} is an `async def` function; ask it with `await answer_async(...)`.")

    async def _answered_async(self, call: ToolCall) -> Answer[Any]:
        session = call.session
        if session is None:
            return await self._asked_async(call)
        try:
            written = await informed_async(self._environment, call)
        except asyncio.CancelledError as cancelled:
            error = cancelled  # it is the outcome, so that a replay hears of it at the call
            return await answered_async(session, call, lambda: _cancelled(error))
        return await answered_async(session, written, lambda: self._asked_async(call))

    async def _asked_async(self, call: ToolCall) -> Answer[Any]:
        refuse_lost_in_replay(call.spec.name)
        is_read = call.spec.rules.effect == "read"
        flow = (read if is_read else guarded)(self._environment, call)
        answer: Answer[Any] | None = await drive_async(flow, self._environment.transport)
        if answer is None:
            return Answer(value=await self._function(*call.bound.args, **call.bound.kwargs))
        self._reaches_the_agent(call, answer)
        return answer


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


async def _cancelled(error: asyncio.CancelledError) -> Never:
    raise error


def _merged(keys: CallKeys, taken: Mapping[str, Any]) -> CallKeys:
    return msgspec.structs.replace(keys, **taken) if taken else keys
