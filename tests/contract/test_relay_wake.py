"""Wake-up: whoever listens hears soon that something was staged, and whoever rings waits for nothing."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from guard.ports.store import Store
from guard.store.sql.engine import open_store
from tests.servers import PostgresServer

_SOON = 5


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[Store]:
    """Another store on the same database."""
    opened = await open_store(database_url)
    try:
        yield opened
    finally:
        await opened.close()


async def test_a_relay_hears_what_another_store_rings(store: Store, other: Store) -> None:
    heard = asyncio.Event()
    async with other.relay.listening(heard.set):
        await _until_it_listens(store, heard)
        for _ in range(3):
            heard.clear()
            began = time.monotonic()
            await store.relay.ring()
            async with asyncio.timeout(_SOON):
                await heard.wait()
            assert time.monotonic() - began < 1
    heard.clear()
    await store.relay.ring()
    await store.relay.ring()
    assert not heard.is_set()


async def test_several_relays_hear_it(store: Store, other: Store) -> None:
    one, two = asyncio.Event(), asyncio.Event()
    async with other.relay.listening(one.set), store.relay.listening(two.set):
        for heard in (one, two):
            await _until_it_listens(store, heard)


async def test_many_rings_are_few_notifications(store: Store, other: Store) -> None:
    heard = asyncio.Event()
    count = 0

    def note() -> None:
        nonlocal count
        count += 1
        heard.set()

    async with other.relay.listening(note):
        await _until_it_listens(store, heard)
        count = 0
        heard.clear()
        for _ in range(500):
            await store.relay.ring()
        async with asyncio.timeout(_SOON):
            await heard.wait()
        assert 1 <= count <= 500


async def test_ringing_without_anybody_who_listens_is_nothing(store: Store) -> None:
    await store.relay.ring()


async def test_a_server_that_is_gone_is_nothing_to_whoever_rings_and_heard_again_when_it_is_back(
    own_postgres_server: PostgresServer,
) -> None:
    from guard.store.sql.schema import migrate

    url = own_postgres_server.url()
    await migrate(url)
    store = await open_store(url)
    heard = asyncio.Event()
    try:
        async with store.relay.listening(heard.set):
            await _until_it_listens(store, heard)
            own_postgres_server.kill()
            await store.relay.ring()
            own_postgres_server.start()
            heard.clear()
            await _until_it_listens(store, heard)
    finally:
        await store.close()


async def _until_it_listens(store: Store, heard: asyncio.Event) -> None:
    """Ring until it is heard: a connection is made in the background."""
    async with asyncio.timeout(30):
        while not heard.is_set():
            await store.relay.ring()
            await asyncio.sleep(0.01)
