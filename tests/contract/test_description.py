"""What every store must say of itself, and how it counts what is unsettled."""

import asyncio
import time
from pathlib import Path

import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from guard.core.effects import SECOND, TenantId
from guard.ports.steps import Replace
from guard.ports.store import Store, Tally
from guard.store.sql.engine import open_store
from guard.store.sql.schema import migrate
from tests.contract.given import TENANT, finish, in_doubt, insert, opened, written
from tests.servers import PostgresServer


async def test_a_store_names_its_database_its_schema_and_its_time(store: Store, backend: str) -> None:
    before = time.time_ns() // 1000
    said = await store.describe()
    after = time.time_ns() // 1000
    assert (said.kind, said.revision, said.is_current) == (backend, said.needed, True)
    assert said.revision is not None
    assert said.version.split(".")[0] == {"sqlite": "3", "postgresql": "18"}[backend]
    assert before - SECOND <= said.now <= after + SECOND


async def test_a_file_is_durable_and_knows_how_much_room_is_left(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    await migrate(url)
    store = await open_store(url)
    try:
        said = await store.describe()
    finally:
        await store.close()
    assert (said.durability, said.is_durable) == ({"journal_mode": "wal", "synchronous": "full"}, True)
    assert said.free_bytes is not None
    assert said.free_bytes > 0


async def test_a_durable_server_says_so(own_postgres_server: PostgresServer) -> None:
    url = own_postgres_server.url()
    await migrate(url)
    store = await open_store(url)
    try:
        said = await store.describe()
    finally:
        await store.close()
    assert said.durability == {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
    assert (said.is_durable, said.free_bytes) == (True, None)


async def test_a_server_that_a_power_cut_could_rob_says_so(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    store = await open_store(postgres_server.url(postgres_template))
    try:
        said = await store.describe()
    finally:
        await store.close()
    assert said.durability == {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
    assert not said.is_durable


async def test_a_schema_that_moved_on_under_a_running_store_is_not_current(store: Store, database_url: str) -> None:
    known = (await store.describe()).revision
    await _move_on(database_url)
    said = await store.describe()
    assert (said.revision, said.needed, said.is_current) == ("9999_later", known, False)


async def test_the_tally_counts_open_doubt_and_execution_of_one_tenant(store: Store) -> None:
    assert await store.effects.tally(TENANT) == Tally(in_doubt=0, executing=0)
    run = await opened(store)
    for number in range(1, 6):
        await written(store, insert(number, run))
    await written(store, finish(1))
    for number in (2, 3):
        began = await written(store, insert(number + 10, run))
        doubtful = in_doubt(began.effect, began.at)
        closed = replace(doubtful, life=replace(doubtful.life, closed=number == 3))
        await written(store, Replace(seen=1, effect=closed))
    counted = await store.effects.tally(TENANT)
    assert (counted.in_doubt, counted.executing) == (1, 4)
    assert 0 <= counted.oldest_lease < 60 * SECOND
    assert await store.effects.tally(TenantId(2)) == Tally(in_doubt=0, executing=0)


async def _move_on(url: str) -> None:
    statement = sa.text("UPDATE alembic_version SET version_num = '9999_later'")
    if url.startswith("sqlite"):
        await asyncio.to_thread(_execute, url, statement)
        return
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"), poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.execute(statement)


def _execute(url: str, statement: sa.TextClause) -> None:
    with sa.create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(statement)
