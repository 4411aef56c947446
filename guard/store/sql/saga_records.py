"""What is read of a saga: itself, its steps and their effects, as of one moment."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant, Key, TenantId
from guard.core.sagas import Saga, SagaStep
from guard.ports.sagas import SagaRecord
from guard.store.sql.clock import database_now
from guard.store.sql.codes import EXECUTING, IN_DOUBT, PENDING, STEP_STATE_CODES
from guard.store.sql.effects import select_effects
from guard.store.sql.policy_tables import saga_steps, sagas
from guard.store.sql.saga_rows import saga_of, step_of
from guard.store.sql.tables import effects

_ENLISTED: Final = STEP_STATE_CODES["enlisted"]
_SETTLED: Final = (STEP_STATE_CODES["compensated"], STEP_STATE_CODES["skipped"])


def select_record(connection: Connection, tenant: TenantId, name: str) -> SagaRecord | None:
    """Select a saga with its steps and all their effects."""
    found = _select_named(connection, tenant, name)
    return None if found is None else _record(connection, *found, select_steps(connection, found[0].id))


def select_record_left(connection: Connection, tenant: TenantId, name: str) -> SagaRecord | None:
    """Select a saga with the steps that are not settled, of those known to be done the last, and their effects."""
    found = _select_named(connection, tenant, name)
    return None if found is None else _record(connection, *found, select_steps_left(connection, found[0].id))


def _record(connection: Connection, saga: Saga, at: Instant, steps: Sequence[SagaStep]) -> SagaRecord:
    keys = {key for step in steps for key in (step.key, step.compensation_key) if key is not None}
    found = select_effects(connection, saga.tenant, sorted(keys))
    return SagaRecord(saga=saga, steps=tuple(steps), effects=found, at=at)


def _select_named(connection: Connection, tenant: TenantId, name: str) -> tuple[Saga, Instant] | None:
    """Select a saga by its name, and the time."""
    statement = sa.select(sagas, database_now().label("now"))
    row = connection.execute(statement.where(sagas.c.tenant == tenant, sagas.c.name == name)).first()
    return None if row is None else (saga_of(row), Instant(row.now))


def select_steps(connection: Connection, saga: UUID) -> list[SagaStep]:
    """Select the steps of a saga in the order in which they were enlisted."""
    statement = sa.select(saga_steps).where(saga_steps.c.saga == saga).order_by(saga_steps.c.number)
    return [step_of(row) for row in connection.execute(statement)]


def select_steps_left(connection: Connection, saga: UUID) -> list[SagaStep]:
    """Select the steps that are not settled; of those which are known to be done, the one that ended last."""
    of_saga = saga_steps.c.saga == saga
    order: tuple[sa.ColumnElement[Any], ...] = (
        saga_steps.c.done_at.desc(), saga_steps.c.done_step.desc(), saga_steps.c.number.desc(),
    )  # fmt: skip
    is_done = (saga_steps.c.state == _ENLISTED, saga_steps.c.done_at.is_not(None))
    last = sa.select(saga_steps.c.key).where(of_saga, *is_done).order_by(*order).limit(1).scalar_subquery()
    is_left = sa.and_(saga_steps.c.state.not_in(_SETTLED), ~sa.and_(*is_done))
    statement = sa.select(saga_steps).where(of_saga, sa.or_(is_left, saga_steps.c.key == last))
    return [step_of(row) for row in connection.execute(statement.order_by(saga_steps.c.number))]


def select_open_step(connection: Connection, saga: UUID) -> Key | None:
    """Select the first step of a saga whose effect is begun and not final."""
    statement = (
        sa.select(saga_steps.c.key)
        .join(effects, effects.c.key == saga_steps.c.key)
        .where(saga_steps.c.saga == saga, effects.c.state.in_((PENDING, EXECUTING, IN_DOUBT)))
        .order_by(saga_steps.c.number)
        .limit(1)
    )
    key = connection.execute(statement).scalar()
    return None if key is None else Key(key)
