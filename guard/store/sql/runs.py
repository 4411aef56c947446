"""Runs: found or made by name; ended once."""

import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant, RunId, TenantId
from guard.core.forks import Fork
from guard.core.runs import Run
from guard.ports.search import RunFilter
from guard.store.sql.codes import RUN_OPEN, RUN_STATE_CODES
from guard.store.sql.cursors import AfterRun, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.identifiers import RANDOM_BITS, ordered_uuid
from guard.store.sql.recording_tables import run_tags
from guard.store.sql.rows import run_of
from guard.store.sql.run_pages import select_page
from guard.store.sql.tables import run_tools, runs
from twiceshy_contract.runs import RunAbout, RunState

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

    async def fork(self, tenant: TenantId, name: str, fork: Fork, child_of: str | None = None) -> Run:
        """Make a run that is a fork, and keeps to its parent's versions of tools; or find the run of that name."""
        return await self._database.write(lambda connection, at: _fork(connection, at, (tenant, name), fork, child_of))

    async def end(self, tenant: TenantId, name: str, state: RunState) -> Run | None:
        """End an open run; return it as it stands (an ended one unchanged), or None where there is none."""

        def work(connection: Connection, at: Instant) -> Run | None:
            _update_open(connection, at, tenant, name, RUN_STATE_CODES[state])
            return _select_named(connection, tenant, [name]).get(name)

        return await self._database.write(work)

    async def tell(self, tenant: TenantId, name: str, about: RunAbout | None, parent: str | None) -> Run:
        """Find a run, or make it, open, as a child of its parent; keep what it is about where nobody said so yet."""
        return await self._database.write(lambda connection, at: _tell(connection, at, (tenant, name), about, parent))

    async def page(self, tenant: TenantId, chosen: RunFilter) -> tuple[list[Run], str | None]:
        """Return runs, newest first, and the cursor of the next page. Raises ValueError for a foreign cursor."""
        place = None if chosen.after is None else place_of(chosen.after)
        if not isinstance(place, AfterRun | None):
            raise ValueError("This is a cursor of another listing: take `next` of the page of runs before.")
        last = None if place is None else place.run
        found = await self._database.read(lambda connection: select_page(connection, tenant, chosen, last))
        if len(found) <= chosen.limit:
            return found, None
        return found[: chosen.limit], cursor_of(AfterRun(found[chosen.limit - 1].id))


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


def _fork(connection: Connection, at: Instant, of: tuple[TenantId, str], fork: Fork, child_of: str | None) -> Run:
    tenant, name = of
    parent = None if fork.is_empty else fork.parent_id
    said = {"effects": fork.at, "parent_id": parent, "fork": _encoder.encode(fork), "child_of": child_of}
    row = {**_new_run(at, tenant, name), **said}
    _insert(connection, [row])
    found = _select_named(connection, tenant, [name])[name]
    if found.id == row["id"]:
        _insert_pins_of(connection, found.id, fork.parent_id)
    return found


def _tell(
    connection: Connection, at: Instant, of: tuple[TenantId, str], about: RunAbout | None, parent: str | None
) -> Run:
    tenant, name = of
    _insert(connection, [{**_new_run(at, tenant, name), "child_of": parent}])
    found = _select_named(connection, tenant, [name])[name]
    if about is None or found.about is not None or parent not in (None, found.child_of):
        return found
    if _update_about(connection, found.id, about):
        _insert_tags(connection, tenant, found.id, about.tags)
    return _select_named(connection, tenant, [name])[name]


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


def _update_about(connection: Connection, run: RunId, about: RunAbout) -> bool:
    """Keep what a run is about, unless something is kept; say whether it was."""
    values = {"about": _encoder.encode(about), "workflow": about.workflow, "reference": about.reference}
    kept = connection.execute(sa.update(runs).where(runs.c.id == run, runs.c.about.is_(None)).values(**values))
    return kept.rowcount == 1


def _insert_tags(connection: Connection, tenant: TenantId, run: RunId, tags: Sequence[str]) -> None:
    """Let a run be found by its tags."""
    rows = [{"tenant": tenant, "tag": tag, "run_id": run} for tag in dict.fromkeys(tags)]
    if rows:
        connection.execute(sa.insert(run_tags), rows)


def _update_open(connection: Connection, at: Instant, tenant: TenantId, name: str, code: int) -> None:
    """End the run if it is open."""
    connection.execute(
        sa.update(runs)
        .where(runs.c.tenant == tenant, runs.c.name == name, runs.c.state == RUN_OPEN)
        .values(state=code, ended_at=at, kept_until=at)
    )
