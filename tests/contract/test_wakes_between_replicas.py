"""Waiters on two replicas of one database: the end of a lease reaches them by words, long before they would look."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from msgspec.structs import replace

from guard.ports.store import Store
from guard.ports.wire import Wire
from guard.probes.http import HttpProvider
from guard.service import begin as begins
from guard.service import waiting
from guard.service.outcomes import Granted, Replayed, Settled
from guard.service.use_cases import UseCases
from guard.store.sql.engine import open_store
from guard.store.sql.wire import words_of
from tests.contract.given import TENANT
from twiceshy_contract.effects import BeginRequest, CommitRequest

MANY = 500
CALL = BeginRequest(tool="pay", run="booking-42", arguments={"to": "ann"}, attempt=uuid4(), wait_seconds=30)


@pytest.fixture
async def replicas(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[UseCases, UseCases]]:
    """Two services over one database, of which nobody looks by himself."""
    for module in (begins, waiting):
        monkeypatch.setattr(module, "GLANCE_SECONDS", 60.0)
    other = await open_store(database_url)
    async with (
        UseCases(store, lambda: 0.5, HttpProvider({})) as here,
        UseCases(other, lambda: 0.5, HttpProvider({})) as there,
    ):
        await asyncio.gather(hears(store.wire), hears(other.wire))
        yield here, there
    await other.close()


async def hears(wire: Wire) -> None:
    """Wait until a replica hears what is said over its wire."""
    heard = asyncio.Event()
    async with wire.listening(lambda _word: heard.set()):
        while not heard.is_set():
            wire.tell(b"is anybody there")
            await asyncio.sleep(0.01)


async def test_a_thousand_waiters_on_two_replicas_hear_of_one_execution(replicas: tuple[UseCases, UseCases]) -> None:
    here, there = replicas
    granted = await here.begin(TENANT, CALL)
    assert isinstance(granted, Granted)
    waiters = [asyncio.create_task(guard.begin(TENANT, another())) for guard in (here, there) for _ in range(MANY)]
    for _ in range(3000):
        if all(granted.effect.intent.key in guard.awaited() for guard in replicas):
            break
        await asyncio.sleep(0.01)
    commit = CommitRequest(attempt=CALL.attempt, fence=granted.effect.life.fence, result="paid")
    assert isinstance(await here.commit(TENANT, granted.effect.intent.key, commit), Settled)
    async with asyncio.timeout(20):
        answers = await asyncio.gather(*waiters)
    assert [type(answer) for answer in answers] == [Replayed] * 2 * MANY
    assert {answer.effect.life.fence for answer in answers if isinstance(answer, Replayed)} == {1}


def another() -> BeginRequest:
    """Return the call as another attempt makes it."""
    return replace(CALL, attempt=uuid4())


def test_what_is_no_notification_of_ours_has_no_words() -> None:
    assert words_of("") == []
    assert words_of("not base64 at all!") == []
    assert words_of("YWJj,ZGVm") == [b"abc", b"def"]
