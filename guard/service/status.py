"""Status: what the guard knows of the ground it stands on."""

import msgspec

from guard.core.effects import TenantId
from guard.ports.store import Description, Store, Tally


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The database, what waits in it, and how many batches may be in flight at once."""

    database: Description
    effects: Tally
    lanes: int


class Status:
    """Looks at the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, tenant: TenantId) -> Standing:
        """Describe the database and count what is unsettled. Raises StoreUnavailable."""
        effects = await self._store.effects.tally(tenant)
        described = await self._store.describe()
        return Standing(database=described, effects=effects, lanes=self._store.effects.lanes)
