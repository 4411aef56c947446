"""Sagas: opened, ended, and looked after until nothing of one that failed is left to be taken back."""

import asyncio
import hashlib
from typing import Final

import msgspec

from guard.core.effects import Effect, Key, TenantId, seconds
from guard.core.lease import Rules
from guard.core.lifecycle import touch
from guard.core.sagas import LATE, Cancel, Done, Due, Move, Plan, Saga, SagaStep, Standing, Stuck, plan
from guard.ports.sagas import SagaFilter, SagaRecord, SagaStore
from guard.service.amend import look
from guard.service.intake import Intake
from guard.service.outcomes import Refused
from guard.service.registry import Registry
from guard.service.runs import Runs
from guard.service.saga_writing import SagaWriting
from twiceshy_contract.sagas import OpenSagaRequest

NOTHING: Final = Plan(marks=(), move=Done())
_LONGEST_NAME: Final = 200


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A saga with its steps and their effects, and what follows from them where it failed."""

    record: SagaRecord
    standings: tuple[Standing, ...]
    plan: Plan = NOTHING

    @property
    def saga(self) -> Saga:
        """The saga."""
        return self.record.saga

    @property
    def move(self) -> Move | None:
        """What it needs next; None while it runs or is completed."""
        return self.plan.move if self.saga.state not in ("running", "completed") else None


class Sagas:
    """Opening, ending and looking after sagas."""

    def __init__(self, store: SagaStore, registry: Registry, runs: Runs, intake: Intake, writing: SagaWriting) -> None:
        self._store = store
        self._registry = registry
        self._runs = runs
        self._intake = intake
        self._writing = writing

    async def open(self, tenant: TenantId, request: OpenSagaRequest) -> Saga | Refused:
        """Open a saga in a run, or find it. In a fork it is a saga of the fork's own, under a name of its own."""
        run = await self._runs.identify(tenant, request.run)
        name = request.saga if run.fork is None else _name_in_fork(request.saga, request.run)
        deadline = None if request.deadline_seconds is None else seconds(request.deadline_seconds)
        saga = await self._store.open(tenant, name, request.run, deadline)
        if saga.run != request.run:
            return Refused(
                code="not-possible",
                detail=f"Saga {name!r} belongs to run {saga.run!r} and not to {request.run!r}; "
                "give this one another name.",
            )
        return saga

    async def page(self, tenant: TenantId, chosen: SagaFilter) -> tuple[list[Saga], str | None]:
        """Return sagas, newest first, and the cursor of the next page. Raises ValueError for a foreign cursor."""
        return await self._store.page(tenant, chosen)

    async def complete(self, tenant: TenantId, name: str) -> Saga | Refused:
        """End a running saga well. Said twice, it is taken once."""
        saga = await self._store.complete(tenant, name)
        if saga is None:
            return no_saga(name)
        return saga if saga.state == "completed" else over(saga, "cannot be completed")

    async def fail(self, tenant: TenantId, name: str, reason: str) -> Looked | Refused:
        """Let a running saga be taken back. One that is being taken back goes on as it does."""
        saga = await self._store.fail(tenant, name, reason)
        if saga is None:
            return no_saga(name)
        if saga.state == "completed":
            return over(saga, "cannot be taken back any more")
        looked = await self.look_after(tenant, name)
        return no_saga(name) if looked is None else looked

    async def look_after(self, tenant: TenantId, name: str) -> Looked | None:
        """Write down what is known of a saga that failed, and say what it needs. None: there is no such saga."""
        while True:
            looked = await self.look(tenant, name)
            if looked is None:
                return None
            if looked.saga.is_late(looked.record.at):
                await self._store.fail(tenant, name, LATE)
            elif looked.move is None:
                return looked
            elif isinstance(looked.move, Cancel):
                await self._writing.cancel(looked.saga, looked.move.key)
            else:
                saga = await self._writing.write(looked.record, looked.plan)
                if not looked.plan.marks:
                    return msgspec.structs.replace(looked, record=msgspec.structs.replace(looked.record, saga=saga))

    async def look(self, tenant: TenantId, name: str) -> Looked | None:
        """Read a saga with its effects, and say what it needs. None: there is no such saga."""
        record = await self._store.read(tenant, name)
        if record is None:
            return None
        standings = tuple(await asyncio.gather(*(self._standing(tenant, step) for step in record.steps)))
        if record.saga.state in ("running", "completed"):
            return Looked(record=record, standings=standings)
        planned = plan(record.saga, standings, record.at)
        if isinstance(planned.move, Due):
            run = await self._runs.get(tenant, record.saga.run)
            if run is not None and run.state != "open":
                why = f"run {run.name} is {run.state} and takes no new effects"
                planned = msgspec.structs.replace(planned, move=Stuck(planned.move.key, why))
        return Looked(record=record, standings=standings, plan=planned)

    async def _standing(self, tenant: TenantId, step: SagaStep) -> Standing:
        (effect, rules), (compensation, its_rules) = await asyncio.gather(
            self._effect(tenant, step.key), self._effect(tenant, step.compensation_key)
        )
        return Standing(step=step, effect=effect, rules=rules, compensation=compensation, compensation_rules=its_rules)

    async def _effect(self, tenant: TenantId, key: Key | None) -> tuple[Effect | None, Rules]:
        """Read an effect as it stands now, and the rules that it obeys."""
        found = None if key is None else await self._intake.do(key, look(key))
        if found is None or found.effect is None or found.effect.intent.tenant != tenant:
            return None, Rules()
        rules = await self._registry.rules_for(found.effect)
        life = touch(found.effect.life, rules, found.at)
        return msgspec.structs.replace(found.effect, life=life), rules


def _name_in_fork(name: str, run: str) -> str:
    """Name a fork's saga, so that the fork takes back nothing of its parent."""
    plain = f"{name}@{run}"
    if len(plain) <= _LONGEST_NAME:
        return plain
    return f"{name[:150]}@{hashlib.sha256(plain.encode()).hexdigest()[:40]}"


def no_saga(name: str) -> Refused:
    """Say that there is no such saga."""
    return Refused(code="not-found", detail=f"There is no saga {name!r}. Open it with POST /v1/sagas.")


def over(saga: Saga, what: str) -> Refused:
    """Say that a saga is not in a state for what was asked."""
    why = f" ({saga.reason})" if saga.reason else ""
    return Refused(code="saga-over", detail=f"Saga {saga.name!r} is {saga.state}{why}: it {what}.")
