"""Lanes are compared by their bytes: a database that sorts as a dictionary does must not lose them."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import asyncpg
import pytest

from guard.ports.relay import Done
from guard.store.sql.engine import open_store
from guard.store.sql.schema import migrate
from tests.contract.given import TENANT
from tests.contract.given_outbox import claim, declared, settle, staged
from tests.servers import PostgresServer

_COLLATED = """
    SELECT c.relname || '.' || a.attname FROM pg_attribute a
      JOIN pg_class c ON c.oid = a.attrelid JOIN pg_collation o ON o.oid = a.attcollation
    WHERE o.collname = 'C' AND c.relname IN ('outbox', 'outbox_history', 'destinations') ORDER BY 1"""


@pytest.fixture
def backend() -> str:
    """On SQLite text is always compared by its bytes."""
    return "postgresql"


@pytest.fixture
def dictionary_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a migrated database that sorts words as English does, as most packages of PostgreSQL make it."""
    postgres_server.learn("en_US")
    name = f"test_{uuid4().hex}"
    made = f"CREATE DATABASE {name} TEMPLATE template0 LOCALE 'en_US.UTF-8'"
    asyncio.run(_execute(postgres_server.url(), made))
    asyncio.run(migrate(postgres_server.url(name)))
    yield postgres_server.url(name)
    asyncio.run(_execute(postgres_server.url(), f"DROP DATABASE {name} WITH (FORCE)"))


async def test_what_is_put_in_an_order_is_compared_by_its_bytes(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        columns = [row[0] for row in await connection.fetch(_COLLATED)]
    finally:
        await connection.close()
    assert columns == ["destinations.name", "outbox.lane", "outbox_history.lane"]


async def test_lanes_are_delivered_in_a_database_that_sorts_as_a_dictionary_does(dictionary_url: str) -> None:
    assert await _select(dictionary_url, "SELECT 'a' < 'B'"), "this database sorts by words"
    store = await open_store(dictionary_url)
    try:
        log, *_ = [await declared(store, name) for name in ("a", "b", "A", "B")]
        assert [one.place.name for one in await store.destinations.all(TENANT)] == ["A", "B", "a", "b"]
        names = ["order-1042", "B", "a", "A", "\u8ba2\u5355", "\u03a9mega", "~", "\uffff", "\U0010ffff", "a b", "\xe4"]
        for number, lane in enumerate(names):
            await staged(store, log, 2, lane, number)
        seen: list[str | None] = []
        while claimed := await claim(store, log, 3, followers=0):
            seen += [one.lane for one in claimed]
            await settle(store, *(Done(id=one.id, over="delivered") for one in claimed))
        assert sorted(str(lane) for lane in seen) == sorted(names * 2)
    finally:
        await store.close()


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _select(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()
