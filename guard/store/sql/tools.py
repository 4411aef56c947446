"""The registry: a declaration adds a version where it changes what holds, and never touches an earlier one."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant, TenantId
from guard.core.tools import UNDECLARED_VERSION, Tool, declaration_digest, merged
from guard.store.sql.database import Database
from guard.store.sql.faults import Contended
from guard.store.sql.rows import tool_of
from guard.store.sql.tables import tools
from twiceshy_contract.tools import ToolDeclaration

_encoder: Final = msgspec.json.Encoder()


class SqlTools:
    """The port's registry over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def newest(self, tenant: TenantId, names: Sequence[str]) -> dict[str, Tool]:
        """Return the newest version of each tool that is declared."""
        return await self._database.read(lambda connection: _select_newest(connection, tenant, names))

    async def declare(self, tenant: TenantId, name: str, declaration: ToolDeclaration) -> Tool:
        """Merge the declaration over the newest version and return what holds.

        Nothing is written where the merged declaration's digest is that of the newest version, or, for code, of
        any earlier one.
        """
        return await self._database.write(lambda connection, at: _declare(connection, at, tenant, name, declaration))

    async def all(self, tenant: TenantId) -> list[Tool]:
        """Return the newest version of every tool, by name."""
        found = await self._database.read(lambda connection: _select_newest(connection, tenant, None))
        return [found[name] for name in sorted(found)]


def _declare(connection: Connection, at: Instant, tenant: TenantId, name: str, declared: ToolDeclaration) -> Tool:
    held = _select_newest(connection, tenant, [name]).get(name)
    declaration = merged(declared, None if held is None else held.declaration)
    digest = declaration_digest(declaration)
    if held is not None and digest == held.digest:
        return held
    if held is not None and declared.declared_by == "code" and _is_known(connection, tenant, name, digest):
        return held
    tool = Tool(
        tenant=tenant,
        name=name,
        version=(UNDECLARED_VERSION if held is None else held.version) + 1,
        digest=digest,
        declared_at=at,
        declaration=declaration,
    )
    if not _insert(connection, tool):
        raise Contended(f"Another declaration of {name} came first.")
    return tool


def _select_newest(connection: Connection, tenant: TenantId, names: Sequence[str] | None) -> dict[str, Tool]:
    """Select the newest version of each tool (None: of all tools)."""
    newest = sa.select(tools.c.name, sa.func.max(tools.c.version).label("version")).where(tools.c.tenant == tenant)
    if names is not None:
        newest = newest.where(tools.c.name.in_(names))
    last = newest.group_by(tools.c.name).subquery()
    statement = (
        sa.select(tools)
        .join(last, (tools.c.name == last.c.name) & (tools.c.version == last.c.version))
        .where(tools.c.tenant == tenant)
    )
    return {row.name: tool_of(row) for row in connection.execute(statement)}


def _is_known(connection: Connection, tenant: TenantId, name: str, digest: bytes) -> bool:
    """Say whether any version of the tool had this digest."""
    chosen = (tools.c.tenant == tenant, tools.c.name == name, tools.c.digest == digest)
    return connection.execute(sa.select(sa.exists().where(*chosen))).scalar_one()


def _insert(connection: Connection, tool: Tool) -> bool:
    """Add the version unless there is one of its number; say whether it was added."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    row = {
        "tenant": tool.tenant,
        "name": tool.name,
        "version": tool.version,
        "digest": tool.digest,
        "declared_at": tool.declared_at,
        "declaration": _encoder.encode(tool.declaration),
    }
    statement = dialect.insert(tools).values(row).on_conflict_do_nothing().returning(tools.c.version)
    return connection.execute(statement).first() is not None
