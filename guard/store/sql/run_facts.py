"""Facts of runs: rows are only added, and the latest of a name counts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant, RunId
from guard.store.sql.database import Database
from guard.store.sql.recording_tables import run_facts
from guard.store.sql.tables import runs
from twiceshy_contract.facts import fact_text
from twiceshy_contract.runs import Fact

_facts: Final = msgspec.json.Decoder(bool | int | float | str)


class SqlRunFacts:
    """The port's facts of runs over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def keep(self, run: RunId, facts: Mapping[str, Fact]) -> None:
        """Add facts of a run, whether it is open or ended; what is said already is not said again."""
        texts = {name: fact_text(value) for name, value in facts.items()}
        await self._database.write(lambda connection, at: _keep(connection, at, run, texts))

    async def of(self, runs: Sequence[RunId]) -> dict[RunId, dict[str, Fact]]:
        """Return the facts of each of these runs, by name; a run without any may be missing."""
        if not runs:
            return {}
        return await self._database.read(lambda connection: _select_latest(connection, runs))


def is_latest(told: sa.FromClause) -> sa.ColumnElement[bool]:
    """Say that a run has no later fact of the same name."""
    later = run_facts.alias()
    is_later = (later.c.run_id == told.c.run_id) & (later.c.name == told.c.name) & (later.c.at > told.c.at)
    return ~sa.exists().where(is_later).correlate(told)


def _keep(connection: Connection, at: Instant, run: RunId, texts: Mapping[str, str]) -> None:
    tenant = _hold_tenant(connection, run)
    said = _select_said(connection, run, list(texts))
    rows = [
        {"run_id": run, "name": name, "at": max(at, last + 1), "tenant": tenant, "value": text}
        for name, text in texts.items()
        for last, known in [said.get(name, (0, None))]
        if text != known
    ]
    if rows:
        connection.execute(sa.insert(run_facts), rows)


def _hold_tenant(connection: Connection, run: RunId) -> int:
    """Select whose the run is, and hold it: of facts that are said at once, one comes later."""
    statement = sa.select(runs.c.tenant).where(runs.c.id == run).with_for_update(key_share=True)
    return int(connection.execute(statement).scalar_one())


def _select_said(connection: Connection, run: RunId, names: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Select the latest fact of each of these names, and when it was said."""
    statement = sa.select(run_facts.c.name, run_facts.c.at, run_facts.c.value).where(
        run_facts.c.run_id == run, run_facts.c.name.in_(names), is_latest(run_facts)
    )
    return {name: (at, value) for name, at, value in connection.execute(statement)}


def _select_latest(connection: Connection, chosen: Sequence[RunId]) -> dict[RunId, dict[str, Fact]]:
    """Select the latest fact of each name of these runs."""
    found: defaultdict[RunId, dict[str, Fact]] = defaultdict(dict)
    statement = sa.select(run_facts.c.run_id, run_facts.c.name, run_facts.c.value).where(
        run_facts.c.run_id.in_(chosen), is_latest(run_facts)
    )
    for run, name, value in sorted(connection.execute(statement).all(), key=lambda row: row.name):
        found[RunId(run)][name] = _facts.decode(value)
    return dict(found)
