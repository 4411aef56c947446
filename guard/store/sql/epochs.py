"""Epochs of tenants: what was kept of records elsewhere before the last one began is believed no more."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant, Key, TenantId
from guard.core.retention import RECALLED_AT_MOST
from guard.ports.epochs import CacheEpoch
from guard.store.sql.clock import database_now
from guard.store.sql.database import Database
from guard.store.sql.tables import effects, runs, tenants


class SqlCacheEpochs:
    """The port's epochs over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def read(self, tenant: TenantId) -> CacheEpoch:
        """Return the tenant's epoch. Raises LookupError where there is no such tenant."""
        found = await self._database.read(lambda connection: select_epoch(connection, tenant))
        if found is None:
            raise LookupError(f"there is no tenant {tenant}")
        return found

    async def end(self, tenant: TenantId) -> None:
        """Begin the tenant's next epoch."""
        await self._database.write(lambda connection, _at: update_epoch(connection, tenant))


def select_epoch(connection: Connection, tenant: TenantId) -> CacheEpoch | None:
    """Select the epoch of a tenant, and the present moment."""
    row = connection.execute(sa.select(tenants.c.cache_epoch, database_now()).where(tenants.c.id == tenant)).first()
    return None if row is None else CacheEpoch(epoch=row[0], at=Instant(row[1]))


def update_epoch(connection: Connection, tenant: TenantId) -> None:
    """Begin the next epoch of a tenant."""
    raised = sa.update(tenants).where(tenants.c.id == tenant).values(cache_epoch=tenants.c.cache_epoch + 1)
    connection.execute(raised)


def select_tenant_of_early(connection: Connection, keys: Sequence[Key], at: Instant) -> TenantId | None:
    """Select the tenant of such effects as became final after their run had ended, if one did within a day.

    Their retention counts from the end of the run, so that they go earlier than they say themselves.
    """
    statement = (
        sa.select(effects.c.tenant)
        .join(runs, runs.c.id == effects.c.run_id)
        .where(effects.c.key.in_(keys), effects.c.ended_at > runs.c.ended_at)
        .where(effects.c.ended_at > at - RECALLED_AT_MOST)
        .limit(1)
    )
    tenant = connection.execute(statement).scalar()
    return None if tenant is None else TenantId(tenant)


def select_tenant_of_recent(connection: Connection, key: Key, at: Instant) -> TenantId | None:
    """Select the tenant of an effect that became final within a day."""
    statement = sa.select(effects.c.tenant).where(effects.c.key == key, effects.c.ended_at > at - RECALLED_AT_MOST)
    tenant = connection.execute(statement).scalar()
    return None if tenant is None else TenantId(tenant)
