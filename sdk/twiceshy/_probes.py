"""Probes in code: a function beside a tool that looks at the provider and says what became of a doubtful call."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from twiceshy._binding import Bound
from twiceshy._options import ToolSpec, require_seconds
from twiceshy.exceptions import SetupError

_PROBE_SECONDS: Final = 10.0
"""How long a probe may take where nothing is said."""


class DoubtfulEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect that a probe is asked about. The provider was sent its `downstream_key`, if any."""

    key: str
    downstream_key: str
    tool: str
    run: str | None
    step: int | None
    fence: int


class Applied(msgspec.Struct, frozen=True):
    """The provider has it. `result` is what the tool would have returned.

    Without a result a call raises ResultNotKept, unless the tool is annotated to return None.
    """

    result: Any = msgspec.UNSET


class NotFound(msgspec.Struct, frozen=True):
    """The provider has nothing of it now. While a request may still be on its way, that is not believed yet."""


class Unproven(msgspec.Struct, frozen=True):
    """Nobody knows more than before."""

    reason: str = "the probe could not find out"


Finding: TypeAlias = Applied | NotFound | Unproven
Look: TypeAlias = Callable[..., Finding | Awaitable[Finding]]


class Probe(msgspec.Struct, frozen=True):
    """A probe as it was written, and which of the tool's arguments it takes (None: all)."""

    function: Look
    is_async: bool
    takes: frozenset[str] | None
    timeout_seconds: float

    def asked(self, effect: DoubtfulEffect, spec: ToolSpec, bound: Bound) -> Callable[[], Any]:
        """Return the question about an effect whose tool was called so."""
        named = _named(spec, bound)
        wanted = named if self.takes is None else {name: named[name] for name in self.takes if name in named}
        return lambda: self.function(effect, **wanted)


def probe_of(function: Look, spec: ToolSpec, *, is_async_tool: bool, timeout_seconds: float | None) -> Probe:
    """Check a probe beside its tool. Raises SetupError."""
    if timeout_seconds is not None:
        require_seconds(f"The probe of {spec.name}", timeout_seconds=timeout_seconds)
    if not callable(function):
        raise SetupError(f"The probe of {spec.name} is a {type(function).__name__}; give a function.")
    is_async = inspect.iscoroutinefunction(function)
    if is_async and not is_async_tool:
        raise SetupError(
            f"The probe of {spec.name} is an `async def` function and the tool is none: in line nobody could await it. "
            "Write both in the same way."
        )
    if timeout_seconds is not None and not is_async_tool:
        raise SetupError(
            f"The probe of {spec.name} blocks, and nothing can cut it off after {timeout_seconds:g} s. Leave "
            "timeout_seconds out, and give its client a time limit."
        )
    takes = _taken(function, spec)
    seconds = _PROBE_SECONDS if timeout_seconds is None else timeout_seconds
    return Probe(function=function, is_async=is_async, takes=takes, timeout_seconds=seconds)


def _taken(function: Look, spec: ToolSpec) -> frozenset[str] | None:
    """Name the arguments that a probe takes besides the effect. Raises SetupError for one that no call has."""
    try:
        first, *others = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise SetupError(f"The probe of {spec.name} takes the effect first, then what it needs of the call.") from error
    if first.kind not in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
        raise SetupError(f"The probe of {spec.name} takes the effect first, by its position.")
    known = spec.signature.parameters
    has_rest = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values())
    named = [parameter for parameter in others if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    for parameter in named:
        is_needed = parameter.default is inspect.Parameter.empty
        if parameter.name not in known and is_needed and not has_rest:
            raise SetupError(
                f"The probe of {spec.name} takes {parameter.name}, and the tool has no such argument; it has "
                f"{', '.join(known) or 'none'}."
            )
    return None if len(named) < len(others) else frozenset(parameter.name for parameter in named)


def _named(spec: ToolSpec, bound: Bound) -> Mapping[str, Any]:
    """Return all arguments of a call by name; what a `**rest` took stands beside the others."""
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        is_rest = spec.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        named.update(value if is_rest else {name: value})
    return named
