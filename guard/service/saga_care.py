"""Care for sagas that nobody else moves: deadlines that pass, proof that comes late, and what an operator decides."""

from typing import Final, assert_never
from uuid import UUID

from guard.core.effects import Effect, Key, TenantId
from guard.core.sagas import Done, Mark, SagaStep, Standing, Stuck, Wait, due_of
from guard.logs import logger
from guard.ports.sagas import SagaStore
from guard.ports.store import StoreUnavailable
from guard.service.outcomes import Refused
from guard.service.reconsider import Reopen
from guard.service.rounds import for_ever
from guard.service.saga_writing import SagaWriting
from guard.service.sagas import Looked, Sagas, no_saga, over
from twiceshy_contract.reconsider import ReopenRequest
from twiceshy_contract.sagas import ResumeSagaRequest, SettleStepRequest, StepState

CARE_SECONDS: Final = 1.0
_EVERY: Final = 5
"""Every how many rounds all sagas are looked at that are being taken back or are stuck."""
_BATCH: Final = 100

_log = logger("guard.sagas")


class SagaSweep:
    """Looks after sagas by index, in batches."""

    def __init__(self, store: SagaStore, sagas: Sagas) -> None:
        self._store = store
        self._sagas = sagas
        self._round = 0
        self._last: UUID | None = None

    async def run(self) -> None:
        """Sweep for ever."""
        await for_ever("sagas", self._swept, CARE_SECONDS)

    async def _swept(self) -> bool:
        await self.run_once()
        return False

    async def run_once(self) -> int:
        """Look after the sagas that need it by now, and now and then after a batch of all; return how many."""
        names = await self._store.restless(_BATCH)
        self._round += 1
        if self._round % _EVERY == 0:
            batch = await self._store.unfinished(_BATCH, self._last)
            self._last = batch[-1].id if len(batch) == _BATCH else None
            names += [(saga.tenant, saga.name) for saga in batch]
        for tenant, name in dict.fromkeys(names):
            await self._look_after(tenant, name)
        return len(names)

    async def _look_after(self, tenant: TenantId, name: str) -> None:
        """Look after one saga; what goes wrong with it stands in no other's way."""
        try:
            await self._sagas.look_after(tenant, name)
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  the sagas behind it must be looked after all the same
            _log.error("saga_not_looked_after", tenant=tenant, saga=name, exc_info=True)


class SettleSaga:
    """An operator decides about steps that cannot be taken back by themselves."""

    def __init__(self, store: SagaStore, sagas: Sagas, writing: SagaWriting, reopen: Reopen) -> None:
        self._store = store
        self._sagas = sagas
        self._writing = writing
        self._reopen = reopen

    async def step(self, tenant: TenantId, name: str, key: Key, request: SettleStepRequest) -> Looked | Refused:
        """Settle one step. Said twice, it is taken once. Raises StoreUnavailable."""
        looked = await self._sagas.look_after(tenant, name)
        if looked is None:
            return no_saga(name)
        looked = await self._sagas.look(tenant, name) or looked
        standing = next((it for it in looked.standings if it.step.key == key), None)
        if standing is None:
            return Refused(code="not-found", detail=f"Effect {key.hex()} is no step of saga {name!r}.")
        note = f"{request.as_} by {request.by}: {request.reason}"
        if standing.step.note == note and standing.step.state != "enlisted":
            return looked
        if standing.step.state != "enlisted" or looked.move is None:
            return over(looked.saga, f"has nothing to settle in a step that is {standing.step.state}")
        refused = await self._settled(looked, standing, request, note)
        return refused or await self._sagas.look_again(tenant, name) or no_saga(name)

    async def resume(self, tenant: TenantId, name: str, request: ResumeSagaRequest) -> Looked | Refused:
        """Let every compensation be tried again that was refused or given up. Raises StoreUnavailable."""
        looked = await self._sagas.look_after(tenant, name)
        if looked is None:
            return no_saga(name)
        if looked.move is None or isinstance(looked.move, Done):
            return over(looked.saga, "has nothing to resume")
        looked = await self._sagas.look(tenant, name) or looked
        note = f"retry by {request.by}: {request.reason}"
        left = [standing for standing in looked.standings if standing.step.state == "enlisted"]
        refused = [await self._retry(looked, standing, note) for standing in left]
        reasons = [refusal for refusal in refused if refusal is not None]
        if len(reasons) == len(left) and reasons:
            met = [refusal for standing, refusal in zip(left, reasons, strict=True) if _is_met(looked, standing)]
            return (met or reasons)[0]
        return await self._sagas.look_again(tenant, name) or no_saga(name)

    async def _settled(
        self, looked: Looked, standing: Standing, request: SettleStepRequest, note: str
    ) -> Refused | None:
        match request.as_:
            case "done":
                await self._mark(looked, standing.step, "compensated", note)
            case "skip":
                is_done = standing.effect is not None and standing.effect.life.state == "succeeded"
                await self._mark(looked, standing.step, "skipped" if is_done else "passed_over", note)
            case "retry":
                return await self._retry(looked, standing, note)
            case _:
                assert_never(request.as_)
        return None

    async def _mark(self, looked: Looked, step: SagaStep, state: StepState, note: str) -> None:
        mark = Mark(key=step.key, seen=step.state, state=state, note=note)
        await self._writing.settle(looked.saga, mark)

    async def _retry(self, looked: Looked, standing: Standing, note: str) -> Refused | None:
        """Let the call that stands in the way be made again; say why, where that changes nothing."""
        step, saga = standing.step, looked.saga
        is_repeated = step.note == note
        effect = standing.compensation or standing.effect
        due = due_of(looked.move)
        if due is not None and due.key == step.key and isinstance(looked.move, Stuck):
            await self._writing.moved(saga)
            await self._store.offer(saga.id, step.key, note)
        elif effect is not None and effect.life.state == "failed":
            await self._writing.moved(saga)
            await self._store.retry(saga.id, step, note)
        elif effect is not None and effect.life.state == "pending":
            await self._reopened(looked, step, effect, note)
        elif effect is not None and effect.life.state == "in_doubt":
            return _doubtful(effect)
        elif not is_repeated:
            return _nothing_to_retry(looked, standing)
        return None

    async def _reopened(self, looked: Looked, step: SagaStep, effect: Effect, note: str) -> None:
        await self._writing.moved(looked.saga)
        await self._reopen(looked.saga.tenant, effect.intent.key, ReopenRequest(reason=note[:2000]))
        await self._store.offer(looked.saga.id, step.key, note)


def _is_met(looked: Looked, standing: Standing) -> bool:
    """Say whether a step is the one that the saga waits for."""
    move = looked.move
    return move is not None and not isinstance(move, Done) and move.key == standing.step.key


def _nothing_to_retry(looked: Looked, standing: Standing) -> Refused:
    """Say why the call that takes a step back cannot be tried again."""
    key, move = standing.step.key.hex(), looked.move
    if _is_met(looked, standing) and isinstance(move, Stuck | Wait):
        why = f"{move.why}. Settle the step as done or skip" if isinstance(move, Stuck) else f"{move.why}"
    elif _is_met(looked, standing):
        why = "the call that takes it back is due; a process that has the tool makes it"
    else:
        why = "other steps are taken back before it, and no call for it was refused"
    return Refused(
        code="not-possible",
        detail=f"There is nothing to try again for step {key} of saga {looked.saga.name!r}: {why}.",
        effect=standing.effect,
    )


def _doubtful(effect: Effect) -> Refused:
    key = effect.intent.key.hex()
    return Refused(
        code="not-possible",
        detail=f"Effect {key} of tool {effect.intent.tool!r} may or may not have happened: find out first, and say so "
        f"with POST /v1/effects/{key}/resolve. The saga goes on by itself then.",
        effect=effect,
    )
