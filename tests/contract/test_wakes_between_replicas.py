"""Waiters on two replicas of one database: what ends on one reaches them by words, long before they would look."""

import asyncio
from collections.abc import AsyncIterator, Generator
from typing import Final

import pytest

from guard.core.approvals import Question
from guard.ports.approvals import Standing
from guard.ports.steps import Step, StepResult
from guard.ports.store import Store
from guard.service import begin as begins
from guard.service.approvals import Word
from guard.service.naming import NamedCall
from guard.service.outcomes import BeginOutcome, Replayed
from guard.store.sql.wire import words_of
from tests.contract.given import TENANT, key
from tests.contract.given_redis import until
from tests.contract.given_replicas import (
    Replicas,
    committed,
    granted,
    let_nobody_look_by_himself,
    two_replicas,
    waiters,
)

MANY: Final = 500
PERSONS: Final = 20


@pytest.fixture
async def replicas(store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Replicas]:
    """Two services over one database, of which nobody looks by himself."""
    let_nobody_look_by_himself(monkeypatch)
    async with two_replicas(store, database_url) as pair:
        yield pair


async def test_a_thousand_waiters_on_two_replicas_hear_of_one_execution_by_a_look_or_two(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = replicas
    watch, looks = begins.watch, list[NamedCall]()

    def watched(call: NamedCall) -> Generator[Step, StepResult, BeginOutcome]:
        looks.append(call)
        return watch(call)

    monkeypatch.setattr(begins, "watch", watched)
    grant = await granted(here)
    tasks = [task for guard in replicas for task in await waiters(guard, MANY)]
    await until(lambda: len(looks) >= 2 * MANY)  # each looks once, after it can be told
    await there.effect(TENANT, grant.effect.intent.key)  # behind them
    before = len(looks)
    await committed(here, grant)
    async with asyncio.timeout(20):
        answers = await asyncio.gather(*tasks)
    assert [type(answer) for answer in answers] == [Replayed] * 2 * MANY
    assert {answer.effect.life.fence for answer in answers if isinstance(answer, Replayed)} == {1}
    assert len(looks) - before < 10


async def test_what_two_persons_decide_on_one_replica_is_heard_by_all_who_wait_on_the_other(
    store: Store, replicas: Replicas
) -> None:
    here, there = replicas
    asked = await store.approvals.ask(
        TENANT,
        Question(
            key=key(1),
            round=1,
            tool="pay",
            tool_version=1,
            run="booking-42",
            digest=b"asked",
            arguments=b"{}",
            summary="Pay ann",
            evidence=b"{}",
            requester=None,
            quorum=2,
        ),
    )
    approval = asked.approval.id
    tasks = [asyncio.create_task(there.approvals.get(TENANT, approval, 30)) for _ in range(PERSONS)]
    await until(lambda: approval.bytes in there.awaited())
    async with asyncio.timeout(20):
        for person in ("bob", "carol"):
            assert isinstance(
                await here.approvals.decide(TENANT, approval, Word(person=person, verdict="approve")), Standing
            )
        answers = await asyncio.gather(*tasks)
    assert [answer and answer.approval.state_at(answer.at) for answer in answers] == ["approved"] * PERSONS


def test_what_is_no_notification_of_ours_has_no_words() -> None:
    assert words_of("") == []
    assert words_of("not base64 at all!") == []
    assert words_of("YWJj,ZGVm") == [b"abc", b"def"]
