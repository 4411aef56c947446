"""What may be said of a tool and of a guard, checked where it is said."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypedDict

import msgspec

from twiceshy._arguments import Signature
from twiceshy._marks import marks_sending
from twiceshy.exceptions import SetupError
from twiceshy_contract.names import EffectClass, KeyRule, ToolName
from twiceshy_contract.tools import ArgumentRoles, KeyDeclaration, NormaliserName, ToolDeclaration

Verdict = Literal["not_applied", "rejected", "unknown"]
OnDoubt = Literal["suspend", "tell"]
Classify: TypeAlias = Callable[[BaseException], Verdict | None]

STRICTNESS: Final[Mapping[EffectClass, int]] = {"read": 0, "idempotent": 1, "side_effect": 2}


class ToolOptions(TypedDict, total=False):
    """The keyword options of `guard.tool`.

    `identity`, `content` and `ignored` are JSON Pointers of arguments; `normalisers` maps such to `"utc"` or
    `"email"`. `key` says what makes two calls the same. `one_request` promises that a call sends at most one
    request, so that its errors can be read as that request's. `classify` reads an exception before all else.
    `wait_seconds` is how long a call waits in all for another holder or a retry time.
    """

    name: str
    effect: EffectClass
    identity: Sequence[str]
    content: Sequence[str]
    ignored: Sequence[str]
    normalisers: Mapping[str, NormaliserName]
    key: KeyRule
    lease_seconds: float
    attempts: int
    backoff_seconds: float
    provider_window_seconds: float | None
    one_request: bool
    classify: Classify | None
    on_doubt: OnDoubt
    wait_seconds: float


class ToolRules(msgspec.Struct, frozen=True, kw_only=True):
    """The options with their defaults."""

    name: str | None = None
    effect: EffectClass = "side_effect"
    identity: Sequence[str] = ()
    content: Sequence[str] = ()
    ignored: Sequence[str] = ()
    normalisers: Mapping[str, NormaliserName] = {}
    key: KeyRule = "once"
    lease_seconds: float = 30
    attempts: int = 5
    backoff_seconds: float = 1
    provider_window_seconds: float | None = None
    one_request: bool = False
    classify: Classify | None = None
    on_doubt: OnDoubt = "suspend"
    wait_seconds: float = 30


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its code declares it. `marks_sending` says that its source surely marks what it sends."""

    name: str
    rules: ToolRules
    declaration: ToolDeclaration
    signature: Signature
    marks_sending: bool


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a guard is patient with its service, in seconds."""

    unavailable_seconds: float = 10
    deliver_seconds: float = 30


def specify(function: Callable[..., Any], options: ToolOptions) -> ToolSpec:
    """Check what is said of a tool. Raises SetupError."""
    try:
        rules = ToolRules(**options)
    except TypeError as error:
        raise SetupError(f"guard.tool: {error}. The options are {', '.join(ToolRules.__struct_fields__)}.") from error
    given = rules.name or getattr(function, "__name__", "")
    name = _checked(given, ToolName, f"the tool's name {given!r}")
    if rules.on_doubt not in ("suspend", "tell"):
        raise SetupError(f"{name}: on_doubt is {rules.on_doubt!r}; say 'suspend' or 'tell'.")
    if not 0 <= rules.wait_seconds < float("inf"):
        raise SetupError(f"{name}: wait_seconds is {rules.wait_seconds!r}; say a number of seconds, 0 or more.")
    return ToolSpec(
        name=name,
        rules=rules,
        declaration=_declaration(name, rules),
        signature=Signature(name, function),
        marks_sending=marks_sending(function),
    )


def _declaration(name: str, rules: ToolRules) -> ToolDeclaration:
    pointers: list[object] = [rules.identity, rules.content, rules.ignored]
    if any(isinstance(paths, str) for paths in pointers):
        raise SetupError(f"{name}: identity, content and ignored are lists of JSON Pointers, such as ['/title'].")
    declaration = ToolDeclaration(
        class_=rules.effect,
        key=KeyDeclaration(rule=rules.key),
        arguments=ArgumentRoles(
            identity=tuple(rules.identity),
            content=tuple(rules.content),
            ignored=tuple(rules.ignored),
            normalisers=dict(rules.normalisers),
        ),
        lease_seconds=rules.lease_seconds,
        attempts=rules.attempts,
        backoff_seconds=rules.backoff_seconds,
        provider_window_seconds=rules.provider_window_seconds,
        declared_by="code",
    )
    checked: ToolDeclaration = _checked(
        msgspec.to_builtins(declaration), ToolDeclaration, f"what is said of the tool {name}"
    )
    return checked


def _checked(value: object, kind: Any, what: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise SetupError(f"{what[0].upper()}{what[1:]} cannot be taken: {error}. Correct the declaration.") from error
