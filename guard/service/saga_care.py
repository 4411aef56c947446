"""Care for sagas that nobody else moves: deadlines that pass, proof that comes late, and what an operator decides."""

import asyncio
from typing import Final, assert_never
from uuid import UUID

from guard.core.effects import Effect, Key, TenantId
from guard.core.sagas import Mark, SagaStep, Standing
from guard.logs import logger
from guard.ports.sagas import SagaStore
from guard.ports.store import StoreUnavailable
from guard.service.outcomes import Refused
from guard.service.reconsider import Reopen
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
        """Sweep for ever; a database that is away is tried again."""
        while True:
            try:
                await self.run_once()
            except StoreUnavailable as error:
                _log.warning("saga_sweep_postponed", reason=str(error))
            except Exception:  # noqa: BLE001  a sweep that ends would leave every later deadline unseen
                _log.error("saga_sweep_failed", exc_info=True)
            await asyncio.sleep(CARE_SECONDS)

    async def run_once(self) -> int:
        """Look after the sagas that need it by now, and now and then after a batch of all; return how many."""
        names = await self._store.restless(_BATCH)
        self._round += 1
        if self._round % _EVERY == 0:
            batch = await self._store.unfinished(_BATCH, self._last)
            self._last = batch[-1].id if len(batch) == _BATCH else None
            names += [(saga.tenant, saga.name) for saga in batch]
        for tenant, name in dict.fromkeys(names):
            await self._sagas.look_after(tenant, name)
        return len(names)


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
        return refused or await self._sagas.look_after(tenant, name) or no_saga(name)

    async def resume(self, tenant: TenantId, name: str, request: ResumeSagaRequest) -> Looked | Refused:
        """Let every compensation be tried again that was refused or given up. Raises StoreUnavailable."""
        looked = await self._sagas.look_after(tenant, name)
        if looked is None:
            return no_saga(name)
        if looked.move is None:
            return over(looked.saga, "is not taken back: there is nothing to resume")
        for standing in looked.standings:
            if standing.step.state == "enlisted":
                note = f"retry by {request.by}: {request.reason}"
                await self._retry(looked, standing, note)
        return await self._sagas.look_after(tenant, name) or no_saga(name)

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
        """Let the call that stands in the way be made again; doubt has to be settled first."""
        effect = standing.compensation or standing.effect
        if effect is None:
            return None
        if effect.life.state == "failed":
            await self._store.retry(looked.saga.id, standing.step, note)
            return None
        if effect.life.state == "pending":
            await self._reopen(looked.saga.tenant, effect.intent.key, ReopenRequest(reason=note[:2000]))
            return None
        return _doubtful(effect) if effect.life.state == "in_doubt" else None


def _doubtful(effect: Effect) -> Refused:
    key = effect.intent.key.hex()
    return Refused(
        code="not-possible",
        detail=f"Effect {key} of tool {effect.intent.tool!r} may or may not have happened: find out first, and say so "
        f"with POST /v1/effects/{key}/resolve. The saga goes on by itself then.",
        effect=effect,
    )
