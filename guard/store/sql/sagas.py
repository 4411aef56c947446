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
from guard.ports.sagas import Enlisted, NewStep, SagaFilter, SagaRecord
from guard.store.sql.clock import database_now
from guard.store.sql.codes import SAGA_STATE_CODES, STEP_STATE_CODES
from guard.store.sql.cursors import AfterSaga, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.identifiers import new_id
from guard.store.sql.policy_tables import saga_steps, sagas
from guard.store.sql.saga_listings import (
    PASSED_OVER,
    RUNNING,
    select_late,
    select_page,
    select_proven,
    select_unfinished,
)
from guard.store.sql.saga_rows import at_its_deadline, saga_of, step_of
from twiceshy_contract.sagas import SagaState

_encoder = msgspec.json.Encoder()
_ENLISTED = STEP_STATE_CODES["enlisted"]
_LET_GO = (STEP_STATE_CODES["skipped"], PASSED_OVER)


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
        """Read a saga with its steps."""

        def work(connection: Connection) -> SagaRecord | None:
            saga, at = _select_named(connection, tenant, name)
            if saga is None:
                return None
            steps = tuple(_select_steps(connection, saga.id))
            return SagaRecord(saga=saga, steps=steps, at=at)

        return await self._database.read_at_once(work)

    async def enlist(self, tenant: TenantId, name: str, step: NewStep) -> Enlisted | None:
        """Enlist an effect in a running saga, unless another has it; None: there is no such saga."""

        def work(connection: Connection, at: Instant) -> Enlisted | None:
            saga = _hold(connection, tenant, name, at)
            return None if saga is None else _enlist(connection, saga, step, at)

        return await self._database.write(work)

    async def fail(self, tenant: TenantId, name: str, reason: str) -> Saga | None:
        """Let a running saga be taken back; return it as it stands, or None where there is none."""
        return await self._ended(tenant, name, {"state": "compensating", "reason": reason})

    async def complete(self, tenant: TenantId, name: str) -> Saga | None:
        """End a running saga well; return it as it stands, or None where there is none."""
        return await self._ended(tenant, name, {"state": "completed"})

    async def _ended(self, tenant: TenantId, name: str, said: dict[str, Any]) -> Saga | None:
        def work(connection: Connection, at: Instant) -> Saga | None:
            saga = _hold(connection, tenant, name, at)
            if saga is None or saga.state != "running":
                return saga
            when = "ended_at" if said["state"] == "completed" else "failed_at"
            after = msgspec.structs.replace(saga, **said, **{when: at})
            _update_saga(connection, after)
            return after

        return await self._database.write(work)

    async def mark(self, saga: UUID, marks: Sequence[Mark], state: SagaState) -> Saga:
        """Write down what became of steps, where they stand as they were seen, and the state of a saga that failed.

        The saga is `compensated` only if no step of it is enlisted any more.
        """

        def work(connection: Connection, at: Instant) -> Saga:
            held = _hold_known(connection, saga, at)
            for mark in marks:
                _update_step(connection, saga, mark)
            is_early = state == "compensated" and _has_enlisted(connection, saga)
            now = "compensating" if is_early else state
            if held.state in ("running", "completed", now):
                return held
            ended_at = at if now == "compensated" else None
            after = msgspec.structs.replace(held, state=now, ended_at=ended_at)
            _update_saga(connection, after)
            return after

        return await self._database.write(work)

    async def pursue(self, saga: UUID, step: Key, compensation: Key) -> None:
        """Write down which effect takes a step back."""
        await self._database.write(lambda connection, _at: _update_compensation(connection, saga, step, compensation))

    async def retry(self, saga: UUID, step: SagaStep, note: str) -> None:
        """Let a step's compensation be another effect, the next round; once for a step as it was seen."""
        await self._database.write(lambda connection, _at: _update_round(connection, saga, step, note))

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
    found = _select_step(connection, step.key)
    is_known = found is not None and found.saga == saga.id
    if saga.state != "running":
        return Enlisted(saga=saga, became="over", is_known=is_known)
    if is_known:
        return Enlisted(saga=saga, became="enlisted", is_known=True)
    if found is not None and found.state == STEP_STATE_CODES["compensated"]:
        return Enlisted(saga=saga, became="taken_back")
    row = {
        "saga": saga.id,
        "number": _count_steps(connection, saga.id) + 1,
        "tool": step.tool,
        "compensation": None if step.compensation is None else _encoder.encode(step.compensation),
        "state": _ENLISTED,
        "compensation_key": None,
        "round": 1,
        "enlisted_at": at,
        "note": None,
    }
    is_ours = _insert_step(connection, step.key, row) or _take_over(connection, step.key, row)
    if is_ours:
        return Enlisted(saga=saga, became="enlisted", is_known=True)
    return Enlisted(saga=saga, became="of_another", other=_select_holder(connection, step.key))


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


def _update_saga(connection: Connection, saga: Saga) -> None:
    """Write the state of a saga that is held, and why and since when it has it."""
    connection.execute(
        sa.update(sagas)
        .where(sagas.c.id == saga.id)
        .values(
            state=SAGA_STATE_CODES[saga.state],
            reason=saga.reason,
            failed_at=saga.failed_at,
            ended_at=saga.ended_at,
        )
    )


def _select_named(connection: Connection, tenant: TenantId, name: str) -> tuple[Saga | None, Instant]:
    """Select a saga by its name, and the time."""
    at = Instant(connection.execute(sa.select(database_now())).scalar_one())
    row = connection.execute(sa.select(sagas).where(sagas.c.tenant == tenant, sagas.c.name == name)).first()
    return None if row is None else saga_of(row), at


def _select_steps(connection: Connection, saga: UUID) -> list[SagaStep]:
    """Select the steps of a saga in the order in which they were enlisted."""
    statement = sa.select(saga_steps).where(saga_steps.c.saga == saga).order_by(saga_steps.c.number)
    return [step_of(row) for row in connection.execute(statement)]


def _select_step(connection: Connection, key: Key) -> sa.Row[Any] | None:
    """Select whose step an effect is, and what became of it there."""
    return connection.execute(sa.select(saga_steps).where(saga_steps.c.key == key)).first()


def _select_holder(connection: Connection, key: Key) -> str | None:
    """Select the name of the saga whose step an effect is."""
    holder = sa.select(sagas.c.name).join(saga_steps, saga_steps.c.saga == sagas.c.id).where(saga_steps.c.key == key)
    return connection.execute(holder).scalar()


def _count_steps(connection: Connection, saga: UUID) -> int:
    """Select the highest number of a step of the saga; 0 where it has none."""
    highest = sa.select(sa.func.max(saga_steps.c.number)).where(saga_steps.c.saga == saga)
    return int(connection.execute(highest).scalar() or 0)


def _insert_step(connection: Connection, key: Key, row: dict[str, Any]) -> bool:
    """Enlist an effect unless a saga has it; say whether it was enlisted."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(saga_steps).values(key=key, **row).on_conflict_do_nothing().returning(saga_steps.c.key)
    return connection.execute(statement).first() is not None


def _take_over(connection: Connection, key: Key, row: dict[str, Any]) -> bool:
    """Enlist an effect that another saga has let go of; say whether there was one."""
    let_go = (saga_steps.c.key == key, saga_steps.c.state.in_(_LET_GO))
    statement = sa.update(saga_steps).where(*let_go).values(row).returning(saga_steps.c.key)
    return connection.execute(statement).first() is not None


def _update_step(connection: Connection, saga: UUID, mark: Mark) -> None:
    """Write down what became of a step, if it stands as it was seen."""
    seen = (saga_steps.c.saga == saga, saga_steps.c.key == mark.key, saga_steps.c.state == STEP_STATE_CODES[mark.seen])
    changed: dict[str, Any] = {"state": STEP_STATE_CODES[mark.state]}
    if mark.note is not None:
        changed["note"] = mark.note
    connection.execute(sa.update(saga_steps).where(*seen).values(changed))


def _has_enlisted(connection: Connection, saga: UUID) -> bool:
    """Select whether a step of the saga is enlisted still."""
    enlisted = sa.select(saga_steps.c.key).where(saga_steps.c.saga == saga, saga_steps.c.state == _ENLISTED).limit(1)
    return connection.execute(enlisted).first() is not None


def _update_compensation(connection: Connection, saga: UUID, step: Key, compensation: Key) -> None:
    """Write down which effect takes a step back."""
    chosen = (saga_steps.c.saga == saga, saga_steps.c.key == step)
    connection.execute(sa.update(saga_steps).where(*chosen).values(compensation_key=compensation))


def _update_round(connection: Connection, saga: UUID, step: SagaStep, note: str) -> None:
    """Begin the next round of a step that is enlisted and in the round that was seen."""
    seen = (saga_steps.c.saga == saga, saga_steps.c.key == step.key, saga_steps.c.round == step.round)
    after = {"round": step.round + 1, "compensation_key": None, "note": note}
    connection.execute(sa.update(saga_steps).where(*seen, saga_steps.c.state == _ENLISTED).values(after))
