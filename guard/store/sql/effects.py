"""Effects: batches go to the database's own verbs; listings are one text for both databases."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import AttemptToken, Duration, Effect, Evidence, Instant, Key, RunId, TenantId
from guard.ports.steps import Step, StepResult
from guard.ports.store import EffectFilter, Newest, Rival, Tally
from guard.store.sql.clock import database_now
from guard.store.sql.codes import EXECUTING, IN_DOUBT, STATE_CODES
from guard.store.sql.cursors import AfterKey, AfterStep, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.epochs import select_tenant_of_recent, update_epoch
from guard.store.sql.instances import select_newest, select_rival, update_delivered, update_slot
from guard.store.sql.rows import effect_of, evidence_of
from guard.store.sql.tables import attempts, effects, evidence, runs

_MANY: Final = 1000
"""Keys that one statement takes."""


class SqlEffects:
    """The port's effects over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    @property
    def lanes(self) -> int:
        """How many batches may be in flight at once."""
        return self._database.lanes

    async def apply(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        """Apply all steps in one transaction; answer each in its place.

        Raises StoreUnavailable (send the same batch again) and StatementFailed (halve the batch).
        """
        return await self._database.apply(lane, steps) if steps else []

    async def newest(self, slot: bytes, occurrence: int, token: AttemptToken, arguments_digest: bytes) -> Newest:
        """Return what is known of the instances of a slot that is looked up, as of one moment."""
        return await self._database.read(
            lambda connection: select_newest(connection, slot, occurrence, token, arguments_digest)
        )

    async def keep_slot(self, key: Key, slot: bytes) -> None:
        """Keep the slot with an effect that was made before instances of it were looked up."""

        def work(connection: Connection, at: Instant) -> None:
            update_slot(connection, key, slot)
            tenant = select_tenant_of_recent(connection, key, at)
            if tenant is not None:  # kept elsewhere, it would still say that no newer instance may be meant
                update_epoch(connection, tenant)

        await self._database.write(work)

    async def rival(self, slot: bytes, besides: Key) -> Rival | None:
        """Return the instance of a slot that is looked up, other than this one, that was or may be applied last."""
        return await self._database.read(lambda connection: select_rival(connection, slot, besides))

    async def deliver(self, tenant: TenantId, run: RunId, keys: Sequence[Key]) -> None:
        """Mark those of these effects that are final and of the run: their outcomes are known to the run's agent."""
        await self._database.write(lambda connection, _at: update_delivered(connection, tenant, run, keys))

    async def overdue(self, limit: int) -> list[Key]:
        """Return keys of executing effects whose lease has run out, longest overdue first."""
        return await self._database.read(lambda connection: _select_overdue(connection, limit))

    async def page(self, tenant: TenantId, chosen: EffectFilter) -> tuple[list[Effect], str | None]:
        """Return effects, newest runs first and newest steps first, and the cursor of the next page.

        Effects without a run come last, newest first. Raises ValueError for a cursor that this store did not make.
        """
        after = None if chosen.after is None else place_of(chosen.after)
        if not isinstance(after, AfterStep | AfterKey | None):
            raise ValueError("This is a cursor of another listing: take `next` of the page of effects before.")
        found = await self._database.read_at_once(lambda connection: _select_page(connection, tenant, chosen, after))
        if len(found) <= chosen.limit:
            return found, None
        return found[: chosen.limit], cursor_of(_place(found[chosen.limit - 1]))

    async def evidence(self, key: Key) -> list[Evidence]:
        """Return the contradicting proof that was kept of an effect, oldest first."""
        return await self._database.read(lambda connection: _select_evidence(connection, key))

    async def tally(self, tenant: TenantId) -> Tally:
        """Count the effects in open doubt and in execution."""
        return await self._database.read(lambda connection: _select_tally(connection, tenant))


def _place(effect: Effect) -> AfterStep | AfterKey:
    intent = effect.intent
    if intent.run_id is None or intent.step is None:
        return AfterKey(intent.began_at, intent.key)
    return AfterStep(intent.run_id, intent.step)


def _select_page(
    connection: Connection, tenant: TenantId, chosen: EffectFilter, after: AfterStep | AfterKey | None
) -> list[Effect]:
    """Return the effects that come next, one more than the page holds: those of runs, then those without."""
    wanted = chosen.limit + 1
    rows: list[Any] = []
    if not isinstance(after, AfterKey):
        rows += _select_of_runs(connection, _chosen(tenant, chosen), after, wanted)
    if len(rows) < wanted and chosen.run is None:
        place = after if isinstance(after, AfterKey) else None
        rows += _select_without_run(connection, _chosen(tenant, chosen), place, wanted - len(rows))
    earlier = _select_attempts(connection, [row.key for row in rows if row.earlier])
    return [effect_of(row, earlier[row.key]) for row in rows]


def _chosen(tenant: TenantId, chosen: EffectFilter) -> sa.Select[Any]:
    statement = sa.select(effects).where(effects.c.tenant == tenant)
    if chosen.state is not None:
        statement = statement.where(effects.c.state == _literal(STATE_CODES[chosen.state]))
    if chosen.state == "in_doubt" and not chosen.closed:
        statement = statement.where(effects.c.closed.is_(sa.false()))
    if chosen.tool is not None:
        statement = statement.where(effects.c.tool == chosen.tool)
    if chosen.run is not None:
        of_run = sa.select(runs.c.id).where(runs.c.tenant == tenant, runs.c.name == chosen.run)
        statement = statement.where(effects.c.run_id == of_run.scalar_subquery())
    return statement


def _select_of_runs(
    connection: Connection, statement: sa.Select[Any], after: AfterStep | None, limit: int
) -> Sequence[sa.Row[Any]]:
    """Select the effects that have a run and come next, newest runs and newest steps first."""
    statement = statement.where(effects.c.run_id.is_not(None))
    if after is not None:
        statement = statement.where(_before(effects.c.run_id, after.run, effects.c.step, after.step))
    statement = statement.order_by(effects.c.run_id.desc(), effects.c.step.desc()).limit(limit)
    return connection.execute(statement).all()


def _select_without_run(
    connection: Connection, statement: sa.Select[Any], after: AfterKey | None, limit: int
) -> Sequence[sa.Row[Any]]:
    """Select the effects that have no run and come next, newest first."""
    statement = statement.where(effects.c.run_id.is_(None))
    if after is not None:
        statement = statement.where(_before(effects.c.began_at, after.began_at, effects.c.key, after.key))
    statement = statement.order_by(effects.c.began_at.desc(), effects.c.key.desc()).limit(limit)
    return connection.execute(statement).all()


def _before(
    first: sa.Column[Any], first_value: UUID | int, second: sa.Column[Any], second_value: int | bytes
) -> sa.ColumnElement[bool]:
    """Say that a pair of columns stands before a pair of values."""
    return sa.tuple_(first, second) < sa.tuple_(
        sa.literal(first_value, first.type), sa.literal(second_value, second.type)
    )


def select_effects(connection: Connection, tenant: TenantId, keys: Sequence[Key]) -> dict[Key, Effect]:
    """Select effects by their keys, in pieces that every driver takes."""
    rows: list[Any] = []
    for first in range(0, len(keys), _MANY):
        chosen = effects.c.key.in_(keys[first : first + _MANY])
        rows += connection.execute(sa.select(effects).where(effects.c.tenant == tenant, chosen)).all()
    earlier = _select_attempts(connection, [row.key for row in rows if row.earlier])
    return {Key(row.key): effect_of(row, earlier[row.key]) for row in rows}


def _select_attempts(connection: Connection, keys: Sequence[bytes]) -> dict[bytes, list[Any]]:
    """Select the attempts that came before the latest of each effect, in the order of their fences."""
    found: dict[bytes, list[Any]] = defaultdict(list)
    if keys:
        columns = (column for column in attempts.columns if column.name != "key")
        statement = (
            sa.select(attempts.c.key, *columns)
            .where(attempts.c.key.in_(keys))
            .order_by(attempts.c.key, attempts.c.fence, attempts.c.granted_at.desc(), attempts.c.token)
        )
        for key, *row in connection.execute(statement):
            found[key].append(row)
    return found


def _select_overdue(connection: Connection, limit: int) -> list[Key]:
    """Select the executing effects whose lease has run out, longest overdue first."""
    statement = (
        sa.select(effects.c.key)
        .where(effects.c.state == _literal(EXECUTING), effects.c.lease_expires_at <= database_now())
        .order_by(effects.c.lease_expires_at)
        .limit(limit)
    )
    return [Key(key) for key in connection.execute(statement).scalars()]


def _select_evidence(connection: Connection, key: Key) -> list[Evidence]:
    """Select the proof that contradicts the effect, oldest first."""
    statement = (
        sa.select(evidence.c.at, evidence.c.token, evidence.c.kind, evidence.c.body)
        .where(evidence.c.key == key)
        .order_by(evidence.c.number)
    )
    return [evidence_of(row) for row in connection.execute(statement)]


def _select_tally(connection: Connection, tenant: TenantId) -> Tally:
    """Count the effects in open doubt, and those in execution, each by its own partial index."""
    counted = sa.select(sa.func.count()).select_from(effects).where(effects.c.tenant == tenant)
    doubtful = counted.where(effects.c.state == _literal(IN_DOUBT), effects.c.closed.is_(sa.false()))
    executing = counted.where(effects.c.state == _literal(EXECUTING))
    oldest = executing.with_only_columns(sa.func.min(effects.c.granted_at))
    columns = (doubtful.scalar_subquery(), executing.scalar_subquery(), oldest.scalar_subquery(), database_now())
    in_doubt, executed, since, now = connection.execute(sa.select(*columns)).one()
    age = Duration(0 if since is None else max(0, now - since))
    return Tally(in_doubt=in_doubt, executing=executed, oldest_lease=age)


def _literal(code: int) -> sa.ColumnElement[int]:
    """Return a code as text of the statement: the planner then sees that a partial index fits."""
    return sa.literal_column(str(code), sa.SmallInteger)
