"""Many who want one resource: each has its turn, nobody else waits for them, and a long past costs nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
import pytest
from msgspec.structs import replace
from sqlalchemy import Connection

from guard.core.effects import AttemptToken, Duration, Instant
from guard.ports.holds import Occupied, Placed
from guard.ports.steps import HoldGone, Written
from guard.ports.store import Store, StoreUnavailable
from guard.store.sql.database import ResultT
from guard.store.sql.engine import open_store
from guard.store.sql.hold_claims import claims_any_of, met, select_yielded
from guard.store.sql.holds import SqlHolds
from guard.store.sql.turns import Turns
from tests.contract.given import TENANT, insert, key, opened
from tests.contract.given_holds import placed, wish
from tests.contract.plans import do, plans

ROOM_1 = f"SELECT pg_advisory_xact_lock(hashtextextended('resource room-1', {TENANT}))"
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@asynccontextmanager
async def _transaction(url: str, statement: str) -> AsyncIterator[asyncpg.Connection]:
    """Hold a transaction open that began with a statement."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("BEGIN")
        await connection.execute(statement)
        yield connection
    finally:
        await connection.close()


async def _waits(connection: asyncpg.Connection, *others: asyncio.Task[object]) -> None:
    """Return once somebody waits for a lock."""
    while not await connection.fetchval(WAITING):
        assert not any(other.done() for other in others)


@pytest.mark.parametrize("backend", ["postgresql"])
async def test_a_crowd_before_one_resource_keeps_nobody_from_the_database(store: Store, database_url: str) -> None:
    async with _transaction(database_url, ROOM_1) as holder:
        crowd = [asyncio.create_task(store.holds.place(wish(number))) for number in range(1, 41)]
        await _waits(holder, *crowd)
        await placed(store, wish(100, resource="room-2"))
        await asyncio.gather(*(opened(store, f"run-{number}") for number in range(8)))
        assert await holder.fetchval(WAITING) == 1
        assert not any(task.done() for task in crowd)
    answers = await asyncio.gather(*crowd)
    assert sorted(type(answer).__name__ for answer in answers) == ["Occupied"] * 39 + ["Placed"]


async def test_a_turn_is_of_one_at_a_time_and_forgotten_after_the_last() -> None:
    turns, order = Turns(2, 5), []

    async def take(name: str, number: int) -> None:
        async with turns.of(name, name):
            order.append((name, number, "comes"))
            await asyncio.sleep(0)
            order.append((name, number, "goes"))

    await asyncio.gather(*(take(name, number) for number in range(3) for name in "abc"))
    for name in "abc":
        mine = [(number, what) for who, number, what in order if who == name]
        assert mine == [(number, what) for number in range(3) for what in ("comes", "goes")]
    assert len(turns) == 0


async def test_a_turn_that_does_not_come_is_said_in_true_words_and_leaves_nothing() -> None:
    turns = Turns(1, 0.01)
    async with turns.of("room-1", "'room-1'"):
        for name in ("room-1", "room-2"):
            with pytest.raises(StoreUnavailable, match=f"^Too many requests wait for '{name}': .*nothing was done"):
                async with turns.of(name, f"'{name}'"):
                    pass
    assert len(turns) == 0
    async with turns.of("room-2", "'room-2'"):
        assert len(turns) == 1


@pytest.mark.parametrize("backend", ["postgresql"])
async def test_grants_lock_their_holds_in_the_order_of_those_who_place(store: Store, database_url: str) -> None:
    """The batch comes to hold 2 first by its keys; it must not keep it while it waits for hold 1."""
    await placed(store, wish(1, 0, 30, key=key(2)))
    await placed(store, wish(2, 30, 60, key=key(1)))
    steps = [
        replace(insert(number, token=AttemptToken(UUID(int=number))), hold=UUID(int=3 - number)) for number in (1, 2)
    ]
    lock = "SELECT id FROM holds WHERE id = '{}' FOR UPDATE {}"
    async with _transaction(database_url, lock.format(UUID(int=1), "")) as holder:
        batch = asyncio.create_task(store.effects.apply(0, steps))
        await _waits(holder, batch)
        await holder.execute(lock.format(UUID(int=2), "NOWAIT"))
    assert [type(answer) for answer in await batch] == [Written, Written]


async def test_grants_and_a_take_over_of_several_holds_never_wait_for_each_other(
    store: Store, database_url: str
) -> None:
    other = await open_store(database_url)
    try:
        for turn in range(10):
            room, first = f"room-{turn}", 10 * turn + 1
            for number in range(4):
                mine = wish(first + number, 10 * number, 10 * number + 10, key=key(1000 - first - number))
                await placed(store, replace(mine, resource=room))
            steps = [replace(insert(1000 - first - number), hold=UUID(int=first + number)) for number in range(4)]
            grants, take = await asyncio.gather(
                store.effects.apply(0, steps),
                other.holds.place(replace(wish(2000 + turn, 0, 40, priority=5), resource=room)),
            )
            expected = Written if isinstance(take, Occupied) else HoldGone
            assert isinstance(take, Placed | Occupied)
            assert {type(grant) for grant in grants} == {expected}
    finally:
        await other.close()


async def test_a_hold_that_is_renewed_while_a_sweep_looks_keeps_its_time(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(store.holds, SqlHolds)
    first = (await placed(store, wish(1, key=key(1), lasts=Duration(0)))).hold
    database = store.holds._database
    real = database.read

    async def read(work: Callable[[Connection], ResultT]) -> ResultT:
        result = await real(work)
        monkeypatch.setattr(database, "read", real)
        await do(database_url, f"UPDATE holds SET expires_at = {2**60}")
        return result

    monkeypatch.setattr(database, "read", read)
    assert await store.holds.sweep(10) == 1
    kept = await store.holds.of_effect(key(1))
    assert kept == replace(first, expires_at=Instant(2**60))


_PAST = 20_000
"""Bookings of one room, half an hour each."""


async def test_a_long_past_of_a_resource_is_not_read_to_claim_a_time(store: Store, database_url: str) -> None:
    numbers = f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_PAST}) SELECT i FROM n)"
    is_sqlite = database_url.startswith("sqlite")
    identifier = "cast(printf('%016d', i) AS BLOB)" if is_sqlite else "md5(i::text)::uuid"
    await do(
        database_url,
        "INSERT INTO holds (id, tenant, resource, starts_at, ends_at, priority, state, holder, placed_at, ended_at) "
        f"SELECT {identifier}, {TENANT}, 'room-1', i * 100, i * 100 + 50, 0, 2 + 2 * (i % 2), 'ann', 1, i "
        f"FROM {numbers} AS past",
        "ANALYZE holds",
    )
    wanted = wish(1, key=key(1))

    def work(connection: Connection) -> None:
        met(connection, Instant(2**52), claims_any_of(connection, wanted))
        select_yielded(connection, Instant(2**52), wanted)

    found = "\n".join(await plans(database_url, work))
    assert ("holds_claiming" if is_sqlite else "holds_overlap") in found, found
    assert "Seq Scan" not in found, found
    assert "SCAN holds" not in found, found
    assert "holds_key" in found, found
    assert isinstance(await store.holds.place(wanted), Placed)
