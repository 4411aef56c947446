"""A flag: something that an operator should see. One of a kind for one subject, however often it is raised."""

from typing import Final
from uuid import UUID

import msgspec

from guard.core.effects import Instant, Key
from twiceshy_contract.flags import FlagKind, FlagState

ITSELF: Final = "twiceshy"
"""Who closed a flag whose cause is gone. It is open again where the cause comes back."""


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen, and of what."""

    kind: FlagKind
    subject: str
    detail: str
    run: str | None = None
    tool: str | None = None
    key: Key | None = None


class RaisedFlag(msgspec.Struct, frozen=True, kw_only=True):
    """A flag as the record holds it, and who closed it."""

    id: UUID
    flag: Flag
    at: Instant
    closed_at: Instant | None = None
    closed_by: str | None = None
    reason: str | None = None

    @property
    def state(self) -> FlagState:
        """Whether somebody still has to see to it."""
        return "open" if self.closed_at is None else "closed"
