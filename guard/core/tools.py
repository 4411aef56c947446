"""A tool of the side-effect registry, and what a new declaration may change."""

from typing import Final

import msgspec

from guard.core.effects import Instant, TenantId, seconds
from guard.core.lease import Rules
from twiceshy_contract.canonical import digest
from twiceshy_contract.names import EffectClass
from twiceshy_contract.tools import ToolDeclaration

UNDECLARED_VERSION: Final = 0
_LATER: Final = frozenset(
    {
        "provider_key_header", "retention_seconds", "repeat", "on_doubt", "share", "loop_limit", "redacted",
        "settle_seconds", "fork", "approval", "compensation", "probe", "simulator", "resource",
    }
)  # fmt: skip
_DEFAULTS: Final = msgspec.to_builtins(ToolDeclaration())
_STRICTNESS: Final[tuple[EffectClass, ...]] = ("read", "idempotent", "side_effect")


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

    What came later to the declaration and says nothing is left out, so that a new version of this code sees an old
    declaration as the same.
    """
    said = msgspec.to_builtins(declaration)
    if declaration.key.window_seconds is None:
        del said["key"]["window_seconds"]
    silent = {name for name, value in said.items() if name in _LATER and value == _DEFAULTS[name]}
    return digest({name: value for name, value in said.items() if name not in silent})


def merged(declared: ToolDeclaration, held: ToolDeclaration | None) -> ToolDeclaration:
    """Return the declaration that holds after `declared` came in over `held`.

    A person's word holds. Code may raise the class over what is held, never lower it; and where a person has
    spoken, code changes nothing but to raise the class.
    """
    if held is None or declared.declared_by == "person":
        return declared
    stricter = max(declared.class_, held.class_, key=_STRICTNESS.index)
    base = held if held.declared_by == "person" else declared
    return msgspec.structs.replace(base, class_=stricter)
