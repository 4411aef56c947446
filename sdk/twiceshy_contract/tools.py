"""Wire structs of a tool: what the side-effect registry holds of it."""

from typing import Annotated, Literal

import msgspec

from twiceshy_contract.names import EffectClass, KeyRule, LeaseSeconds, ToolName

NormaliserName = Literal["utc", "email"]
DeclaredBy = Literal["person", "code"]
_Pointer = Annotated[str, msgspec.Meta(pattern=r"^/", max_length=500)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a declaration."""


class KeyDeclaration(_Part, frozen=True, kw_only=True):
    """How a call of the tool is named, and within what."""

    rule: KeyRule = "once"
    scope: Literal["run"] = "run"


class ArgumentRoles(_Part, frozen=True, kw_only=True):
    """JSON Pointers of arguments, `*` for every item of a list.

    `identity` must match; empty, it is all that is neither content nor ignored; else what no path names is
    content. `content` may be rephrased. `ignored` is not looked at. The longest matching path decides; an item that
    a path names by its number is outside of `*`.
    """

    identity: tuple[_Pointer, ...] = ()
    content: tuple[_Pointer, ...] = ()
    ignored: tuple[_Pointer, ...] = ()
    normalisers: dict[_Pointer, NormaliserName] = {}


class ToolDeclaration(_Part, frozen=True, kw_only=True):
    """A tool as it is declared. `read` tools are never begun.

    `attempts` bounds the tries; a failed one is retried after a random time up to `backoff_seconds` doubled
    with each try (60 s at most). `provider_window_seconds` says how long the provider itself answers a
    repeated `downstream_key` from its record; within it a doubtful effect may be run again.
    """

    class_: EffectClass = msgspec.field(name="class", default="side_effect")
    key: KeyDeclaration = KeyDeclaration()
    arguments: ArgumentRoles = ArgumentRoles()
    lease_seconds: LeaseSeconds = 30
    attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
    backoff_seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 1
    provider_window_seconds: Annotated[float, msgspec.Meta(ge=1, le=31_536_000)] | None = None
    declared_by: DeclaredBy = "person"


class ToolView(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the registry holds it: its newest version."""

    name: ToolName
    version: int
    digest: str
    declared_at: str
    declaration: ToolDeclaration


class ToolList(msgspec.Struct, frozen=True, kw_only=True):
    """All tools, by name."""

    items: tuple[ToolView, ...]
