"""The statements about one step of a saga. Each says itself in which state it must stand."""

from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Key
from guard.core.sagas import Mark, SagaStep
from guard.store.sql.codes import STEP_STATE_CODES
from guard.store.sql.policy_tables import saga_steps, sagas

_ENLISTED: Final = STEP_STATE_CODES["enlisted"]
_LET_GO: Final = (STEP_STATE_CODES["skipped"], STEP_STATE_CODES["passed_over"])


def select_step(connection: Connection, key: Key) -> sa.Row[Any] | None:
    """Select whose step an effect is, and what became of it there."""
    return connection.execute(sa.select(saga_steps).where(saga_steps.c.key == key)).first()


def select_holder(connection: Connection, key: Key) -> str | None:
    """Select the name of the saga whose step an effect is."""
    holder = sa.select(sagas.c.name).join(saga_steps, saga_steps.c.saga == sagas.c.id).where(saga_steps.c.key == key)
    return connection.execute(holder).scalar()


def count_steps(connection: Connection, saga: UUID) -> int:
    """Select the highest number of a step of the saga; 0 where it has none."""
    highest = sa.select(sa.func.max(saga_steps.c.number)).where(saga_steps.c.saga == saga)
    return int(connection.execute(highest).scalar() or 0)


def insert_step(connection: Connection, key: Key, row: dict[str, Any]) -> bool:
    """Enlist an effect unless a saga has it; say whether it was enlisted."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(saga_steps).values(key=key, **row).on_conflict_do_nothing().returning(saga_steps.c.key)
    return connection.execute(statement).first() is not None


def take_over(connection: Connection, key: Key, row: dict[str, Any]) -> bool:
    """Enlist an effect that another saga has let go of; say whether there was one."""
    let_go = (saga_steps.c.key == key, saga_steps.c.state.in_(_LET_GO))
    statement = sa.update(saga_steps).where(*let_go).values(row).returning(saga_steps.c.key)
    return connection.execute(statement).first() is not None


def update_step(connection: Connection, saga: UUID, mark: Mark) -> None:
    """Write down what became of a step, if it stands as it was seen."""
    seen = (saga_steps.c.saga == saga, saga_steps.c.key == mark.key, saga_steps.c.state == STEP_STATE_CODES[mark.seen])
    changed: dict[str, Any] = {"state": STEP_STATE_CODES[mark.state]}
    if mark.note is not None:
        changed["note"] = mark.note
    if mark.done is not None:
        changed |= {"done_at": mark.done.at, "done_step": mark.done.step}
    connection.execute(sa.update(saga_steps).where(*seen).values(changed))


def has_enlisted(connection: Connection, saga: UUID) -> bool:
    """Select whether a step of the saga is enlisted still."""
    enlisted = sa.select(saga_steps.c.key).where(saga_steps.c.saga == saga, saga_steps.c.state == _ENLISTED).limit(1)
    return connection.execute(enlisted).first() is not None


def update_compensation(connection: Connection, saga: UUID, step: Key, compensation: Key) -> None:
    """Write down which effect takes a step back."""
    chosen = (saga_steps.c.saga == saga, saga_steps.c.key == step)
    connection.execute(sa.update(saga_steps).where(*chosen).values(compensation_key=compensation, misfit=None))


def update_round(connection: Connection, saga: UUID, step: SagaStep, note: str) -> None:
    """Begin the next round of a step that is enlisted and in the round that was seen."""
    seen = (saga_steps.c.saga == saga, saga_steps.c.key == step.key, saga_steps.c.round == step.round)
    after = {"round": step.round + 1, "compensation_key": None, "note": note, "misfit": None}
    connection.execute(sa.update(saga_steps).where(*seen, saga_steps.c.state == _ENLISTED).values(after))


def update_offer(connection: Connection, saga: UUID, step: Key, note: str) -> None:
    """Write down that a step which is enlisted is to be tried anew; what did not fit is forgotten."""
    chosen = (saga_steps.c.saga == saga, saga_steps.c.key == step, saga_steps.c.state == _ENLISTED)
    connection.execute(sa.update(saga_steps).where(*chosen).values(note=note, misfit=None))


def update_misfit(connection: Connection, saga: UUID, step: SagaStep, why: str) -> None:
    """Write down what does not fit, if the step is enlisted, in the round that was seen, and nothing is known yet."""
    chosen = (saga_steps.c.saga == saga, saga_steps.c.key == step.key, saga_steps.c.state == _ENLISTED)
    seen = (saga_steps.c.round == step.round, saga_steps.c.misfit.is_(None))
    connection.execute(sa.update(saga_steps).where(*chosen, *seen).values(misfit=why))
