"""Runs: found or made by name; ended once."""

import secrets
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant, RunId, TenantId
from guard.core.forks import Fork
from guard.core.runs import Run
from guard.store.sql.codes import RUN_OPEN, RUN_STATE_CODES
from guard.store.sql.cursors import AfterRun, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.identifiers import RANDOM_BITS, ordered_uuid
from guard.store.sql.rows import run_of
from guard.store.sql.tables import run_tools, runs
from twiceshy_contract.runs import RunState

_encoder: Final = msgspec.json.Encoder()


class SqlRuns:
    """The port's runs over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def open(self, tenant: TenantId, names: Sequence[str]) -> list[Run]:
        """Find each run, or make it, open; answer in the order of the names (which may repeat)."""
        wanted = sorted(set(names))
        found = await self._database.read(lambda connection: _select_named(connection, tenant, wanted))
        missing = [name for name in wanted if name not in found]
        if missing:
            found |= await self._database.write(lambda connection, at: _open_missing(connection, at, tenant, missing))
        return [found[name] for name in names]

    async def get(self, tenant: TenantId, name: str) -> Run | None:
        """Find a run."""
        found = await self._database.read(lambda connection: _select_named(connection, tenant, [name]))
        return found.get(name)

    async def fork(self, tenant: TenantId, name: str, fork: Fork) -> Run:
        """Make a run that is a fork, and keeps to its parent's versions of tools; or find the run of that name."""
        return await self._database.write(lambda connection, at: _fork(connection, at, tenant, name, fork))

    async def end(self, tenant: TenantId, name: str, state: RunState) -> Run | None:
        """End an open run; return it as it stands (an ended one unchanged), or None where there is none."""

        def work(connection: Connection, at: Instant) -> Run | None:
            _update_open(connection, at, tenant, name, RUN_STATE_CODES[state])
            return _select_named(connection, tenant, [name]).get(name)

        return await self._database.write(work)

    async def page(
        self, tenant: TenantId, state: RunState | None, limit: int, after: str | None, parent: RunId | None = None
    ) -> tuple[list[Run], str | None]:
        """Return runs, or the forks of one, newest first, and the cursor of the next page.

        Raises ValueError for a foreign cursor.
        """
        place = None if after is None else place_of(after)
        if not isinstance(place, AfterRun | None):
            raise ValueError("This is a cursor of a listing of effects: take `next` of the page of runs before.")
        last = None if place is None else place.run
        of = sa.true() if parent is None else runs.c.parent_id == parent
        found = await self._database.read(
            lambda connection: _select_page(connection, [runs.c.tenant == tenant, of], state, limit + 1, last)
        )
        if len(found) <= limit:
            return found, None
        return found[:limit], cursor_of(AfterRun(found[limit - 1].id))


def run_id(at: Instant, random: int) -> RunId:
    """Return the id of a run that starts at a moment."""
    return RunId(ordered_uuid(at, random))


def _open_missing(connection: Connection, at: Instant, tenant: TenantId, names: Sequence[str]) -> dict[str, Run]:
    _insert(connection, [_new_run(at, tenant, name) for name in names])
    return _select_named(connection, tenant, names)


def _new_run(at: Instant, tenant: TenantId, name: str) -> dict[str, Any]:
    return {
        "id": run_id(at, secrets.randbits(RANDOM_BITS)),
        "tenant": tenant,
        "name": name,
        "state": RUN_OPEN,
        "effects": 0,
        "started_at": at,
        "ended_at": None,
    }


def _fork(connection: Connection, at: Instant, tenant: TenantId, name: str, fork: Fork) -> Run:
    said = {"effects": fork.at, "parent_id": fork.parent_id, "fork": _encoder.encode(fork)}
    row = {**_new_run(at, tenant, name), **said}
    _insert(connection, [row])
    found = _select_named(connection, tenant, [name])[name]
    if found.id == row["id"]:
        _insert_pins_of(connection, found.id, fork.parent_id)
    return found


def _insert_pins_of(connection: Connection, run: RunId, parent: RunId) -> None:
    """Let a new run keep to the versions of tools that its parent keeps to."""
    pinned = sa.select(sa.literal(run, run_tools.c.run_id.type), run_tools.c.tool, run_tools.c.version)
    statement = sa.insert(run_tools).from_select(
        ["run_id", "tool", "version"], pinned.where(run_tools.c.run_id == parent)
    )
    connection.execute(statement)


def _insert(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Make these runs where there are none of their names; the names are sorted, so that no two batches deadlock."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(dialect.insert(runs).values(rows).on_conflict_do_nothing())


def _select_named(connection: Connection, tenant: TenantId, names: Sequence[str]) -> dict[str, Run]:
    """Select the runs that have these names."""
    statement = sa.select(runs).where(runs.c.tenant == tenant, runs.c.name.in_(names))
    return {row.name: run_of(row) for row in connection.execute(statement)}


def _update_open(connection: Connection, at: Instant, tenant: TenantId, name: str, code: int) -> None:
    """End the run if it is open."""
    connection.execute(
        sa.update(runs)
        .where(runs.c.tenant == tenant, runs.c.name == name, runs.c.state == RUN_OPEN)
        .values(state=code, ended_at=at, kept_until=at)
    )


def _select_page(
    connection: Connection,
    chosen: Sequence[sa.ColumnElement[bool]],
    state: RunState | None,
    limit: int,
    last: UUID | None,
) -> list[Run]:
    """Select the chosen runs that come next, newest first."""
    statement = sa.select(runs).where(*chosen).order_by(runs.c.id.desc()).limit(limit)
    if state is not None:
        statement = statement.where(runs.c.state == RUN_STATE_CODES[state])
    if last is not None:
        statement = statement.where(runs.c.id < last)
    return [run_of(row) for row in connection.execute(statement)]
