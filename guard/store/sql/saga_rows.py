"""How rows become sagas and their steps, and steps become rows."""

from typing import Any, Final

import msgspec
import sqlalchemy as sa

from guard.core.effects import Instant, Key, TenantId
from guard.core.sagas import LATE, DoneStep, Saga, SagaStep
from guard.store.sql.codes import SAGA_STATES, STEP_STATES
from twiceshy_contract.policies import Compensation

_compensations: Final = msgspec.json.Decoder(Compensation)


def saga_of(row: sa.Row[Any]) -> Saga:
    """Return the saga of a row of `sagas`."""
    return Saga(
        id=row.id,
        tenant=TenantId(row.tenant),
        name=row.name,
        run=row.run,
        state=SAGA_STATES[row.state],
        started_at=Instant(row.started_at),
        deadline=row.deadline,
        reason=row.reason,
        failed_at=row.failed_at,
        changed_at=row.changed_at,
        ended_at=row.ended_at,
    )


def at_its_deadline(saga: Saga, at: Instant) -> Saga:
    """Return a saga as it stands at a moment: one whose deadline has passed is to be taken back."""
    if not saga.is_late(at):
        return saga
    return msgspec.structs.replace(saga, state="compensating", reason=LATE, failed_at=at, changed_at=at)


def step_of(row: sa.Row[Any]) -> SagaStep:
    """Return the step of a row of `saga_steps`."""
    return SagaStep(
        key=Key(row.key),
        number=row.number,
        tool=row.tool,
        enlisted_at=Instant(row.enlisted_at),
        compensation=None if row.compensation is None else _compensations.decode(row.compensation),
        state=STEP_STATES[row.state],
        round=row.round,
        compensation_key=None if row.compensation_key is None else Key(row.compensation_key),
        note=row.note,
        misfit=row.misfit,
        done=None if row.done_at is None else DoneStep(row.done_at, row.done_step),
    )
