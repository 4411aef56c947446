"""A wire that is lost while replicas wait: once it is back, somebody looks for what was missed."""

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from guard.ports.store import Store
from guard.service.outcomes import Replayed
from tests.brokers import ValkeyServer
from tests.contract.given_redis import replica
from tests.contract.given_replicas import committed, granted, let_nobody_look_by_himself, two_replicas, waiters

pytestmark = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
WAITERS = 50
_CUT = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%'
"""


@pytest.fixture(autouse=True)
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    let_nobody_look_by_himself(monkeypatch)


@pytest.fixture
def valkey() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


async def test_what_ends_while_no_replica_listens_is_found_once_they_listen_again(
    store: Store, database_url: str
) -> None:
    person = await asyncpg.connect(database_url)
    async with two_replicas(store, database_url) as (here, there):
        grant = await granted(here)
        tasks = await waiters(there, WAITERS)
        assert await person.fetchval(_CUT) == 2
        await committed(here, grant)
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*tasks)
    await person.close()
    assert [type(answer) for answer in answers] == [Replayed] * WAITERS


async def test_what_ends_while_redis_is_away_is_found_once_it_is_back(
    store: Store, database_url: str, valkey: ValkeyServer
) -> None:
    async with (
        replica(store, valkey.url) as one,
        replica(store, valkey.url) as other,
        two_replicas(store, database_url, (one.accelerator, other.accelerator)) as (here, there),
    ):
        grant = await granted(here)
        tasks = await waiters(there, WAITERS)
        valkey.kill()
        await committed(here, grant)
        assert not any(task.done() for task in tasks)
        valkey.start()
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*tasks)
    assert [type(answer) for answer in answers] == [Replayed] * WAITERS
