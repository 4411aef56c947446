"""Transactions that commit in another order than that of their ids: the claim goes by state, so none is passed by."""

import asyncio
import random

import asyncpg
import pytest

from guard.ports.relay import Claimed, Done
from guard.ports.store import Store
from tests.contract.given_outbox import LEASE, claim, declared, settle, staged
from tests.contract.plans import do

_COPY = """
    INSERT INTO outbox (message, epoch, tenant, destination_id, destination, lane, content_type, headers, body,
      staged_at, state, attempts, in_lane, due_at)
    SELECT gen_random_uuid(), epoch, tenant, destination_id, destination, lane, content_type, headers, body,
      (extract(epoch from now()) * 1000000)::bigint, 1, 0, false, (extract(epoch from now()) * 1000000)::bigint
    FROM outbox_history LIMIT 1 RETURNING id"""


@pytest.fixture
def backend() -> str:
    """On SQLite there is one writer at a time, and so one order."""
    return "postgresql"


async def _given(store: Store) -> int:
    """Deliver one message, of which writers make copies; its like was claimed before, so there is a mark."""
    log = await declared(store)
    await staged(store, log, 1)
    await settle(store, *(Done(id=one.id, over="delivered") for one in await claim(store, log)))
    return log


async def test_a_row_that_commits_after_a_later_one_is_delivered_late(store: Store, database_url: str) -> None:
    log = await _given(store)
    slow, quick = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    try:
        begun = slow.transaction()
        await begun.start()
        first = await slow.fetchval(_COPY)
        second = await quick.fetchval(_COPY)
        assert first < second
        assert [one.id for one in await claim(store, log)] == [second]
        await begun.commit()
        assert [one.id for one in await _eventually(store, log)] == [first]
    finally:
        await slow.close()
        await quick.close()


async def test_of_many_writers_that_commit_at_random_no_row_is_lost(store: Store, database_url: str) -> None:
    log = await _given(store)
    writers = [asyncio.create_task(_write(database_url, number)) for number in range(6)]
    seen: list[int] = []
    while not all(writer.done() for writer in writers):
        claimed = await claim(store, log, 3)
        seen += [one.id for one in claimed]
        await settle(store, *(Done(id=one.id, over="delivered") for one in claimed))
    written = {id_ for writer in writers for id_ in await writer}
    while len(seen) < len(written):
        claimed = await _eventually(store, log)
        seen += [one.id for one in claimed]
    assert sorted(seen) == sorted(written)


async def test_a_row_that_is_locked_when_the_claim_comes_by_is_claimed_later(store: Store, database_url: str) -> None:
    log = await _given(store)
    other = await asyncpg.connect(database_url)
    try:
        locked = await other.fetchval(_COPY)
        free = await other.fetchval(_COPY)
        begun = other.transaction()
        await begun.start()
        await other.execute("SELECT FROM outbox WHERE id = $1 FOR UPDATE", locked)
        assert [one.id for one in await claim(store, log)] == [free]
        await begun.rollback()
        assert [one.id for one in await _eventually(store, log)] == [locked]
    finally:
        await other.close()


async def test_a_message_of_a_lane_that_is_locked_is_overtaken_by_none_behind_it(
    store: Store, database_url: str
) -> None:
    log = await declared(store)
    await staged(store, log, 4, "a")
    other = await asyncpg.connect(database_url)
    try:
        for locked, claimed in ((1, []), (3, [1, 2])):
            begun = other.transaction()
            await begun.start()
            await other.execute("SELECT FROM outbox WHERE id = $1 FOR UPDATE", locked)
            assert [one.id for one in await claim(store, log)] == claimed
            await begun.rollback()
    finally:
        await other.close()
    await do(database_url, "UPDATE outbox SET state = 1, lease = NULL, lease_until = NULL")
    assert [one.id for one in await claim(store, log, lease=LEASE)] == [1, 2, 3, 4]


async def _eventually(store: Store, log: int) -> list[Claimed]:
    """Claim until something comes: what stands behind the mark waits for the next sweep."""
    async with asyncio.timeout(10):
        while not (claimed := await claim(store, log)):
            pass
        return claimed


async def _write(url: str, number: int) -> list[int]:
    """Stage rows one by one, each committed some time after it was given its id."""
    chance = random.Random(number)  # noqa: S311
    connection = await asyncpg.connect(url)
    try:
        ids = []
        for _ in range(15):
            async with connection.transaction():
                ids.append(await connection.fetchval(_COPY))
                await asyncio.sleep(chance.random() * 0.02)
        return ids
    finally:
        await connection.close()
