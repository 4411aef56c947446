"""Group commit for logs: what waits goes together, large appends go alone, and none fails another."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from guard.core.effects import RunId, TenantId
from guard.core.runs import Run
from guard.ports.events import Append, Appended, AppendResult, LogPage, Texts
from guard.ports.store import StatementFailed, StoreUnavailable
from guard.service.appends import Appends

pytestmark = pytest.mark.anyio
POISON, AWAY = 666, 503


def append(epoch: int, size: int = 0) -> Append:
    return Append(tenant=TenantId(1), run=RunId(UUID(int=epoch)), epoch=epoch, blobs={"ab": b"x" * size})


class ScriptedStore:
    """A store that answers each append with its epoch, once it is let."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_answer = asyncio.Event()
        self.asked = asyncio.Event()

    async def open_writer(self, run: RunId) -> Run | None:
        return None

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        epochs = [each.epoch for each in appends]
        self.batches.append(epochs)
        self.asked.set()
        await self.may_answer.wait()
        if POISON in epochs:
            raise StatementFailed("poison")
        if AWAY in epochs:
            raise StoreUnavailable("away")
        return [Appended(head=epoch, added=0) for epoch in epochs]

    async def page(self, run: RunId, after: int, limit: int, size: int) -> LogPage:
        return LogPage(items=[], next=None)

    async def blobs(self, tenant: TenantId, digests: Sequence[str], size: int) -> Texts:
        return Texts(texts={}, left=())


async def started(store: ScriptedStore, appends: Appends, *asked: Append) -> list[asyncio.Task[AppendResult]]:
    """Let one append be under way, and others come meanwhile."""
    tasks = [asyncio.create_task(appends.do(append(1)))]
    await store.asked.wait()
    tasks += [asyncio.create_task(appends.do(each)) for each in asked]
    await asyncio.sleep(0)
    store.may_answer.set()
    return tasks


async def test_what_comes_while_one_is_under_way_goes_together() -> None:
    store = ScriptedStore()
    tasks = await started(store, Appends(store), append(2), append(3), append(4))
    assert await asyncio.gather(*tasks) == [Appended(head=epoch, added=0) for epoch in (1, 2, 3, 4)]
    assert store.batches == [[1], [2, 3, 4]]


async def test_a_transaction_takes_so_many_and_so_much() -> None:
    store = ScriptedStore()
    tasks = await started(store, Appends(store), *(append(epoch) for epoch in range(2, 72)))
    await asyncio.gather(*tasks)
    assert [len(batch) for batch in store.batches] == [1, 64, 6]
    store = ScriptedStore()
    tasks = await started(store, Appends(store), *(append(epoch, 60_000) for epoch in range(2, 22)))
    await asyncio.gather(*tasks)
    assert [len(batch) for batch in store.batches] == [1, 8, 8, 4]


async def test_a_large_one_goes_alone_and_does_not_wait_for_the_others() -> None:
    store = ScriptedStore()
    tasks = await started(store, Appends(store), append(2), append(3, 100_000))
    assert await tasks[2] == Appended(head=3, added=0)
    await asyncio.gather(*tasks)
    assert store.batches == [[1], [3], [2]]


async def test_one_that_the_database_refuses_fails_alone() -> None:
    store = ScriptedStore()
    tasks = await started(store, Appends(store), append(2), append(POISON), append(3), append(4))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result).__name__ for result in results] == [
        "Appended",
        "Appended",
        "StatementFailed",
        "Appended",
        "Appended",
    ]


async def test_a_database_that_is_away_fails_those_who_asked_and_nobody_after() -> None:
    store = ScriptedStore()
    appends = Appends(store)
    tasks = await started(store, appends, append(2), append(AWAY))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result).__name__ for result in results] == ["Appended", "StoreUnavailable", "StoreUnavailable"]
    assert await appends.do(append(5)) == Appended(head=5, added=0)


async def test_one_who_has_gone_keeps_nothing_from_the_others() -> None:
    store = ScriptedStore()
    appends = Appends(store)
    tasks = [asyncio.create_task(appends.do(append(epoch))) for epoch in (1, 2, 3)]
    await store.asked.wait()
    tasks[0].cancel()
    store.may_answer.set()
    assert await asyncio.gather(*tasks[1:]) == [Appended(head=2, added=0), Appended(head=3, added=0)]


async def test_closing_lets_what_was_asked_for_be_written() -> None:
    store = ScriptedStore()
    appends = Appends(store)
    await appends.close()
    task = asyncio.create_task(appends.do(append(1)))
    await store.asked.wait()
    store.may_answer.set()
    await appends.close()
    assert store.batches == [[1]]
    assert await task == Appended(head=1, added=0)
