"""Flags: how anything tells an operator."""

from uuid import UUID

from guard.core.effects import TenantId
from guard.core.flags import Flag, RaisedFlag
from guard.ports.flags import FlagFilter, FlagStore
from twiceshy_contract.flags import FlagKind


class Flags:
    """Raising, listing and closing flags."""

    def __init__(self, store: FlagStore) -> None:
        self._store = store

    async def raise_flag(self, tenant: TenantId, flag: Flag) -> None:
        """Raise a flag; one of its kind for its subject is enough, unless it was closed by itself.

        Raises StoreUnavailable.
        """
        await self._store.raise_all(tenant, [flag])

    async def settled(self, tenant: TenantId, kind: FlagKind, subjects: str, reason: str) -> None:
        """Close the open flags of a kind whose subjects begin so: their cause is gone. Raises StoreUnavailable."""
        await self._store.settle(tenant, kind, subjects, reason)

    async def page(self, tenant: TenantId, chosen: FlagFilter) -> tuple[list[RaisedFlag], str | None]:
        """Return flags, newest first, and the cursor of the next page. Raises ValueError for a foreign cursor."""
        return await self._store.page(tenant, chosen)

    async def close(self, tenant: TenantId, flag: UUID, by: str | None, reason: str) -> RaisedFlag | None:
        """Close a flag; one that is closed already stays as it was closed. None: there is none."""
        return await self._store.close(tenant, flag, by, reason)
