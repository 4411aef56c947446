"""A tool of the side-effect registry, and what a new declaration may change."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from guard.core.effects import Instant, TenantId, seconds
from guard.core.lease import Rules, stricter
from twiceshy_contract.canonical import digest
from twiceshy_contract.tools import DeclaredBy, ToolDeclaration

UNDECLARED_VERSION: Final = 0
_LATER: Final = frozenset(
    {
        "provider_key_header", "retention_seconds", "repeat", "on_doubt", "share", "loop_limit", "redacted",
        "settle_seconds", "fork", "approval", "compensation", "probe", "simulator", "resource", "sink",
    }
)  # fmt: skip
_DEFAULTS: Final = msgspec.to_builtins(ToolDeclaration())
_SPEAKERS: Final[tuple[DeclaredBy, ...]] = ("hint", "code", "person")
"""Who may declare a tool; each is believed over the ones before it."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a tool. Versions count from 1; 0 is the default of a tool that nobody declared."""

    tenant: TenantId
    name: str
    version: int
    digest: bytes
    declared_at: Instant
    declaration: ToolDeclaration

    @property
    def rules(self) -> Rules:
        """What the declaration says about the life of an effect."""
        declared = self.declaration
        window = declared.provider_window_seconds
        return Rules(
            effect_class=declared.class_,
            lease=seconds(declared.lease_seconds),
            attempts=declared.attempts,
            backoff=seconds(declared.backoff_seconds),
            provider_window=None if window is None else seconds(window),
            settle=seconds(declared.settle_seconds),
            repeat=declared.repeat,
            window=None if declared.key.window_seconds is None else seconds(declared.key.window_seconds),
        )


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a tool with the terms in which it held or holds: from when, and until when (None: it still does)."""

    tool: Tool
    terms: tuple[tuple[Instant, Instant | None], ...]


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What a declaration makes of a tool: what held before (None: nobody had declared it), and what holds then.

    The version `is_new`, or was declared before and holds again, or holds already.
    """

    name: str
    before: Tool | None
    version: int
    digest: bytes
    declaration: ToolDeclaration
    is_new: bool

    @property
    def version_before(self) -> int:
        """The version that held before."""
        return UNDECLARED_VERSION if self.before is None else self.before.version

    @property
    def is_change(self) -> bool:
        """Whether another version than before holds."""
        return self.version != self.version_before


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """A declaration that was carried out: what it was to change, and the tool as it holds now."""

    planned: Planned
    tool: Tool


class Moved(msgspec.Struct, frozen=True):
    """Other versions (0: none) of these tools hold than those that were seen; nothing was declared."""

    held: Mapping[str, int]


def undeclared(tenant: TenantId, name: str) -> Tool:
    """Return the tool that nobody declared: a side effect with the defaults."""
    declaration = ToolDeclaration()
    return Tool(
        tenant=tenant,
        name=name,
        version=UNDECLARED_VERSION,
        digest=declaration_digest(declaration),
        declared_at=Instant(0),
        declaration=declaration,
    )


def declaration_digest(declaration: ToolDeclaration) -> bytes:
    """Return what identifies a declaration: the digest of its canonical form, which says who made it.

    It is that of what is said, so that a new version of this code sees an old declaration as the same.
    """
    return digest(what_is_said(declaration))


def what_is_said(declaration: ToolDeclaration) -> dict[str, object]:
    """Return a declaration as JSON without what came later to declarations and says nothing.

    So code of before, which goes on during an upgrade, can read what new code writes, as long as nobody says more.
    """
    said: dict[str, Any] = msgspec.to_builtins(declaration)
    if declaration.key.window_seconds is None:
        del said["key"]["window_seconds"]
    silent = {name for name, value in said.items() if name in _LATER and value == _DEFAULTS[name]}
    return {name: value for name, value in said.items() if name not in silent}


def merged(declared: ToolDeclaration, held: ToolDeclaration | None) -> ToolDeclaration:
    """Return the declaration that holds after `declared` came in over `held`.

    A person's word holds. Anybody else may raise the class over what is held, never lower it; and of what somebody
    who is believed more has said, changes nothing but that.
    """
    if held is None or declared.declared_by == "person":
        return declared
    is_outspoken = _SPEAKERS.index(held.declared_by) > _SPEAKERS.index(declared.declared_by)
    base = held if is_outspoken else declared
    return msgspec.structs.replace(base, class_=stricter(declared.class_, held.class_))


def planned(name: str, declared: ToolDeclaration, held: Tool | None, known: Mapping[bytes, int]) -> Planned:
    """Say what a declaration makes of a tool whose versions are `known` by their digests."""
    declaration = merged(declared, None if held is None else held.declaration)
    identity = declaration_digest(declaration)
    version = known.get(identity)
    return Planned(
        name=name,
        before=held,
        version=max(known.values(), default=UNDECLARED_VERSION) + 1 if version is None else version,
        digest=identity,
        declaration=declaration,
        is_new=version is None,
    )
