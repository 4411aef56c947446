"""Wire structs of a tool: what the side-effect registry holds of it."""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from twiceshy_contract.destinations import DestinationName
from twiceshy_contract.names import EffectClass, KeyRule, KeyScope, LeaseSeconds, OnDoubt, Repeat, ToolName
from twiceshy_contract.policies import (
    ApprovalRule,
    Compensation,
    ForkRule,
    HttpProbe,
    Part,
    Pointer,
    ResourceRule,
    Simulator,
)
from twiceshy_contract.problems import FieldError

NormaliserName = Literal["email", "money", "nfc", "phone", "trim_casefold", "url", "utc"]
DeclaredBy = Literal["person", "code", "hint"]
"""Who speaks: a person, a decorator in code, or a hint that came with somebody else's tool."""


_SAFE: Final = 2**53 - 1
_Spelling = Annotated[str, msgspec.Meta(pattern=r"^[^$]")]
_Meant = str | Annotated[int, msgspec.Meta(ge=-_SAFE, le=_SAFE)]


class NormaliserWith(Part, frozen=True, kw_only=True):
    """A normaliser with what it needs to know: exactly one of these.

    `phone`: the region (ISO 3166, such as `DE`) of numbers that are written without a country code. `alias`: what
    each spelling means, such as an address to the id of its user; any other value stays as it is. A spelling does
    not begin with `$`.
    """

    phone: Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{2}$(?!\n)")] | msgspec.UnsetType = msgspec.UNSET
    alias: Annotated[dict[_Spelling, _Meant], msgspec.Meta(min_length=1)] | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if len(self.given) != 1:
            raise ValueError(f"a normaliser holds exactly one of {', '.join(self.__struct_fields__)}")

    @property
    def given(self) -> tuple[str, ...]:
        """The names of what is given."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) is not msgspec.UNSET)


_Single = NormaliserName | NormaliserWith
Normaliser: TypeAlias = _Single | Annotated[tuple[_Single, ...], msgspec.Meta(min_length=2)]
"""A normaliser by its name or with what it needs, or several, applied in order."""


class KeyDeclaration(Part, frozen=True, kw_only=True):
    """How a call of the tool is named, and within what.

    With the scope `tenant` the same identity happens once for all runs; with `window_seconds`, again once so long has
    passed since it ended.
    """

    rule: KeyRule = "once"
    scope: KeyScope = "run"
    window_seconds: Annotated[float, msgspec.Meta(ge=1, le=315_360_000)] | None = None

    def __post_init__(self) -> None:
        if self.scope == "tenant" and self.rule != "once":
            raise ValueError("the scope `tenant` goes with the rule `once`; a business key is the tenant's anyway")
        if self.window_seconds is not None and self.scope != "tenant":
            raise ValueError("a window goes with the scope `tenant`: within a run an intent is done once")


class ArgumentRoles(Part, frozen=True, kw_only=True):
    """JSON Pointers of arguments, `*` for every item of a list.

    `identity` must match; empty, it is all that is neither content nor ignored; else what no path names is
    content. `content` may be rephrased. `ignored` is not looked at. The longest matching path decides; an item that
    a path names by its number is outside of `*`. `normalisers` say in which ways one value is written.
    """

    identity: tuple[Pointer, ...] = ()
    content: tuple[Pointer, ...] = ()
    ignored: tuple[Pointer, ...] = ()
    normalisers: dict[Pointer, Normaliser] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        for path, normaliser in self.normalisers.items():
            if isinstance(normaliser, tuple):
                _check_order(path, normaliser)


def _check_order(path: str, parts: tuple[_Single, ...]) -> None:
    """Refuse a list with a second spelling: a normaliser twice, or one behind the alias, which is the end."""
    names = [part if isinstance(part, str) else part.given[0] for part in parts]
    if len(set(names)) != len(names):
        raise ValueError(f"the normalisers of {path} name one twice")
    if "alias" in names[:-1]:
        raise ValueError(f"the alias of {path} is the last of its normalisers: what it leads to is the meaning")


class ToolDeclaration(Part, frozen=True, kw_only=True):
    """A tool as it is declared. `read` tools are never begun.

    `attempts` bounds the tries; a failed one is retried after a random time up to `backoff_seconds` doubled
    with each try (60 s at most). `provider_window_seconds` says how long the provider itself answers a
    repeated `downstream_key` from its record, `provider_key_header` in which header it takes that key; within the
    window a doubtful effect may be run again.

    `retention_seconds` is how long a final effect is kept after its run has ended, or without a run after it has:
    30 days and 72 hours where nothing is said. `repeat` says what a call means whose effect has succeeded. `share`
    lets other runs take the answer of this one as their own: without a word, only by a business key. `on_doubt` is
    what the agent meets. More than `loop_limit` calls of one slot in one run are refused. The arguments that
    `redacted` names are stored as `[redacted]`. `settle_seconds` is how long a request may be under way after its
    sender has given up. A tool with a `sink` acts on nothing itself: its calls stage messages for that destination, and
    are done when these are staged.
    """

    class_: EffectClass = msgspec.field(name="class", default="side_effect")
    key: KeyDeclaration = KeyDeclaration()
    arguments: ArgumentRoles = ArgumentRoles()
    lease_seconds: LeaseSeconds = 30
    attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
    backoff_seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 1
    provider_window_seconds: Annotated[float, msgspec.Meta(ge=1, le=31_536_000)] | None = None
    declared_by: DeclaredBy = "person"
    provider_key_header: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]{1,100}$(?!\n)")] | None = None
    retention_seconds: Annotated[float, msgspec.Meta(ge=1, le=3_153_600_000)] | None = None
    repeat: Repeat = "replay"
    on_doubt: OnDoubt | None = None
    share: bool | None = None
    loop_limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    redacted: tuple[Pointer, ...] = ()
    settle_seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 10
    fork: ForkRule = "auto"
    approval: ApprovalRule | None = None
    compensation: Compensation | None = None
    probe: HttpProbe | None = None
    simulator: Simulator | None = None
    resource: ResourceRule | None = None
    sink: DestinationName | None = None


Declarations = Annotated[dict[ToolName, ToolDeclaration], msgspec.Meta(min_length=1, max_length=2000)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class ToolView(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the registry holds it, or held it: one version."""

    name: ToolName
    version: int
    digest: str
    declared_at: str
    declaration: ToolDeclaration


class ToolList(msgspec.Struct, frozen=True, kw_only=True):
    """All tools, by name."""

    items: tuple[ToolView, ...]


class ToolQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version of a tool is meant: one by its number, or the one that held at an instant (RFC 3339)."""

    version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    at: Moment | None = None

    def __post_init__(self) -> None:
        if self.version is not None and self.at is not None:
            raise ValueError("ask for a version or for an instant, not for both")


class ToolsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which instant the tools are listed (RFC 3339); without one, as they are now."""

    at: Moment | None = None


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """From when until when a version held; without an end, it holds."""

    since: str
    until: str | None


class ToolVersion(ToolView, frozen=True, kw_only=True):
    """One version of a tool, and when it held. One that was declared again held more than once."""

    declared_by: DeclaredBy
    terms: tuple[Term, ...]


class ToolVersions(msgspec.Struct, frozen=True, kw_only=True):
    """All versions of a tool, newest first."""

    items: tuple[ToolVersion, ...]


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Declarations of tools, by name, to be looked at together."""

    tools: Declarations


class ApplyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Declarations of tools, by name, to be taken together or not at all.

    `seen` are the versions (0: none) that held in the plan of which this is the outcome: where another one holds by
    now, a declaration that would change it is not taken.
    """

    tools: Declarations
    seen: dict[ToolName, Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]] = {}


class PlannedTool(msgspec.Struct, frozen=True, kw_only=True):
    """What a declaration makes of its tool.

    `version` and `declaration` are what holds then, which is more than was sent where somebody else has spoken:
    `again` is an earlier version. `lowered` names the parts in which it guards less than before. What is `refused`
    has `errors`, with places within the declaration, and changes nothing.
    """

    name: ToolName
    change: Literal["new", "changed", "again", "unchanged", "refused"]
    before: ToolView | None = None
    version: int | None = None
    declaration: ToolDeclaration | None = None
    lowered: tuple[Pointer, ...] = ()
    errors: tuple[FieldError, ...] = ()


class ToolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What declarations make of their tools, in the order in which they were sent."""

    items: tuple[PlannedTool, ...]
