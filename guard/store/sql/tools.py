"""The registry: a declaration adds a version where it changes what holds, and never touches an earlier one."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant, RunId, TenantId
from guard.core.tools import UNDECLARED_VERSION, Tool, declaration_digest, merged
from guard.ports.store import Pin
from guard.store.sql.database import Database
from guard.store.sql.faults import Contended
from guard.store.sql.rows import tool_of
from guard.store.sql.tables import run_tools, tools
from twiceshy_contract.tools import ToolDeclaration

_encoder: Final = msgspec.json.Encoder()


class SqlTools:
    """The port's registry over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def held(self, tenant: TenantId, names: Sequence[str]) -> dict[str, Tool]:
        """Return the version that holds of each tool that is declared: the one that was declared last."""
        return await self._database.read(lambda connection: _select_held(connection, tenant, names))

    async def pin(self, tenant: TenantId, wishes: Sequence[Pin]) -> list[Tool | None]:
        """Pin a version of a tool to each run, unless one is pinned; return what is pinned (None: undeclared)."""
        return await self._database.write(lambda connection, _at: _pin(connection, tenant, wishes))

    async def declare(self, tenant: TenantId, name: str, declaration: ToolDeclaration) -> Tool:
        """Merge the declaration over the version that holds and return what holds now.

        A declaration that code made before is no new version: the earlier one holds again.
        """
        return await self._database.write(lambda connection, at: _declare(connection, at, tenant, name, declaration))

    async def all(self, tenant: TenantId) -> list[Tool]:
        """Return the version that holds of every tool, by name."""
        found = await self._database.read(lambda connection: _select_held(connection, tenant, None))
        return [found[name] for name in sorted(found)]


def _declare(connection: Connection, at: Instant, tenant: TenantId, name: str, declared: ToolDeclaration) -> Tool:
    _hold_name(connection, tenant, name)
    held = _select_held(connection, tenant, [name]).get(name)
    declaration = merged(declared, None if held is None else held.declaration)
    digest = declaration_digest(declaration)
    if held is not None and digest == held.digest:
        return held
    version, since = _select_last(connection, tenant, name)
    now = Instant(max(at, since + 1))
    if declared.declared_by == "code":
        again = _hold_again(connection, now, tenant, name, digest)
        if again is not None:
            return again
    tool = Tool(
        tenant=tenant,
        name=name,
        version=version + 1,
        digest=digest,
        declared_at=now,
        declaration=declaration,
    )
    if not _insert(connection, tool):
        raise Contended(f"Another declaration of {name} came first.")
    return tool


def _hold_name(connection: Connection, tenant: TenantId, name: str) -> None:
    """Let nobody else declare the tool until this transaction ends; on SQLite it holds the whole database already."""
    if connection.dialect.name == "postgresql":
        named = sa.func.hashtextextended(name, sa.cast(tenant, sa.BigInteger))
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(named)))


def _select_held(connection: Connection, tenant: TenantId, names: Sequence[str] | None) -> dict[str, Tool]:
    """Select the version that holds of each tool (None: of all tools)."""
    last = sa.select(tools.c.name, sa.func.max(tools.c.held_since).label("since")).where(tools.c.tenant == tenant)
    if names is not None:
        last = last.where(tools.c.name.in_(names))
    latest = last.group_by(tools.c.name).subquery()
    statement = (
        sa.select(tools)
        .join(latest, (tools.c.name == latest.c.name) & (tools.c.held_since == latest.c.since))
        .where(tools.c.tenant == tenant)
        .order_by(tools.c.version)
    )
    return {row.name: tool_of(row) for row in connection.execute(statement)}


def _hold_again(connection: Connection, at: Instant, tenant: TenantId, name: str, digest: bytes) -> Tool | None:
    """Let an earlier version of this digest hold from now on; return it, if there is one."""
    statement = (
        sa.update(tools)
        .where(tools.c.tenant == tenant, tools.c.name == name, tools.c.digest == digest)
        .values(held_since=at)
        .returning(tools)
    )
    row = connection.execute(statement).first()
    return None if row is None else tool_of(row)


def _select_last(connection: Connection, tenant: TenantId, name: str) -> tuple[int, Instant]:
    """Select the number of the tool's last version, and since when its latest held; of none, those of before all."""
    chosen = (tools.c.tenant == tenant, tools.c.name == name)
    last = sa.select(sa.func.max(tools.c.version), sa.func.max(tools.c.held_since)).where(*chosen)
    version, since = connection.execute(last).one()
    return (UNDECLARED_VERSION, Instant(0)) if version is None else (version, Instant(since))


def _pin(connection: Connection, tenant: TenantId, wishes: Sequence[Pin]) -> list[Tool | None]:
    ordered = sorted(wishes, key=lambda wish: (wish.run, wish.tool))
    _insert_pins(connection, ordered)
    pinned = _select_pins(connection, ordered)
    versions = {(wish.tool, pinned[wish.run, wish.tool]) for wish in wishes}
    known = _select_versions(connection, tenant, sorted(versions))
    return [known.get((wish.tool, pinned[wish.run, wish.tool])) for wish in wishes]


def _insert_pins(connection: Connection, wishes: Sequence[Pin]) -> None:
    """Pin where nothing is pinned; the wishes are sorted, so that no two batches deadlock."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    rows = [{"run_id": wish.run, "tool": wish.tool, "version": wish.version} for wish in wishes]
    connection.execute(dialect.insert(run_tools).values(rows).on_conflict_do_nothing())


def _select_pins(connection: Connection, wishes: Sequence[Pin]) -> dict[tuple[RunId, str], int]:
    """Select what is pinned of these tools to these runs."""
    chosen = (run_tools.c.run_id.in_({wish.run for wish in wishes}), run_tools.c.tool.in_({w.tool for w in wishes}))
    rows = connection.execute(sa.select(run_tools).where(*chosen))
    return {(RunId(row.run_id), row.tool): row.version for row in rows}


def _select_versions(
    connection: Connection, tenant: TenantId, versions: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], Tool]:
    """Select these versions of tools."""
    chosen = sa.tuple_(tools.c.name, tools.c.version).in_(versions)
    rows = connection.execute(sa.select(tools).where(tools.c.tenant == tenant, chosen))
    return {(row.name, row.version): tool_of(row) for row in rows}


def _insert(connection: Connection, tool: Tool) -> bool:
    """Add the version unless there is one of its number; say whether it was added."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    row = {
        "tenant": tool.tenant,
        "name": tool.name,
        "version": tool.version,
        "digest": tool.digest,
        "declared_at": tool.declared_at,
        "held_since": tool.declared_at,
        "declaration": _encoder.encode(tool.declaration),
    }
    statement = dialect.insert(tools).values(row).on_conflict_do_nothing().returning(tools.c.version)
    return connection.execute(statement).first() is not None
