"""The terms of tools: from when on which version held. Rows are only added."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant, TenantId
from guard.core.tools import Held, Planned, Tool
from guard.store.sql.policy_tables import tool_terms
from guard.store.sql.rows import tool_of
from guard.store.sql.tables import tools


def insert_terms(connection: Connection, since: Instant, tenant: TenantId, changes: Sequence[Planned]) -> None:
    """Add that these versions hold from now on."""
    rows = [{"tenant": tenant, "name": change.name, "since": since, "version": change.version} for change in changes]
    connection.execute(sa.insert(tool_terms), rows)


def select_at(connection: Connection, tenant: TenantId, at: Instant, name: str | None = None) -> list[Tool]:
    """Select the version of each tool (None: of all tools) that held at an instant."""
    chosen = [tool_terms.c.tenant == tenant, tool_terms.c.since <= at]
    if name is not None:
        chosen.append(tool_terms.c.name == name)
    last = sa.select(tool_terms.c.name, sa.func.max(tool_terms.c.since).label("since")).where(*chosen)
    latest = last.group_by(tool_terms.c.name).subquery()
    is_latest = (tool_terms.c.name == latest.c.name) & (tool_terms.c.since == latest.c.since)
    is_version = (
        (tools.c.tenant == tool_terms.c.tenant)
        & (tools.c.name == tool_terms.c.name)
        & (tools.c.version == tool_terms.c.version)
    )
    held = sa.select(tools).join(tool_terms, is_version).join(latest, is_latest).where(tool_terms.c.tenant == tenant)
    return [tool_of(row) for row in connection.execute(held)]


def select_history(connection: Connection, tenant: TenantId, name: str) -> list[Held]:
    """Select all versions of a tool with their terms, newest version first."""
    terms = _select_terms(connection, tenant, name)
    statement = sa.select(tools).where(tools.c.tenant == tenant, tools.c.name == name).order_by(tools.c.version.desc())
    return [
        Held(tool=tool, terms=tuple(term for version, term in terms if version == tool.version))
        for tool in map(tool_of, connection.execute(statement))
    ]


def _select_terms(
    connection: Connection, tenant: TenantId, name: str
) -> list[tuple[int, tuple[Instant, Instant | None]]]:
    """Select from when until when which version of a tool held, oldest term first."""
    chosen = (tool_terms.c.tenant == tenant, tool_terms.c.name == name)
    ordered = sa.select(tool_terms.c.version, tool_terms.c.since).where(*chosen).order_by(tool_terms.c.since)
    rows = connection.execute(ordered).all()
    ends = [Instant(row.since) for row in rows[1:]]
    return [(row.version, (Instant(row.since), end)) for row, end in zip(rows, [*ends, None], strict=False)]
