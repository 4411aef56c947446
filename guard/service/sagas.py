"""Sagas: opened, ended, and looked after until nothing of one that failed is left to be taken back."""

import hashlib
from typing import Final

import msgspec

from guard.core.effects import SECOND, Effect, Instant, Key, TenantId, seconds
from guard.core.lease import Rules
from guard.core.lifecycle import touch
from guard.core.sagas import LATE, Cancel, Done, Move, Plan, Saga, SagaStep, Standing, Stuck, due_of, plan
from guard.ports.sagas import SagaFilter, SagaRecord, SagaStore, Unfinished
from guard.service.amend import look
from guard.service.intake import Intake
from guard.service.outcomes import Refused
from guard.service.registry import Registry
from guard.service.runs import Runs
from guard.service.saga_writing import SagaWriting
from twiceshy_contract.names import PublicState
from twiceshy_contract.redaction import REDACTED
from twiceshy_contract.sagas import OpenSagaRequest

NOTHING: Final = Plan(marks=(), move=Done())
_LONGEST_NAME: Final = 200
_STANDING: Final[dict[PublicState, str]] = {
    "pending": "not applied, and may still be tried",
    "executing": "being executed",
    "in_doubt": "in doubt",
    "succeeded": "done by now",
    "failed": "refused by now",
}


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
        """End a running saga well, once no step of it is under way or open. Said twice, it is taken once."""
        saga = await self._store.complete(tenant, name)
        if saga is None:
            return no_saga(name)
        if isinstance(saga, Unfinished):
            return await self._unfinished(saga)
        return saga if saga.state == "completed" else over(saga, "cannot be completed")

    async def fail(self, tenant: TenantId, name: str, reason: str) -> Looked | Refused:
        """Let a running saga be taken back. One that is being taken back goes on as it does."""
        saga = await self._store.fail(tenant, name, reason)
        if saga is None:
            return no_saga(name)
        if saga.state == "completed":
            return over(saga, "cannot be taken back any more")
        return await self.look_again(tenant, name) or no_saga(name)

    async def report(self, tenant: TenantId, name: str, key: Key, why: str) -> Looked | Refused:
        """Take the word of a process that has the tool, but cannot make the call that is due for a step."""
        looked = await self.look_after(tenant, name)
        due = None if looked is None else due_of(looked.move)
        if looked is not None and due is not None and due.key == key:
            await self._store.misfit(looked.saga.id, due.standing.step, why)
        return await self.look_again(tenant, name) or no_saga(name)

    async def look_again(self, tenant: TenantId, name: str) -> Looked | None:
        """Look after a saga, and read all of it then. None: there is no such saga."""
        looked = await self.look_after(tenant, name)
        return None if looked is None else await self.look(tenant, name)

    async def look_after(self, tenant: TenantId, name: str) -> Looked | None:
        """Write down what is known of a saga that failed, and say what it needs. None: there is no such saga."""
        while True:
            looked = await self._looked(tenant, await self._store.read_left(tenant, name))
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
        """Read a saga with all its steps, and say what it needs. None: there is no such saga."""
        return await self._looked(tenant, await self._store.read(tenant, name))

    async def _looked(self, tenant: TenantId, record: SagaRecord | None) -> Looked | None:
        if record is None:
            return None
        standings = tuple([await self._standing(record, step) for step in record.steps])
        if record.saga.state in ("running", "completed"):
            return Looked(record=record, standings=standings)
        planned = plan(record.saga, standings, record.at)
        due = due_of(planned.move)
        if due is not None:
            run = await self._runs.get(tenant, record.saga.run)
            if run is not None and run.state != "open":
                why = f"run {run.name} is {run.state} and takes no new effects"
                planned = msgspec.structs.replace(planned, move=Stuck(due.key, why))
        return Looked(record=record, standings=standings, plan=planned)

    async def _standing(self, record: SagaRecord, step: SagaStep) -> Standing:
        effect, rules = await self._effect(record, step.key)
        compensation, its_rules = await self._effect(record, step.compensation_key)
        return Standing(
            step=step,
            effect=effect,
            rules=rules,
            redacted=await self._redacted(effect),
            compensation=compensation,
            compensation_rules=its_rules,
        )

    async def _redacted(self, effect: Effect | None) -> tuple[str, ...]:
        """Return which places of an effect's arguments are not stored; none, where no text of them is the mark."""
        if effect is None or REDACTED.encode() not in (effect.edited or effect.intent.arguments):
            return ()
        return await self._registry.redacted_for(effect)

    async def _effect(self, record: SagaRecord, key: Key | None) -> tuple[Effect | None, Rules]:
        """Return an effect as it stands now, and the rules that it obeys."""
        effect = None if key is None else record.effects.get(key)
        if effect is None:
            return None, Rules()
        rules = await self._registry.rules_for(effect)
        return msgspec.structs.replace(effect, life=touch(effect.life, rules, record.at)), rules

    async def _unfinished(self, unfinished: Unfinished) -> Refused:
        saga, key = unfinished.saga, unfinished.key
        found = await self._intake.do(key, look(key))
        effect, left = found.effect, None
        if effect is not None:
            rules = await self._registry.rules_for(effect)
            effect = msgspec.structs.replace(effect, life=touch(effect.life, rules, found.at))
            left = _left(effect, found.at)
        what = (
            "an effect" if effect is None else f"tool {effect.intent.tool!r}, which is {_STANDING[effect.life.state]}"
        )
        return Refused(
            code="not-possible",
            detail=f"Saga {saga.name!r} cannot be completed: step {key.hex()} is a call of {what}. Run the block again "
            "once it has ended; or resolve or cancel the effect; or fail the saga.",
            effect=effect,
            retry_after=left,
        )


def _left(effect: Effect, now: Instant) -> float | None:
    """Return after how many seconds an effect may be begun again, as far as time alone decides."""
    latest = effect.life.latest
    until = effect.life.retry_at or now if effect.life.state == "pending" else None
    if effect.life.state == "executing" and latest is not None:
        until = latest.deadline
    return None if until is None else max(0.0, (until - now) / SECOND)


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
    why = f" ({saga.reason.rstrip('.')})" if saga.reason else ""
    return Refused(code="saga-over", detail=f"Saga {saga.name!r} is {saga.state}{why}: it {what}.")
