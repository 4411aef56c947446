"""Wire structs of flags: what an operator should see."""

from typing import Literal
from uuid import UUID

import msgspec

from twiceshy_contract.names import Person, Reason
from twiceshy_contract.wire import EffectKey

FlagKind = Literal["contradiction", "double", "loop", "saga-stuck"]
"""`contradiction`: proof against a final record. `double`: perhaps executed twice. `loop`: a run goes in circles."""
FlagState = Literal["open", "closed"]


class FlagView(msgspec.Struct, frozen=True, kw_only=True):
    """A flag: what was seen, of what, and who closed it. There is one of a kind for one subject."""

    id: UUID
    kind: FlagKind
    subject: str
    state: FlagState
    detail: str
    at: str
    run: str | None
    tool: str | None
    key: EffectKey | None
    closed_at: str | None
    closed_by: str | None
    reason: str | None


class FlagPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of flags, newest first; `next` is the `after` of the next page."""

    items: tuple[FlagView, ...]
    next: str | None


class CloseFlagRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Somebody has seen to it: who, and what became of it."""

    reason: Reason
    by: Person | None = None
