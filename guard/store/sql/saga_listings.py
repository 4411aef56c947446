"""Which sagas need to be looked at, and which a listing shows."""

from typing import Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import TenantId
from guard.core.sagas import Saga
from guard.ports.sagas import SagaFilter
from guard.store.sql.clock import database_now
from guard.store.sql.codes import SAGA_STATE_CODES, STEP_STATE_CODES, SUCCEEDED
from guard.store.sql.policy_tables import saga_steps, sagas
from guard.store.sql.saga_rows import saga_of
from guard.store.sql.tables import effects

RUNNING: Final = SAGA_STATE_CODES["running"]
PASSED_OVER: Final = STEP_STATE_CODES["passed_over"]
UNFINISHED: Final = (SAGA_STATE_CODES["compensating"], SAGA_STATE_CODES["stuck"])


def select_late(connection: Connection, limit: int) -> list[tuple[TenantId, str]]:
    """Select the running sagas whose deadline has passed, longest overdue first."""
    statement = (
        sa.select(sagas.c.tenant, sagas.c.name)
        .where(sagas.c.state == _literal(RUNNING), sagas.c.deadline.is_not(None), sagas.c.deadline <= database_now())
        .order_by(sagas.c.deadline)
        .limit(limit)
    )
    return [(TenantId(tenant), name) for tenant, name in connection.execute(statement)]


def select_proven(connection: Connection, limit: int) -> list[tuple[TenantId, str]]:
    """Select the sagas of which a step that was passed over has succeeded after all."""
    statement = (
        sa.select(sagas.c.tenant, sagas.c.name)
        .select_from(saga_steps)
        .join(effects, effects.c.key == saga_steps.c.key)
        .join(sagas, sagas.c.id == saga_steps.c.saga)
        .where(saga_steps.c.state == _literal(PASSED_OVER), effects.c.state == SUCCEEDED)
        .limit(limit)
    )
    return [(TenantId(tenant), name) for tenant, name in connection.execute(statement)]


def select_unfinished(connection: Connection, limit: int, after: UUID | None) -> list[Saga]:
    """Select the sagas that are being taken back or are stuck, oldest first."""
    statement = sa.select(sagas).where(sagas.c.state.in_(UNFINISHED)).order_by(sagas.c.id).limit(limit)
    if after is not None:
        statement = statement.where(sagas.c.id > after)
    return [saga_of(row) for row in connection.execute(statement)]


def select_page(connection: Connection, tenant: TenantId, chosen: SagaFilter, last: UUID | None) -> list[Saga]:
    """Select the sagas that come next, newest first, one more than the page holds."""
    statement = sa.select(sagas).where(sagas.c.tenant == tenant).order_by(sagas.c.id.desc()).limit(chosen.limit + 1)
    if chosen.state is not None:
        statement = statement.where(sagas.c.state == SAGA_STATE_CODES[chosen.state])
    if chosen.run is not None:
        statement = statement.where(sagas.c.run == chosen.run)
    if last is not None:
        statement = statement.where(sagas.c.id < last)
    return [saga_of(row) for row in connection.execute(statement)]


def _literal(code: int) -> sa.ColumnElement[int]:
    """Return a code as text of the statement: the planner then sees that a partial index fits."""
    return sa.literal_column(str(code), sa.SmallInteger)
