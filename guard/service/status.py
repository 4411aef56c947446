"""Status: what the guard knows of the ground it stands on."""

import msgspec

from guard.core.effects import TenantId
from guard.ports.accelerator import Accelerator, Reached
from guard.ports.description import Description
from guard.ports.relay import Backlog, together
from guard.ports.store import Store, Tally


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The database, what waits in it, how many batches may be in flight at once, and what makes answers quicker."""

    database: Description
    effects: Tally
    outbox: Backlog
    lanes: int
    accelerator: Reached | None = None


class Status:
    """Looks at the store."""

    def __init__(self, store: Store, accelerator: Accelerator | None = None) -> None:
        self._store = store
        self._accelerator = accelerator

    async def __call__(self, tenant: TenantId) -> Standing:
        """Describe the database and count what is unsettled. Raises StoreUnavailable."""
        effects = await self._store.effects.tally(tenant)
        outbox = await self._waiting(tenant)
        described = await self._store.describe()
        return Standing(
            database=described,
            effects=effects,
            outbox=outbox,
            lanes=self._store.effects.lanes,
            accelerator=None if self._accelerator is None else self._accelerator.reached,
        )

    async def _waiting(self, tenant: TenantId) -> Backlog:
        """Count what waits for all destinations of a tenant together, and for none that is there."""
        elsewhere = {way.id for way in await self._store.relay.ways() if way.tenant != tenant}
        found = [one for number, one in (await self._store.relay.backlogs()).items() if number not in elsewhere]
        return together(found)
