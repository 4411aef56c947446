"""What may be said of a tool and of a guard, checked where it is said."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Required, TypeAlias, TypedDict, get_args

import msgspec

from twiceshy._arguments import Signature
from twiceshy._marks import marks_sending
from twiceshy._normalisers import NormaliserOption, checked_normalisers
from twiceshy._option_checks import (
    SINK_ALONE,
    refuse_on_read,
    refuse_on_sink,
    require_fit,
    require_kinds,
    require_sink,
)
from twiceshy._pointers import require_arguments, require_lists
from twiceshy._staged import Staged
from twiceshy._wording import in_words
from twiceshy.exceptions import SetupError
from twiceshy_contract.names import EffectClass, KeyRule, KeyScope, OnDoubt, Repeat, ToolName
from twiceshy_contract.policies import ApprovalRule, Compensation, ForkRule, ResourceRule, Simulator
from twiceshy_contract.tools import ArgumentRoles, KeyDeclaration, ToolDeclaration
from twiceshy_contract.variables import did_you_mean

Verdict = Literal["not_applied", "rejected", "unknown"]
OnApproval = Literal["suspend", "wait"]
Classify: TypeAlias = Callable[[BaseException], Verdict | None]

STRICTNESS: Final[Mapping[EffectClass, int]] = {"read": 0, "idempotent": 1, "side_effect": 2}


class ToolOptions(TypedDict, total=False):
    """The keyword options of `guard.tool`.

    `identity`, `content` and `ignored` are JSON Pointers of arguments; `normalisers` maps such to `"utc"`,
    `"email"`, `{"phone": "DE"}` and others, or to several in a list. `key` says what makes two calls the same.
    `one_request` promises that a call sends at most one request, so that its errors can be read as that request's.
    `classify` reads an exception before all else.

    Two options bound how long a call may take beside the tool itself, in seconds. `wait_seconds` is how long it waits
    to begin: for another holder, or for a retry time that an earlier call left behind. `deadline_seconds` is for
    trying again: where the tool's own try leaves the effect open to another, the same call makes it when the service
    says, until that wait would end more than `deadline_seconds` after the call was made; 0 never tries again. A wait
    that would end later is not begun: the tool's error is raised, and its note says when to call again. Neither cuts
    off a tool that runs, and `attempts` bounds the tries of all calls together.

    With `scope="tenant"` a call happens once for all runs, with `window_seconds` once in a while that slides from its
    end; `share=True` takes another run's answer as one's own. `repeat` says what a call means whose effect has
    succeeded. More than `loop_limit` calls of one intent in one run are refused. What `redacted` names is never
    stored. `approval` makes a person decide first, `on_approval` says whether the call waits for that or suspends the
    run. `compensation` takes the effect back in a saga, `resource` claims a time of a room or a calendar, `fork` and
    `simulator` say what a fork may do.

    An effect is open to another try after `not_applied`, and, where it is `idempotent`, after anything that proves
    nothing, such as a time-out or a defect of the tool: to repeat it is harmless, that is what the word means. What
    must not be tried again raises `Rejected`.
    """

    name: str
    effect: EffectClass
    identity: Sequence[str]
    content: Sequence[str]
    ignored: Sequence[str]
    normalisers: Mapping[str, NormaliserOption]
    key: KeyRule
    lease_seconds: float
    attempts: int
    backoff_seconds: float
    provider_window_seconds: float | None
    one_request: bool
    classify: Classify | None
    on_doubt: OnDoubt
    wait_seconds: float
    deadline_seconds: float
    scope: KeyScope
    window_seconds: float | None
    repeat: Repeat
    share: bool | None
    provider_key_header: str | None
    retention_seconds: float | None
    settle_seconds: float
    loop_limit: int | None
    redacted: Sequence[str]
    fork: ForkRule
    approval: bool | ApprovalRule
    on_approval: OnApproval
    compensation: Compensation | None
    simulator: Simulator | None
    resource: ResourceRule | None


class StageOptions(ToolOptions, total=False):
    """The keyword options of `guard.tool` for a tool that stages messages and does nothing else.

    `sink` names the destination. The function makes the messages and must be pure: it is called at every call, before
    the service is asked. It returns a Mail, a Message, a dict (the payload), a text, or a list of these; where it
    returns None, the call's arguments are the payload, or the Mail where they are those of one. What is about a lease
    or about doubt means nothing here and is refused.
    """

    sink: Required[str]


class ToolRules(msgspec.Struct, frozen=True, kw_only=True):
    """The options with their defaults."""

    name: str | None = None
    effect: EffectClass = "side_effect"
    identity: Sequence[str] = ()
    content: Sequence[str] = ()
    ignored: Sequence[str] = ()
    normalisers: Mapping[str, NormaliserOption] = {}
    key: KeyRule = "once"
    lease_seconds: float = 30
    attempts: int = 5
    backoff_seconds: float = 1
    provider_window_seconds: float | None = None
    one_request: bool = False
    classify: Classify | None = None
    on_doubt: OnDoubt = "suspend"
    wait_seconds: float = 30
    deadline_seconds: float = 60
    scope: KeyScope = "run"
    window_seconds: float | None = None
    repeat: Repeat = "replay"
    share: bool | None = None
    provider_key_header: str | None = None
    retention_seconds: float | None = None
    settle_seconds: float = 10
    loop_limit: int | None = None
    redacted: Sequence[str] = ()
    fork: ForkRule = "auto"
    approval: bool | ApprovalRule = False
    on_approval: OnApproval = "suspend"
    compensation: Compensation | None = None
    simulator: Simulator | None = None
    resource: ResourceRule | None = None
    sink: str | None = None


_NAMES: Final = ToolRules.__struct_fields__
_UNSAID: Final = msgspec.structs.asdict(ToolRules())


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


def specify(function: Callable[..., Any], options: Mapping[str, Any]) -> ToolSpec:
    """Check what is said of a tool. Raises SetupError."""
    try:
        rules = ToolRules(**options)
    except TypeError as error:
        raise SetupError(f"guard.tool: {_unknown(options)} The options are {', '.join(_NAMES)}.") from error
    given = rules.name or getattr(function, "__name__", "")
    if not given:
        raise SetupError(f"{function!r} has no name of its own; give the tool one: name='...'.")
    try:
        name: str = msgspec.convert(given, ToolName)
    except msgspec.ValidationError as error:
        raise SetupError(f"The tool's name {given!r} cannot be taken: {in_words(error)}. Choose another.") from error
    said = msgspec.structs.asdict(rules)
    _check_choices(name, rules)
    require_kinds(name, said)
    if rules.sink is not None:
        require_sink(name, rules.sink)
        refuse_on_sink(name, said, _UNSAID)
    if rules.effect == "read":
        refuse_on_read(name, said, _UNSAID)
    require_seconds(name, wait_seconds=rules.wait_seconds, deadline_seconds=rules.deadline_seconds)
    roles = {"identity": rules.identity, "content": rules.content, "ignored": rules.ignored}
    require_lists(name, {**roles, "redacted": rules.redacted})
    signature = Signature(name, function, result=None if rules.sink is None else Staged)
    require_arguments(name, [*rules.identity, *rules.content, *rules.ignored, *rules.redacted], signature.parameters)
    declaration = _declaration(name, rules)
    require_arguments(name, rules.normalisers, signature.parameters)
    require_fit(name, declaration, signature.parameters)
    marks = marks_sending(function)
    if marks and rules.sink is not None:
        raise SetupError(f"{name}: {SINK_ALONE}; what is sent in effect.sending() is sent by a tool without sink=.")
    return ToolSpec(
        name=name,
        rules=rules,
        declaration=declaration,
        signature=signature,
        marks_sending=marks,
    )


def require_seconds(whose: str, **said: object) -> None:
    """Check durations. Raises SetupError that names the option."""
    for option, seconds in said.items():
        is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if not is_number or not 0 <= float(str(seconds)) < float("inf"):
            raise SetupError(f"{whose}: {option} is {seconds!r}; say a number of seconds, 0 or more.")


def _check_choices(name: str, rules: ToolRules) -> None:
    """Check the options that are one of a few words, or a switch. Raises SetupError with the nearest word."""
    for option, said, known in (
        ("effect", rules.effect, get_args(EffectClass)),
        ("key", rules.key, get_args(KeyRule)),
        ("on_doubt", rules.on_doubt, get_args(OnDoubt)),
        ("scope", rules.scope, get_args(KeyScope)),
        ("repeat", rules.repeat, get_args(Repeat)),
        ("fork", rules.fork, get_args(ForkRule)),
        ("on_approval", rules.on_approval, get_args(OnApproval)),
    ):
        if said not in known:
            choice = ", ".join(map(repr, known))
            raise SetupError(f"{name}: {option} is {said!r}{did_you_mean(str(said), known)} The choice is {choice}.")
    if not isinstance(rules.one_request, bool):
        raise SetupError(f"{name}: one_request is {rules.one_request!r}; say True or False.")
    if rules.classify is not None and not callable(rules.classify):
        raise SetupError(f"{name}: classify is {rules.classify!r}; give a function that reads an exception.")


def _unknown(options: Mapping[str, Any]) -> str:
    """Say which options there are not, and which were probably meant."""
    return " ".join(f"There is no option {name}{did_you_mean(name, _NAMES)}" for name in options if name not in _NAMES)


def _declaration(name: str, rules: ToolRules) -> ToolDeclaration:
    declaration = ToolDeclaration(
        class_=rules.effect,
        key=_key(name, rules),
        arguments=ArgumentRoles(
            identity=tuple(rules.identity),
            content=tuple(rules.content),
            ignored=tuple(rules.ignored),
            normalisers=checked_normalisers(name, rules.normalisers),
        ),
        lease_seconds=rules.lease_seconds,
        attempts=rules.attempts,
        backoff_seconds=rules.backoff_seconds,
        provider_window_seconds=rules.provider_window_seconds,
        declared_by="code",
        provider_key_header=rules.provider_key_header,
        retention_seconds=rules.retention_seconds,
        repeat=rules.repeat,
        share=rules.share,
        loop_limit=rules.loop_limit,
        redacted=tuple(rules.redacted),
        settle_seconds=rules.settle_seconds,
        fork=rules.fork,
        approval=ApprovalRule() if rules.approval is True else (rules.approval or None),
        compensation=rules.compensation,
        simulator=rules.simulator,
        resource=rules.resource,
        sink=rules.sink,
    )
    try:
        checked: ToolDeclaration = msgspec.convert(msgspec.to_builtins(declaration), ToolDeclaration)
    except msgspec.ValidationError as error:
        raise SetupError(f"{name}: {in_words(error)}. Correct the declaration.") from error
    except TypeError as error:
        raise SetupError(f"{name}: what is no JSON cannot be declared: {error}. Correct the declaration.") from error
    return checked


def _key(name: str, rules: ToolRules) -> KeyDeclaration:
    try:
        return KeyDeclaration(rule=rules.key, scope=rules.scope, window_seconds=rules.window_seconds)
    except ValueError as error:
        raise SetupError(f"{name}: {error}.") from error
