"""What makes a true answer arrive sooner: final outcomes that every replica may read, and counts of hot keys.

All of it may be lost, stale, slow or a lie, and no answer changes by that: whatever is not proved to be this database's
own record is as if it were not there. No method raises, and none takes longer than a short time-out.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from guard.core.effects import Effect, Key, TenantId
from guard.ports.wire import Wire


class HotKey(msgspec.Struct, frozen=True, kw_only=True):
    """An effect that begins found executing lately, and how many of them, on all replicas together."""

    key: Key
    tool: str
    begins: int


class Accelerator(Protocol):
    """A shared cache beside the database."""

    @property
    def wire(self) -> Wire:
        """Words between replicas, faster than through the database."""

    async def recall(self, tenant: TenantId, key: Key) -> Effect | None:
        """Return the final effect that a replica kept under the key, where that is proved."""

    def keep(self, effect: Effect) -> None:
        """Keep a final effect, soon, for all replicas."""

    def forget(self, tenant: TenantId, keys: Sequence[Key]) -> None:
        """Keep these effects no longer, soon."""

    def contended(self, tenant: TenantId, tool: str, key: Key) -> None:
        """Count a begin that found another attempt's lease."""

    async def hottest(self, tenant: TenantId, limit: int) -> list[HotKey]:
        """Return the keys that most begins found executing within the last minutes, most first."""

    async def close(self) -> None:
        """Give back all connections."""
