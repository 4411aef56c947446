"""Each tenant's salt: what is named under it can neither be guessed nor be compared with what another tenant has."""

import secrets
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant, TenantId
from guard.store.sql.database import Database
from guard.store.sql.tables import tenants

_SALT_BYTES: Final = 32


class Salts:
    """The salts of one database, drawn at first use. One that is set never changes, so it is remembered."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database
        self._known: dict[TenantId, bytes] = {}

    async def of(self, tenant: TenantId) -> bytes:
        """Return the salt of a tenant. Raises LookupError where there is no such tenant."""
        known = self._known.get(tenant)
        if known is None:
            known = await self._database.read(lambda connection: _select_salt(connection, tenant))
        if known is None:
            known = await self._database.write(lambda connection, _at: _draw(connection, _at, tenant))
        self._known[tenant] = known
        return known


def _draw(connection: Connection, _at: Instant, tenant: TenantId) -> bytes:
    _update_unset(connection, tenant, secrets.token_bytes(_SALT_BYTES))
    salt = _select_salt(connection, tenant)
    if salt is None:
        raise LookupError(f"there is no tenant {tenant}")
    return salt


def _select_salt(connection: Connection, tenant: TenantId) -> bytes | None:
    """Select the salt of a tenant, if it has one."""
    return connection.execute(sa.select(tenants.c.salt).where(tenants.c.id == tenant)).scalar()


def _update_unset(connection: Connection, tenant: TenantId, salt: bytes) -> None:
    """Set the salt of a tenant that has none."""
    connection.execute(sa.update(tenants).where(tenants.c.id == tenant, tenants.c.salt.is_(None)).values(salt=salt))
