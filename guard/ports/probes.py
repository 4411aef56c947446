"""What the service needs of a database to ask about doubtful effects in turn: each by one at a time."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from guard.core.effects import Duration, Instant, Key, TenantId


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to ask about an effect; nobody else asks before `until`. `tries` counts the questions, this one too."""

    key: Key
    token: UUID
    tries: int
    until: Instant


class ProbeState(msgspec.Struct, frozen=True, kw_only=True):
    """How often a doubtful effect's provider was asked, when it is asked next, and what it said last."""

    tries: int
    next_at: Instant
    said: str | None


class ProbeStore(Protocol):
    """Questions about doubtful effects."""

    async def due_tools(self) -> list[tuple[TenantId, str]]:
        """Return the tools with an HTTP probe and an effect in open doubt about which it is time to ask.

        Of a tool some version declares the probe, not surely today's. That which is due longest comes first.
        """

    async def claim(self, tenant: TenantId, tools: Sequence[str], limit: int, hold: Duration) -> list[Claim]:
        """Claim effects of these tools in open doubt about which it is time to ask, longest due first.

        Each is held for `hold`, or for as long as one pauses after so many questions, whichever is longer.
        """

    async def answered(self, claim: Claim, said: str, earliest: Instant | None) -> None:
        """Write what was said; the next question comes after a pause, and not before `earliest`.

        Nothing is written where the claim has run out and somebody else has claimed the effect.
        """

    async def forget(self, key: Key) -> None:
        """Forget that there were questions: the doubt is settled."""

    async def get(self, key: Key) -> ProbeState | None:
        """Return how the questions about an effect stand; None: there were none."""
