"""Search of calls over the logs of all runs: by their name, a small argument, or the runs they belong to.

An argument's index leads to the calls where it has a value, or one that begins in some way; without an argument the
calls of a name are found, newest first; without a name those of a run, or of the runs of a workflow. Of one name those
that were kept lately are found by when they were, however long its history is.
"""

import sys
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant, RunId, TenantId
from guard.ports.search import CallFilter, FoundCall
from guard.store.sql.codes import EVENT_KIND_CODES, EVENT_KINDS, OUTCOME_CODES, OUTCOMES
from guard.store.sql.cursors import AfterEvent, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.recording_tables import event_arguments, events
from guard.store.sql.tables import runs

_SURROGATES: Final = range(0xD800, 0xE000)
"""Code points that no text has."""

_calls: Final = events.alias("calls")
_ends: Final = events.alias("ends")
_RARE: Final = sa.text("(ends.empty OR ends.outcome > 1)")
"""The very words of the partial index, so that a planner sees that it fits."""
_NO_OUTCOME: Final = 0
_Conditions = list[sa.ColumnExpressionArgument[bool]]


class SqlSearch:
    """The port's search over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def calls(self, tenant: TenantId, chosen: CallFilter) -> tuple[list[FoundCall], str | None]:
        """Return calls, those of the newest runs first and the newest of a run first, and the next page's cursor."""
        after = None if chosen.after is None else place_of(chosen.after)
        if not isinstance(after, AfterEvent | None):
            raise ValueError("This is a cursor of another listing: take `next` of the page of calls before.")
        rows = await self._database.read(lambda connection: select_calls(connection, tenant, chosen, after))
        shown = rows[: chosen.limit]
        last = shown[-1] if len(rows) > chosen.limit else None
        cursor = None if last is None else cursor_of(AfterEvent(last.run_id, last.seq))
        return [_call_of(row) for row in shown], cursor


def successor(prefix: str) -> str | None:
    """Return the least text above all that begin with a prefix, in the order of UTF-8; None: there is no such text."""
    while prefix:
        prefix, last = prefix[:-1], ord(prefix[-1])
        if last < sys.maxunicode:
            following = last + 1
            return prefix + chr(_SURROGATES.stop if following in _SURROGATES else following)
    return None


def select_calls(
    connection: Connection, tenant: TenantId, chosen: CallFilter, after: AfterEvent | None
) -> list[sa.Row[Any]]:
    """Select the calls that come next, newest runs first, one more than the page holds."""
    table, number = _leading(chosen)
    columns = (_calls.c.run_id, runs.c.name.label("run"), _calls.c.seq, _calls.c.kind, _calls.c.name, _calls.c.at)
    statement = sa.select(*columns, _calls.c.body, _ends.c.outcome, _ends.c.empty).select_from(_source(chosen))
    statement = statement.where(*_led(tenant, chosen), *_argued(chosen), *_ended(tenant, chosen))
    statement = statement.where(runs.c.expired_at.is_(None))  # what is left of its log is being deleted
    if chosen.kind is not None:
        statement = statement.where(_calls.c.kind == EVENT_KIND_CODES[chosen.kind])
    if chosen.since is not None:
        statement = statement.where(_calls.c.kept_at >= chosen.since)
        if table is _calls and chosen.name is not None and connection.dialect.name == "sqlite":
            statement = statement.where(_calls.c.run_id >= _oldest_run(tenant, chosen.name, chosen.since))
    if after is not None:
        seen = (sa.literal(after.run, _calls.c.run_id.type), sa.literal(after.seq, _calls.c.seq.type))
        statement = statement.where(sa.tuple_(table.c.run_id, number) < sa.tuple_(*seen))
    statement = statement.order_by(table.c.run_id.desc(), number.desc()).limit(chosen.limit + 1)
    return list(connection.execute(statement))


def _oldest_run(tenant: TenantId, name: str, since: Instant) -> sa.ScalarSelect[RunId]:
    """Select the oldest run with a call of a name that was kept since; a call is kept long after its run's start.

    It ends the walk down the name's index. SQLite, which knows no numbers of rows, would go on to the oldest run of
    all; PostgreSQL chooses the index of when they were kept by itself, where that leads to few. The `+` keeps SQLite
    from looking for the least id down the same long index.
    """
    kept = events.alias("kept")
    wanted = (kept.c.tenant == tenant, kept.c.name == name, kept.c.intent.is_(None), kept.c.kept_at >= since)
    run = sa.literal_column("+kept.run_id", kept.c.run_id.type)
    return sa.select(sa.func.min(run)).where(*wanted).scalar_subquery()


def _source(chosen: CallFilter) -> sa.FromClause:
    """Join a call with its run, its end if there is one, and the argument that it is found by."""
    is_end = (_ends.c.run_id == _calls.c.run_id) & (_ends.c.intent == _calls.c.seq) & _ends.c.intent.is_not(None)
    source: sa.FromClause = _calls
    if chosen.argument is not None:
        is_its = (event_arguments.c.run_id == _calls.c.run_id) & (event_arguments.c.seq == _calls.c.seq)
        source = event_arguments.join(_calls, is_its)
    return source.join(runs, runs.c.id == _calls.c.run_id).outerjoin(_ends, is_end)


def _leading(chosen: CallFilter) -> tuple[sa.FromClause, sa.ColumnElement[int]]:
    """Return the table whose index leads to the calls, and its column of their numbers."""
    if chosen.argument is not None:
        return event_arguments, event_arguments.c.seq
    return (_ends, _ends.c.intent) if _is_notable(chosen) else (_calls, _calls.c.seq)


def _is_notable(chosen: CallFilter) -> bool:
    """Say whether only ends are wanted that are rare, of calls of one name: these have an index of their own."""
    return chosen.name is not None and (chosen.empty is True or chosen.outcome not in (None, "result"))


def _led(tenant: TenantId, chosen: CallFilter) -> _Conditions:
    """Say what leads to the calls: their name, or their runs. Nothing else may seem to a planner to lead there."""
    table, _ = _leading(chosen)
    wanted: _Conditions = [_calls.c.intent.is_(None)] if table is _calls else []
    if chosen.run is not None:
        wanted.append(runs.c.id == chosen.run)
    if chosen.workflow is not None:
        wanted.append(runs.c.workflow == chosen.workflow)
    if chosen.name is None:
        return [*wanted, runs.c.tenant == tenant]
    return [*wanted, table.c.tenant == tenant, table.c.name == chosen.name]


def _argued(chosen: CallFilter) -> _Conditions:
    """Say what the argument is that a call is found by."""
    value = event_arguments.c.value
    wanted: _Conditions = [] if chosen.argument is None else [event_arguments.c.argument == chosen.argument]
    if chosen.equals is not None:
        wanted.append(value == chosen.equals)
    if chosen.prefix is not None:
        end = successor(chosen.prefix)
        wanted += [value >= chosen.prefix] if end is None else [value >= chosen.prefix, value < end]
    return wanted


def _ended(tenant: TenantId, chosen: CallFilter) -> _Conditions:
    """Say how a call ended; what is rare has an index of its own, and is named in its words."""
    wanted: _Conditions = []
    empty: sa.ColumnElement[Any] = _ends.c.empty
    outcome: sa.ColumnElement[Any] = _ends.c.outcome
    if chosen.name is None:  # a planner sees nothing behind an expression, so only the runs can lead
        empty, outcome = sa.func.coalesce(empty, sa.null()), sa.func.coalesce(outcome, _NO_OUTCOME)
    if chosen.empty is not None:
        wanted.append(empty.is_(chosen.empty))
    if chosen.outcome is not None:
        wanted.append(outcome == OUTCOME_CODES[chosen.outcome])
    if _is_notable(chosen):
        wanted += [_ends.c.tenant == tenant, _ends.c.name == chosen.name, _RARE]
    return wanted


def _call_of(row: sa.Row[Any]) -> FoundCall:
    return FoundCall(
        run=row.run,
        seq=row.seq,
        kind=EVENT_KINDS[row.kind],
        name=row.name,
        at=row.at,
        intent=row.body,
        outcome=None if row.outcome is None else OUTCOMES[row.outcome],
        empty=None if row.empty is None else bool(row.empty),
    )
