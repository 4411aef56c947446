"""What a step of a saga hears whose saga ends while the step is begun."""

from collections.abc import Sequence
from uuid import uuid4

import pytest
from msgspec.structs import replace

from guard.core.sagas import Saga
from guard.ports.steps import Insert, Step, StepResult
from guard.ports.store import Store
from guard.probes.http import HttpProvider
from guard.service.outcomes import Granted, Refused
from guard.service.use_cases import UseCases
from tests.contract.given import TENANT
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.sagas import OpenSagaRequest

STEP = BeginRequest(tool="pay", run="booking-42", saga="trip-7", arguments={"to": "ann"}, attempt=uuid4())


@pytest.mark.parametrize("end", ["completed", "compensating"])
async def test_a_step_that_is_made_after_its_saga_has_ended_is_not_begun(
    store: Store, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    apply = store.effects.apply
    ended: list[Saga] = []

    async def apply_late(lane: int, steps: Sequence[Step]) -> list[StepResult]:
        if any(isinstance(step, Insert) for step in steps) and not ended:
            after = await (
                store.sagas.complete(TENANT, "trip-7")
                if end == "completed"
                else store.sagas.fail(TENANT, "trip-7", "full")
            )
            assert isinstance(after, Saga)
            ended.append(after)
        return await apply(lane, steps)

    async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
        opened = await guard.sagas.open(TENANT, OpenSagaRequest(saga="trip-7", run="booking-42"))
        assert isinstance(opened, Saga)
        monkeypatch.setattr(store.effects, "apply", apply_late)
        refused = await guard.begin(TENANT, STEP)
        assert isinstance(refused, Refused)
        assert refused.code == "saga-over"
        assert [saga.state for saga in ended] == [end]
        looked = await guard.sagas.look_again(TENANT, "trip-7")
        assert looked is not None
        (standing,) = looked.standings
        assert standing.effect is not None
        assert standing.effect.life.state in ("pending", "failed")
        assert looked.saga.state == ("completed" if end == "completed" else "compensated")
        again = await guard.begin(TENANT, replace(STEP, attempt=uuid4()))
        assert isinstance(again, Refused)
        assert again.code == "saga-over"


async def test_a_step_of_a_saga_that_runs_is_begun_once_it_is_made(store: Store) -> None:
    async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
        await guard.sagas.open(TENANT, OpenSagaRequest(saga="trip-7", run="booking-42"))
        assert isinstance(await guard.begin(TENANT, STEP), Granted)
        refused = await guard.sagas.complete(TENANT, "trip-7")
        assert isinstance(refused, Refused)
        assert refused.code == "not-possible"
