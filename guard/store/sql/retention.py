"""Retention: final effects become tombstones, and holds that ended go, found by index and in batches."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Duration, Instant, Key, RunId, TenantId
from guard.core.retention import KEPT_IN_RUN
from guard.ports.retention import DueRun, Oldest
from guard.store.sql.clock import database_now
from guard.store.sql.codes import FAILED, SUCCEEDED
from guard.store.sql.database import Database
from guard.store.sql.epochs import select_tenant_of_early, update_epoch
from guard.store.sql.policy_tables import (
    COMMITTED_HOLDS,
    ENDED_HOLDS,
    approvals,
    fork_answers,
    fork_calls,
    holds,
    loops,
    saga_steps,
    sagas,
)
from guard.store.sql.recording_tables import event_arguments, events, fork_pauses
from guard.store.sql.tables import KEPT_ALONE, KEPT_RUNS, attempts, effects, evidence, runs

_GONE: Final[Mapping[str, Any]] = {
    "arguments": b"{}",
    "outcome": None,
    "edited": None,
    "worker": None,
    "resolution": None,
    "earlier": 0,
}
_UNSEEN: Final[Mapping[str, Any]] = {"arguments": b"{}", "edited": None, "evidence": None, "summary": "expired"}
_OF_RUN: Final = (fork_answers.c.key, fork_calls.c.key, fork_pauses.c.key, event_arguments.c.seq, events.c.seq)
"""What is kept of a run besides its effects, by what numbers its rows: what a fork was given, its stops, its log."""


class SqlRetention:
    """The port's retention over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def oldest_alone(self, after: Oldest | None) -> Oldest | None:
        """Return the oldest effect without a run of the next tool, or the first one; None: there is none."""
        return await self._database.read(lambda connection: select_oldest(connection, after))

    async def expire_alone(self, tenant: TenantId, tool: str, kept: Duration, limit: int) -> list[Key]:
        """Turn final effects of a tool that have no run and ended so long ago into tombstones, oldest first."""

        def work(connection: Connection, at: Instant) -> list[Key]:
            keys = select_alone(connection, tenant, tool, Instant(at - kept), limit)
            _expire(connection, at, keys)
            return keys

        return await self._database.write(work)

    async def forget_holds(self, kept: Duration, limit: int) -> int:
        """Delete up to so many holds that ended so long ago, and as many whose booked time did; return how many went.

        A hold that was given up is kept as long as its effect is not final: success would claim the time again.
        """

        def work(connection: Connection, at: Instant) -> int:
            until = Instant(at - kept)
            ids = select_ended_holds(connection, until, limit) + select_past_holds(connection, until, limit)
            if ids:
                connection.execute(sa.delete(holds).where(holds.c.id.in_(ids)))
            return len(ids)

        return await self._database.write(work)

    async def due_runs(self, limit: int) -> list[DueRun]:
        """Return runs that are to be looked at by now, longest due first."""

        def work(connection: Connection) -> list[DueRun]:
            due = select_due(connection, limit)
            tools = _select_tools(connection, [run for run, _ in due])
            return [DueRun(id=run, tenant=tenant, tools=tools[run]) for run, tenant in due]

        return await self._database.read_at_once(work)

    async def expire_of_run(
        self, run: RunId, kept: Mapping[str, Duration], look_again: Duration, limit: int
    ) -> list[Key]:
        """Turn final effects of a run, of the tools that are kept no longer after its end, into tombstones.

        Those of a saga that goes on are kept. Unless there may be more than the limit, the run is to be looked at when
        its next tool's time is up, or after `look_again`; one that keeps nothing has expired itself. Its log, and what
        a fork was given, are kept as long as a run's effects; once the run has expired nobody reads them any more.
        """

        def work(connection: Connection, at: Instant) -> list[Key]:
            ended_at = _hold_ended(connection, run)
            if ended_at is None:
                return []
            until = {tool: Instant(ended_at + duration) for tool, duration in kept.items()}
            keys = select_of_run(connection, run, [tool for tool in until if until[tool] <= at], limit)
            _end_epoch_of_early(connection, at, keys)
            _expire(connection, at, keys)
            if len(keys) < limit:
                later = [moment for moment in until.values() if moment > at]
                again = Instant(min([*later, at + look_again]))
                _look_again(connection, run, ended_at, again, at)
            return keys

        return await self._database.write(work)

    async def empty(self, run: RunId, limit: int) -> bool:
        """Delete what an expired run has besides its effects, up to so many rows of a kind; say whether it has more."""

        def work(connection: Connection, _at: Instant) -> bool:
            if not _hold_expired(connection, run):
                return False
            went = [_forget(connection, run, number, limit) for number in _OF_RUN]
            if max(went) >= limit:
                return True
            connection.execute(sa.delete(loops).where(loops.c.run_id == run))
            _update_run(connection, run, {"kept_until": None})
            return False

        return await self._database.write(work)


def _end_epoch_of_early(connection: Connection, at: Instant, keys: Sequence[Key]) -> None:
    """Let nobody believe any more what is kept elsewhere of effects that go earlier than they say themselves."""
    tenant = select_tenant_of_early(connection, keys, at) if keys else None
    if tenant is not None:
        update_epoch(connection, tenant)


def _expire(connection: Connection, at: Instant, keys: Sequence[Key]) -> None:
    if keys:
        _bury(connection, at, keys)
        _forget_beside(connection, keys)


def _look_again(connection: Connection, run: RunId, ended_at: Instant, again: Instant, at: Instant) -> None:
    if _has_kept(connection, run):
        _update_run(connection, run, {"kept_until": again})
    elif at < ended_at + KEPT_IN_RUN and _has_more(connection, run):
        _update_run(connection, run, {"kept_until": Instant(ended_at + KEPT_IN_RUN)})
    else:
        _update_run(connection, run, {"expired_at": at, "kept_until": at})


def select_oldest(connection: Connection, after: Oldest | None) -> Oldest | None:
    """Select the oldest final effect that has no run and is kept, of the first tool behind another."""
    place = (effects.c.tenant, effects.c.tool)
    statement = sa.select(*place, effects.c.ended_at, database_now()).where(KEPT_ALONE)
    if after is not None:
        statement = statement.where(sa.tuple_(*place) > sa.tuple_(sa.literal(after.tenant), sa.literal(after.tool)))
    row = connection.execute(statement.order_by(*place, effects.c.ended_at).limit(1)).first()
    if row is None:
        return None
    tenant, tool, ended_at, at = row
    return Oldest(tenant=TenantId(tenant), tool=tool, ended_at=Instant(ended_at), at=Instant(at))


def select_alone(connection: Connection, tenant: TenantId, tool: str, until: Instant, limit: int) -> list[Key]:
    """Select the final effects of a tool that have no run, are kept and ended by then, oldest first; hold them."""
    statement = (
        sa.select(effects.c.key)
        .where(KEPT_ALONE, effects.c.tenant == tenant, effects.c.tool == tool, effects.c.ended_at <= until)
        .order_by(effects.c.ended_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [Key(key) for key in connection.execute(statement).scalars()]


def select_due(connection: Connection, limit: int) -> list[tuple[RunId, TenantId]]:
    """Select the runs that are to be looked at by now, longest due first."""
    statement = (
        sa.select(runs.c.id, runs.c.tenant)
        .where(KEPT_RUNS, runs.c.kept_until <= database_now())
        .order_by(runs.c.kept_until)
        .limit(limit)
    )
    return [(RunId(run), TenantId(tenant)) for run, tenant in connection.execute(statement)]


def _select_tools(connection: Connection, chosen: Sequence[RunId]) -> dict[RunId, list[str]]:
    """Select the tools of the effects of each run that are kept."""
    found: dict[RunId, list[str]] = defaultdict(list)
    statement = (
        sa.select(effects.c.run_id, effects.c.tool)
        .where(effects.c.run_id.in_(chosen), effects.c.expired_at.is_(None))
        .distinct()
    )
    for run, tool in connection.execute(statement) if chosen else ():
        found[RunId(run)].append(tool)
    return found


def _hold_ended(connection: Connection, run: RunId) -> Instant | None:
    """Select when the run ended, unless it has expired; hold it."""
    statement = sa.select(runs.c.ended_at).where(runs.c.id == run, runs.c.expired_at.is_(None))
    return connection.execute(statement.with_for_update()).scalar()


def _hold_expired(connection: Connection, run: RunId) -> bool:
    """Select whether a run has expired and is not empty yet; hold it."""
    is_left = (runs.c.expired_at.is_not(None), runs.c.kept_until.is_not(None))
    statement = sa.select(runs.c.id).where(runs.c.id == run, *is_left)
    return connection.execute(statement.with_for_update()).first() is not None


def select_of_run(connection: Connection, run: RunId, tools: Sequence[str], limit: int) -> list[Key]:
    """Select the final effects of a run and some tools that are kept, and of no saga that goes on; hold them."""
    unfinished = (
        sa.select(saga_steps.c.key)
        .join(sagas, sagas.c.id == saga_steps.c.saga)
        .where(saga_steps.c.key == effects.c.key, sagas.c.ended_at.is_(None))
    )
    statement = (
        sa.select(effects.c.key)
        .where(effects.c.run_id == run, effects.c.tool.in_(tools), effects.c.state.in_((SUCCEEDED, FAILED)))
        .where(effects.c.expired_at.is_(None), ~unfinished.exists())
        .order_by(effects.c.run_id, effects.c.step)
        .limit(limit)
        .with_for_update(of=effects)
    )
    return [Key(key) for key in connection.execute(statement).scalars()] if tools else []


def _bury(connection: Connection, at: Instant, keys: Sequence[Key]) -> None:
    """Leave of these effects what names them, how they ended, and when."""
    connection.execute(
        sa.update(effects).where(effects.c.key.in_(keys)).values(**_GONE, expired_at=at, version=effects.c.version + 1)
    )


def _forget_beside(connection: Connection, keys: Sequence[Key]) -> None:
    """Remove what stands beside these effects: earlier attempts, evidence, compensations, what persons were shown."""
    for table in (attempts, evidence):
        connection.execute(sa.delete(table).where(table.c.key.in_(keys)))
    connection.execute(sa.update(approvals).where(approvals.c.key.in_(keys)).values(**_UNSEEN))
    connection.execute(sa.update(saga_steps).where(saga_steps.c.key.in_(keys)).values(compensation=None))


def select_ended_holds(connection: Connection, until: Instant, limit: int) -> list[UUID]:
    """Select holds that were released, lost or ran out by then, and of no effect that goes on; hold them."""
    goes_on = sa.exists().where(effects.c.key == holds.c.key, effects.c.state.not_in((SUCCEEDED, FAILED)))
    statement = (
        sa.select(holds.c.id)
        .where(ENDED_HOLDS, holds.c.ended_at <= until, ~goes_on)
        .order_by(holds.c.ended_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return list(connection.execute(statement).scalars())


def select_past_holds(connection: Connection, until: Instant, limit: int) -> list[UUID]:
    """Select committed holds whose time was over by then; hold them."""
    statement = (
        sa.select(holds.c.id)
        .where(COMMITTED_HOLDS, holds.c.ends_at <= until)
        .order_by(holds.c.ends_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return list(connection.execute(statement).scalars())


def _forget(connection: Connection, run: RunId, number: sa.Column[Any], limit: int) -> int:
    """Remove what some numbers of a run have, where a column numbers its rows; return how many rows went."""
    table = number.table
    some = sa.select(number).where(table.c.run_id == run).limit(limit)
    statement = sa.delete(table).where(table.c.run_id == run, number.in_(some))
    return connection.execute(statement).rowcount


def _has_kept(connection: Connection, run: RunId) -> bool:
    """Select whether the run has an effect that is kept."""
    kept = sa.select(effects.c.key).where(effects.c.run_id == run, effects.c.expired_at.is_(None))
    return bool(connection.execute(sa.select(kept.exists())).scalar_one())


def _has_more(connection: Connection, run: RunId) -> bool:
    """Select whether more is kept of the run than its effects."""
    given = [sa.exists().where(number.table.c.run_id == run) for number in _OF_RUN]
    return bool(connection.execute(sa.select(sa.or_(*given))).scalar_one())


def _update_run(connection: Connection, run: RunId, values: Mapping[str, Instant | None]) -> None:
    """Write down when the run is to be looked at again, or never; and that it has expired."""
    connection.execute(sa.update(runs).where(runs.c.id == run).values(**values))
