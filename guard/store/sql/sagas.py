"""Sagas: every write locks the saga's row first and judges its deadline, so that no step slips past its end."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Duration, Instant, Key, TenantId
from guard.core.sagas import Mark, Saga, SagaStep
from guard.ports.sagas import Enlisted, NewStep, SagaFilter, SagaRecord, Unfinished
from guard.store.sql.codes import SAGA_STATE_CODES, STEP_STATE_CODES
from guard.store.sql.cursors import AfterSaga, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.identifiers import new_id
from guard.store.sql.policy_tables import sagas
from guard.store.sql.saga_listings import (
    RUNNING,
    select_late,
    select_page,
    select_proven,
    select_unfinished,
)
from guard.store.sql.saga_records import select_open_step, select_record, select_record_left
from guard.store.sql.saga_rows import at_its_deadline, saga_of
from guard.store.sql.saga_steps import (
    count_steps,
    has_enlisted,
    insert_step,
    select_holder,
    select_step,
    take_over,
    update_compensation,
    update_misfit,
    update_offer,
    update_round,
    update_step,
)
from twiceshy_contract.sagas import SagaState

_encoder = msgspec.json.Encoder()
_ENLISTED = STEP_STATE_CODES["enlisted"]


class SqlSagas:
    """The port's sagas over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def open(self, tenant: TenantId, name: str, run: str, deadline: Duration | None) -> Saga:
        """Find the saga of a name, or make it, running."""

        def work(connection: Connection, at: Instant) -> Saga | None:
            _insert_saga(connection, at, {"tenant": tenant, "name": name, "run": run}, deadline)
            return _hold(connection, tenant, name, at)

        saga = await self._database.write(work)
        if saga is None:
            raise LookupError(f"the store opened no saga {name!r}")
        return saga

    async def read(self, tenant: TenantId, name: str) -> SagaRecord | None:
        """Read a saga with its steps and their effects."""
        return await self._database.read_at_once(lambda connection: select_record(connection, tenant, name))

    async def read_left(self, tenant: TenantId, name: str) -> SagaRecord | None:
        """Read a saga with the steps from which it follows what it needs next, and their effects."""
        return await self._database.read_at_once(lambda connection: select_record_left(connection, tenant, name))

    async def find(self, tenant: TenantId, name: str) -> Saga | None:
        """Find a saga as it stands once every write that is under way has ended."""
        return await self._database.write(lambda connection, at: _hold(connection, tenant, name, at))

    async def enlist(self, tenant: TenantId, name: str, step: NewStep) -> Enlisted | None:
        """Enlist an effect in a running saga, unless another has it; None: there is no such saga."""

        def work(connection: Connection, at: Instant) -> Enlisted | None:
            saga = _hold(connection, tenant, name, at)
            return None if saga is None else _enlist(connection, saga, step, at)

        return await self._database.write(work)

    async def fail(self, tenant: TenantId, name: str, reason: str) -> Saga | None:
        """Let a running saga be taken back; return it as it stands, or None where there is none."""

        def work(connection: Connection, at: Instant) -> Saga | None:
            saga = _hold(connection, tenant, name, at)
            if saga is None or saga.state != "running":
                return saga
            return _changed(connection, saga, state="compensating", reason=reason, failed_at=at, changed_at=at)

        return await self._database.write(work)

    async def complete(self, tenant: TenantId, name: str) -> Saga | Unfinished | None:
        """End a running saga well, unless a step of it is begun and not final; return it, or None where there is none.

        No step is enlisted meanwhile: that waits for the saga's row.
        """

        def work(connection: Connection, at: Instant) -> Saga | Unfinished | None:
            saga = _hold(connection, tenant, name, at)
            if saga is None or saga.state != "running":
                return saga
            open_step = select_open_step(connection, saga.id)
            if open_step is not None:
                return Unfinished(saga=saga, key=open_step)
            return _changed(connection, saga, state="completed", ended_at=at)

        return await self._database.write(work)

    async def mark(self, saga: UUID, marks: Sequence[Mark], state: SagaState) -> Saga:
        """Write down what became of steps, where they stand as they were seen, and the state of a saga that failed.

        The saga is `compensated` only if no step of it is enlisted any more.
        """

        def work(connection: Connection, at: Instant) -> Saga:
            held = _hold_known(connection, saga, at)
            for mark in marks:
                update_step(connection, saga, mark)
            is_early = state == "compensated" and has_enlisted(connection, saga)
            now = "compensating" if is_early else state
            if held.state in ("running", "completed") or (held.state == now and not marks):
                return held
            ended_at = (held.ended_at or at) if now == "compensated" else None
            changed_at = at if marks else held.changed_at
            return _changed(connection, held, state=now, ended_at=ended_at, changed_at=changed_at)

        return await self._database.write(work)

    async def pursue(self, saga: UUID, step: Key, compensation: Key) -> None:
        """Write down which effect takes a step back."""
        await self._database.write(lambda connection, _at: update_compensation(connection, saga, step, compensation))

    async def retry(self, saga: UUID, step: SagaStep, note: str) -> None:
        """Let a step's compensation be another effect, the next round; once for a step as it was seen."""

        def work(connection: Connection, at: Instant) -> None:
            held = _hold_known(connection, saga, at)
            update_round(connection, saga, step, note)
            _changed(connection, held, changed_at=at)

        await self._database.write(work)

    async def offer(self, saga: UUID, step: Key, note: str) -> None:
        """Let the call that is due for a step be tried anew, as if it had become due now."""

        def work(connection: Connection, at: Instant) -> None:
            held = _hold_known(connection, saga, at)
            update_offer(connection, saga, step, note)
            _changed(connection, held, changed_at=at)

        await self._database.write(work)

    async def misfit(self, saga: UUID, step: SagaStep, why: str) -> None:
        """Write down why the call that is due for a step could not be made, where the step stands as it was seen."""
        await self._database.write(lambda connection, _at: update_misfit(connection, saga, step, why))

    async def restless(self, limit: int) -> list[tuple[TenantId, str]]:
        """Name sagas whose deadline has passed while they run, or of which a step that was passed over is done."""

        def work(connection: Connection) -> list[tuple[TenantId, str]]:
            found = [*select_late(connection, limit), *select_proven(connection, limit)]
            return list(dict.fromkeys(found))

        return await self._database.read_at_once(work)

    async def unfinished(self, limit: int, after: UUID | None) -> list[Saga]:
        """Return sagas that are being taken back or are stuck, oldest first."""
        return await self._database.read(lambda connection: select_unfinished(connection, limit, after))

    async def page(self, tenant: TenantId, chosen: SagaFilter) -> tuple[list[Saga], str | None]:
        """Return sagas, newest first, and the cursor of the next page. Raises ValueError for a foreign cursor."""
        place = None if chosen.after is None else place_of(chosen.after)
        if not isinstance(place, AfterSaga | None):
            raise ValueError("This is a cursor of another listing: take `next` of the page of sagas before.")
        last = None if place is None else place.saga
        found = await self._database.read(lambda connection: select_page(connection, tenant, chosen, last))
        if len(found) <= chosen.limit:
            return found, None
        return found[: chosen.limit], cursor_of(AfterSaga(found[chosen.limit - 1].id))


def _enlist(connection: Connection, saga: Saga, step: NewStep, at: Instant) -> Enlisted:
    if saga.run != step.run:
        return Enlisted(saga=saga, became="of_another_run")
    found = select_step(connection, step.key)
    is_known = found is not None and found.saga == saga.id
    if saga.state != "running":
        return Enlisted(saga=saga, became="over", is_known=is_known)
    if is_known:
        return Enlisted(saga=saga, became="enlisted", is_known=True)
    if found is not None and found.state == STEP_STATE_CODES["compensated"]:
        return Enlisted(saga=saga, became="taken_back")
    row = {
        "saga": saga.id,
        "number": count_steps(connection, saga.id) + 1,
        "tool": step.tool,
        "compensation": None if step.compensation is None else _encoder.encode(step.compensation),
        "state": _ENLISTED,
        "compensation_key": None,
        "round": 1,
        "enlisted_at": at,
        "note": None,
        "misfit": None,
        "done_at": None,
        "done_step": None,
    }
    is_ours = insert_step(connection, step.key, row) or take_over(connection, step.key, row)
    if is_ours:
        return Enlisted(saga=saga, became="enlisted", is_known=True)
    return Enlisted(saga=saga, became="of_another", other=select_holder(connection, step.key))


def _insert_saga(connection: Connection, at: Instant, named: dict[str, Any], deadline: Duration | None) -> None:
    """Make a saga unless there is one of its name."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    row = {
        "id": new_id(at),
        "state": RUNNING,
        "deadline": None if deadline is None else at + deadline,
        "started_at": at,
        **named,
    }
    connection.execute(dialect.insert(sagas).values(row).on_conflict_do_nothing())


def _hold(connection: Connection, tenant: TenantId, name: str, at: Instant) -> Saga | None:
    """Select a saga by name, for no one else to change, and let its deadline pass where it has."""
    statement = sa.select(sagas).where(sagas.c.tenant == tenant, sagas.c.name == name).with_for_update()
    row = connection.execute(statement).first()
    return None if row is None else _judged(connection, saga_of(row), at)


def _hold_known(connection: Connection, saga: UUID, at: Instant) -> Saga:
    """Select a saga by its id, for no one else to change, and let its deadline pass where it has."""
    row = connection.execute(sa.select(sagas).where(sagas.c.id == saga).with_for_update()).one()
    return _judged(connection, saga_of(row), at)


def _judged(connection: Connection, saga: Saga, at: Instant) -> Saga:
    after = at_its_deadline(saga, at)
    if after is not saga:
        _update_saga(connection, after)
    return after


def _changed(connection: Connection, saga: Saga, **changes: Any) -> Saga:
    after = msgspec.structs.replace(saga, **changes)
    _update_saga(connection, after)
    return after


def _update_saga(connection: Connection, saga: Saga) -> None:
    """Write the state of a saga that is held, and why and since when it has it."""
    connection.execute(
        sa.update(sagas)
        .where(sagas.c.id == saga.id)
        .values(
            state=SAGA_STATE_CODES[saga.state],
            reason=saga.reason,
            failed_at=saga.failed_at,
            changed_at=saga.changed_at,
            ended_at=saga.ended_at,
        )
    )
