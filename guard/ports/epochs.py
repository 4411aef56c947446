"""What the service needs of a database so that nothing that is kept beside it outlives what was removed from it."""

from typing import Protocol

import msgspec

from guard.core.effects import Instant, TenantId


class CacheEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's epoch as the database held it `at` its time."""

    epoch: int
    at: Instant


class CacheEpochStore(Protocol):
    """A number of each tenant that only grows. What was kept of records in an earlier epoch is believed no more.

    It grows in the transaction that removes a record earlier than the record itself says: whoever removes records for
    good, and has not waited until their retention was over, ends the epoch.
    """

    async def read(self, tenant: TenantId) -> CacheEpoch:
        """Return the tenant's epoch. Raises LookupError where there is no such tenant."""

    async def end(self, tenant: TenantId) -> None:
        """Begin the tenant's next epoch."""
