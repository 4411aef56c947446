"""The registry: a declaration adds a version where it changes what holds, and never touches an earlier one.

From when on a version holds is one more row of `tool_terms`, whether it is new or holds again. `held_since` repeats
the latest of these, so that what holds now is found without them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant, RunId, TenantId
from guard.core.tools import UNDECLARED_VERSION, Declared, Held, Moved, Planned, Tool, planned, what_is_said
from guard.ports.store import Pin
from guard.store.sql.database import Database
from guard.store.sql.faults import Contended
from guard.store.sql.rows import tool_of
from guard.store.sql.tables import run_tools, tools
from guard.store.sql.tool_terms import insert_terms, select_at, select_history
from twiceshy_contract.tools import ToolDeclaration

_REGISTRIES: Final = 7_011
"""The space of the advisory locks that are one for each tenant's registry."""
_encoder: Final = msgspec.json.Encoder()


class SqlTools:
    """The port's registry over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def held(self, tenant: TenantId, names: Sequence[str]) -> dict[str, Tool]:
        """Return the version that holds of each tool that is declared: the one that was declared last."""
        return await self._database.read(lambda connection: select_held(connection, tenant, names))

    async def pin(self, tenant: TenantId, wishes: Sequence[Pin]) -> list[Tool | None]:
        """Pin a version of a tool to each run, unless one is pinned; return what is pinned (None: undeclared)."""
        return await self._database.write(lambda connection, _at: _pin(connection, tenant, wishes))

    async def pinned(self, tenant: TenantId, run: RunId, names: Sequence[str]) -> dict[str, Tool]:
        """Return the declared versions of these tools that are pinned to a run. None is pinned by that."""

        def work(connection: Connection) -> dict[str, Tool]:
            pins = _select_pins(connection, [Pin(run=run, tool=name, version=UNDECLARED_VERSION) for name in names])
            versions = [(name, version) for (_, name), version in pins.items()]
            return {name: tool for (name, _), tool in _select_versions(connection, tenant, versions).items()}

        return await self._database.read_at_once(work)

    async def plan(self, tenant: TenantId, declared: Mapping[str, ToolDeclaration]) -> list[Planned]:
        """Say what these declarations would make of their tools, in their order. Nothing is written."""
        return await self._database.read_at_once(lambda connection: _plan(connection, tenant, declared))

    async def declare(
        self, tenant: TenantId, declared: Mapping[str, ToolDeclaration], seen: Mapping[str, int] | None = None
    ) -> list[Declared] | Moved:
        """Merge each declaration over the version that holds, all in one transaction; answer in their order.

        A declaration that was made before is no new version: the earlier one holds again. Where one would change a
        tool of which another version than the one `seen` (0: none) holds by now, nothing is written.
        """
        return await self._database.write(
            lambda connection, at: _declare(connection, at, tenant, declared, {} if seen is None else seen)
        )

    async def all(self, tenant: TenantId, at: Instant | None = None) -> list[Tool]:
        """Return the version of every tool that holds, or held at an instant, by name."""
        found = await self._database.read(
            lambda connection: (
                select_held(connection, tenant, None).values() if at is None else select_at(connection, tenant, at)
            )
        )
        return sorted(found, key=lambda tool: tool.name)

    async def at(self, tenant: TenantId, name: str, at: Instant) -> Tool | None:
        """Return the version that held at an instant."""
        found = await self._database.read(lambda connection: select_at(connection, tenant, at, name))
        return found[0] if found else None

    async def versions(self, tenant: TenantId, wishes: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Tool]:
        """Return these versions of tools, as far as there are such."""
        return await self._database.read(lambda connection: _select_versions(connection, tenant, wishes))

    async def every_version(self, tenant: TenantId, names: Sequence[str]) -> list[Tool]:
        """Return all versions of these tools."""
        return await self._database.read(lambda connection: _select_all_versions(connection, tenant, names))

    async def history(self, tenant: TenantId, name: str) -> list[Held]:
        """Return all versions of a tool with the terms in which each held, newest version first."""
        return await self._database.read_at_once(lambda connection: select_history(connection, tenant, name))


def _plan(connection: Connection, tenant: TenantId, declared: Mapping[str, ToolDeclaration]) -> list[Planned]:
    held = select_held(connection, tenant, list(declared))
    known = _select_known(connection, tenant, list(held))
    return [planned(name, declaration, held.get(name), known.get(name, {})) for name, declaration in declared.items()]


def _declare(
    connection: Connection,
    at: Instant,
    tenant: TenantId,
    declared: Mapping[str, ToolDeclaration],
    seen: Mapping[str, int],
) -> list[Declared] | Moved:
    _hold_names(connection, tenant, list(declared))
    plan = _plan(connection, tenant, declared)
    changes = [change for change in plan if change.is_change]
    moved = {
        one.name: one.version_before for one in changes if seen.get(one.name, one.version_before) != one.version_before
    }
    if moved:
        return Moved(moved)
    if changes:
        since = Instant(max(at, _select_last(connection, tenant, [change.name for change in changes]) + 1))
        _insert_new(connection, since, tenant, [change for change in changes if change.is_new])
        _hold_again(connection, since, tenant, [change for change in changes if not change.is_new])
        insert_terms(connection, since, tenant, changes)
    held = select_held(connection, tenant, list(declared))
    return [Declared(planned=change, tool=held[change.name]) for change in plan]


def _hold_names(connection: Connection, tenant: TenantId, names: Sequence[str]) -> None:
    """Let nobody else declare these tools until this transaction ends; on SQLite it holds the whole database already.

    One tool is held by its name; several are held with all others, so that no two transactions wait for each other.
    """
    if connection.dialect.name != "postgresql":
        return
    if len(names) != 1:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_REGISTRIES, tenant)))
        return
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock_shared(_REGISTRIES, tenant)))
    named = sa.func.hashtextextended(f"tool {names[0]}", sa.cast(tenant, sa.BigInteger))
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(named)))


def select_held(connection: Connection, tenant: TenantId, names: Sequence[str] | None) -> dict[str, Tool]:
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


def _select_known(connection: Connection, tenant: TenantId, names: Sequence[str]) -> dict[str, dict[bytes, int]]:
    """Select the versions of each tool by their digests."""
    chosen = (tools.c.tenant == tenant, tools.c.name.in_(names))
    known: dict[str, dict[bytes, int]] = {}
    for row in connection.execute(sa.select(tools.c.name, tools.c.digest, tools.c.version).where(*chosen)):
        known.setdefault(row.name, {})[row.digest] = row.version
    return known


def _select_last(connection: Connection, tenant: TenantId, names: Sequence[str]) -> Instant:
    """Select since when the latest version of any of these tools held; where none ever did, an instant before all."""
    chosen = (tools.c.tenant == tenant, tools.c.name.in_(names))
    since = connection.execute(sa.select(sa.func.max(tools.c.held_since)).where(*chosen)).scalar_one()
    return Instant(since or 0)


def _select_all_versions(connection: Connection, tenant: TenantId, names: Sequence[str]) -> list[Tool]:
    """Select all versions of these tools."""
    rows = connection.execute(sa.select(tools).where(tools.c.tenant == tenant, tools.c.name.in_(names)))
    return [tool_of(row) for row in rows]


def _insert_new(connection: Connection, since: Instant, tenant: TenantId, changes: Sequence[Planned]) -> None:
    """Add these versions. Raises Contended where one of them is there: another declaration came first."""
    if not changes:
        return
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    rows = [
        {
            "tenant": tenant,
            "name": change.name,
            "version": change.version,
            "digest": change.digest,
            "declared_at": since,
            "held_since": since,
            "declaration": _encoder.encode(what_is_said(change.declaration)),
        }
        for change in changes
    ]
    statement = dialect.insert(tools).values(rows).on_conflict_do_nothing().returning(tools.c.version)
    if len(connection.execute(statement).all()) != len(rows):
        raise Contended("Another declaration of a tool came first.")


def _hold_again(connection: Connection, since: Instant, tenant: TenantId, changes: Sequence[Planned]) -> None:
    """Let these versions, which are there, hold from now on."""
    again = [(change.name, change.version) for change in changes]
    chosen = sa.tuple_(tools.c.name, tools.c.version).in_(again)
    connection.execute(sa.update(tools).where(tools.c.tenant == tenant, chosen).values(held_since=since))


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
