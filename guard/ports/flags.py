"""What the service needs of a database to tell operators something."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from guard.core.effects import Key, TenantId
from guard.core.flags import Flag, RaisedFlag
from twiceshy_contract.flags import FlagKind, FlagState


class FlagFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which flags a listing shows; `after` is the last page's cursor, opaque to all but the store."""

    kind: FlagKind | None = None
    state: FlagState | None = None
    limit: int = 50
    after: str | None = None


class FlagStore(Protocol):
    """Flags."""

    async def raise_all(self, tenant: TenantId, flags: Sequence[Flag]) -> None:
        """Raise each flag whose kind was never raised for its subject; what a person has closed stays closed.

        What was closed by itself is open again, with the new detail.
        """

    async def settle(self, tenant: TenantId, kind: FlagKind, subjects: str, reason: str) -> None:
        """Close by itself every open flag of a kind whose subject begins with these words: its cause is gone."""

    async def page(self, tenant: TenantId, chosen: FlagFilter) -> tuple[list[RaisedFlag], str | None]:
        """Return flags, newest first, and the cursor of the next page. Raises ValueError for a foreign cursor."""

    async def close(self, tenant: TenantId, flag: UUID, by: str | None, reason: str) -> RaisedFlag | None:
        """Close a flag; return it as it stands (a closed one unchanged), or None where there is none."""

    async def count_open(self, tenant: TenantId) -> int:
        """Count the flags that nobody has closed."""

    async def unflagged(self, limit: int) -> list[Key]:
        """Return keys of effects that have more pieces of evidence than flags."""
