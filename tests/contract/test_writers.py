"""What a begin of a recorded run hears whose log another writer takes over at that very moment."""

from collections.abc import Sequence
from uuid import uuid4

import pytest
from msgspec.structs import replace

from guard.core.runs import Run
from guard.ports.steps import Insert, Replace, Step, StepResult
from guard.ports.store import Store
from guard.probes.http import HttpProvider
from guard.service.outcomes import Granted, Refused, Replayed
from guard.service.recording import Kept
from guard.service.use_cases import UseCases
from tests.contract.given import TENANT
from tests.contract.given_logs import intent
from twiceshy_contract.effects import BeginRequest, CommitRequest

PAY = BeginRequest(tool="pay", run="booking-42", arguments={"to": "ann"}, attempt=uuid4(), epoch=1, events=(intent(1),))


async def opened(guard: UseCases) -> Run:
    run = await guard.recording.open(await guard.runs.open(TENANT, "booking-42"))
    assert isinstance(run, Run)
    return run


async def test_a_writer_that_is_taken_over_between_its_append_and_its_begin_is_granted_nothing(store: Store) -> None:
    async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
        await opened(guard)
        assert await guard.recording.bring(TENANT, PAY) == Kept(next_seq=2, added=1)
        assert (await opened(guard)).epoch == 2
        refused = await guard.begin(TENANT, PAY)
        assert isinstance(refused, Refused)
        assert refused.code == "run-taken-over"
        assert refused.detail == "Run 'booking-42' is recorded by its writer of epoch 2, not by that of 1."
        newer = await guard.begin(TENANT, replace(PAY, attempt=uuid4(), epoch=2, events=()))
        assert isinstance(newer, Granted)
        assert newer.effect.life.latest is not None
        assert newer.effect.life.latest.token == newer.token


async def test_a_takeover_while_a_lease_is_granted_takes_it_back_first_try_or_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply, epochs = store.effects.apply, list[int]()

    async def apply_early(lane: int, steps: Sequence[Step]) -> list[StepResult]:
        results = await apply(lane, steps)
        if any(isinstance(step, Insert | Replace) for step in steps) and len(epochs) in (0, 2):
            epochs.extend([(await opened(guard)).epoch, 0])
        return results

    async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
        await opened(guard)
        monkeypatch.setattr(store.effects, "apply", apply_early)
        for epoch in (1, 2):
            refused = await guard.begin(TENANT, replace(PAY, attempt=uuid4(), epoch=epoch))
            assert isinstance(refused, Refused)
            assert refused.code == "run-taken-over"
        assert epochs == [2, 0, 3, 0]
        granted = await guard.begin(TENANT, replace(PAY, attempt=uuid4(), epoch=3))
        assert isinstance(granted, Granted)


async def test_a_grant_that_was_told_before_stands_and_what_was_granted_counts(store: Store) -> None:
    async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
        await opened(guard)
        granted = await guard.begin(TENANT, PAY)
        assert isinstance(granted, Granted)
        await opened(guard)
        again = await guard.begin(TENANT, PAY)
        assert isinstance(again, Granted)
        assert not again.is_new
        key = granted.effect.intent.key
        report = CommitRequest(attempt=PAY.attempt, fence=granted.effect.life.fence, result="paid")
        await guard.commit(TENANT, key, report)
        newer = await guard.begin(TENANT, replace(PAY, attempt=uuid4(), epoch=2))
        assert isinstance(newer, Replayed)


async def test_a_begin_without_an_epoch_reads_no_run_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
        await opened(guard)
        read = list[str]()

        async def get(_tenant: object, name: str) -> Run | None:
            read.append(name)
            return None

        monkeypatch.setattr(store.runs, "get", get)
        granted = await guard.begin(TENANT, replace(PAY, epoch=None, events=()))
        assert isinstance(granted, Granted)
        assert read == []
