"""Staging through the service: what comes late is parked, what is said twice is written once, and relays hear of it."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from msgspec.structs import replace

from guard.core.effects import Key
from guard.core.runs import Run
from guard.ports.outbox import MessageFilter
from guard.ports.relay import Stands
from guard.ports.steps import Look
from guard.ports.store import Store
from guard.probes.http import HttpProvider
from guard.service.outbox import Redriven
from guard.service.outcomes import Granted, MessagesStaged, Refused, Replayed, Settled
from guard.service.recording import Kept
from guard.service.use_cases import UseCases
from tests.contract.given import TENANT, one
from tests.contract.given_logs import intent
from tests.contract.given_outbox import claim, declared, settle, staged, states
from tests.contract.plans import do
from twiceshy_contract.effects import BeginRequest, CommitRequest, FailRequest, ReportedError
from twiceshy_contract.messages import Message
from twiceshy_contract.outbox import RedriveRequest, StageRequest

CALL = BeginRequest(tool="pay", run="booking-42", arguments={"to": "ann"}, attempt=uuid4())
TO_LOG = Message(destination="log", payload=1, not_after_seconds=60)
TWO_MINUTES = 120_000_000


@pytest.fixture
async def guard(store: Store) -> AsyncIterator[UseCases]:
    """The service over the store, with a destination and an open run."""
    await declared(store)
    async with UseCases(store, lambda: 0.5, HttpProvider({})) as use_cases:
        await use_cases.runs.open(TENANT, "booking-42")
        yield use_cases


async def begun(guard: UseCases) -> tuple[Key, CommitRequest]:
    """Begin, and return the key and the commit that is to come."""
    granted = await guard.begin(TENANT, CALL)
    assert isinstance(granted, Granted)
    fence = granted.effect.life.fence
    return granted.effect.intent.key, CommitRequest(attempt=CALL.attempt, fence=fence, result="paid", outbox=(TO_LOG,))


def count(guard: UseCases) -> float:
    """Read how many messages this process has staged."""
    lines = guard.measures.text().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("twiceshy_staged_total "))


@pytest.mark.parametrize(("late", "state"), [(0, "pending"), (TWO_MINUTES, "parked")])
async def test_late_proof_out_of_doubt_is_parked_when_it_comes_long_after_the_lease_of_its_attempt(
    store: Store, guard: UseCases, database_url: str, late: int, state: str
) -> None:
    key, commit = await begun(guard)
    lost = FailRequest(
        attempt=CALL.attempt, fence=commit.fence, kind="unknown", error=ReportedError(type="L", message="m")
    )
    assert isinstance(await guard.fail(TENANT, key, lost), Settled)
    await do(database_url, f"UPDATE effects SET lease_expires_at = reported_at - {late}")
    assert isinstance(await guard.commit(TENANT, key, commit), Settled)
    assert await states(store) == {state: 1}
    assert count(guard) == 1


async def test_an_effect_that_has_expired_stages_nothing(store: Store, guard: UseCases, database_url: str) -> None:
    key, commit = await begun(guard)
    assert isinstance(await guard.commit(TENANT, key, replace(commit, outbox=())), Settled)
    await do(database_url, "UPDATE effects SET expired_at = 1, outcome = NULL")
    await guard.commit(TENANT, key, commit)
    assert (await states(store), count(guard)) == ({}, 0)


async def test_a_repeated_commit_writes_nothing_and_is_counted_once(store: Store, guard: UseCases) -> None:
    key, commit = await begun(guard)
    await guard.commit(TENANT, key, commit)
    before = await one(store, Look(key=key))
    for _ in range(2):
        assert isinstance(await guard.commit(TENANT, key, commit), Settled)
    assert replace(await one(store, Look(key=key)), at=before.at) == before
    assert (await states(store), count(guard)) == ({"pending": 1}, 1)


async def test_a_redrive_rings_where_it_let_something_go(
    store: Store, guard: UseCases, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[bool] = []
    monkeypatch.setattr(guard.bell, "ring", lambda: rung.append(True))
    record = await guard.destinations.get(TENANT, "log")
    assert not isinstance(record, Refused)
    await staged(store, record.place.id, 1)
    asked = RedriveRequest(as_="retry", reason="r", state="dead")
    assert await guard.outbox.redrive(TENANT, asked) == Redriven(0)
    assert rung == []
    [claimed] = await claim(store, record.place.id)
    await settle(store, Stands(id=claimed.id, state="dead", note="404", tried="permanent"))
    assert await guard.outbox.redrive(TENANT, asked) == Redriven(1)
    assert rung == [True]


async def test_a_writer_that_was_taken_over_stages_nothing_and_the_newer_one_does(
    store: Store, guard: UseCases
) -> None:
    named = {name: getattr(CALL, name) for name in ("tool", "run", "arguments")}
    older = StageRequest(**named, attempt=uuid4(), epoch=1, events=(intent(1),), messages=(TO_LOG,))
    assert isinstance(await guard.recording.open(await guard.runs.open(TENANT, "booking-42")), Run)
    assert await guard.recording.bring(TENANT, older) == Kept(next_seq=2, added=1)
    assert isinstance(await guard.recording.open(await guard.runs.open(TENANT, "booking-42")), Run)
    refused = await guard.stage(TENANT, older)
    assert isinstance(refused, Refused)
    assert (refused.code, await states(store)) == ("run-taken-over", {})
    newer = replace(older, attempt=uuid4(), epoch=2, events=())
    assert isinstance(await guard.stage(TENANT, newer), MessagesStaged)
    assert isinstance(await guard.stage(TENANT, replace(newer, attempt=uuid4())), Replayed)
    assert len((await store.outbox.page(TENANT, MessageFilter()))[0]) == 1
