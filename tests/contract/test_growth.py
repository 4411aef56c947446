"""With 100,000 stored effects, begins, sweeps, retention and listings read what they need by index, and no more."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from uuid import uuid4

import asyncpg
import pytest

from bench.growth import bloat, fill
from guard.core.effects import Duration
from guard.ports.flags import FlagFilter
from guard.ports.search import RunFilter
from guard.ports.store import EffectFilter, Store
from guard.probes.http import HttpProvider
from guard.service.outcomes import Granted, Settled
from guard.service.use_cases import UseCases
from guard.store.sql.engine import open_store
from tests.conftest import fresh_database
from tests.contract.given import TENANT
from tests.servers import PostgresServer
from twiceshy_contract.effects import BeginRequest, CommitRequest

STORED = 100_000
_READ = """
    SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = ANY($1))::bigint,
           (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = ANY($1))::bigint"""
"""Entries of indexes count, not rows: a scan of a whole index may read no row."""
_GROWING = ("effects", "attempts", "runs", "events")
_AGE = """
    WITH due AS (UPDATE runs SET state = 2, ended_at = 1, kept_until = 1 WHERE name IN ('filled-3', 'filled-4')),
         late AS (SELECT key FROM effects WHERE run = 'filled-5')
    UPDATE effects SET state = 2, lease_expires_at = 1, ended_at = NULL, outcome = NULL, report = NULL, settled = NULL
     WHERE key IN (SELECT key FROM late)"""
"""Let the time of two runs be up, and the leases of a hundred effects of another run out."""
_SETTINGS = "SELECT reloptions FROM pg_class WHERE relname = $1"


@pytest.fixture(scope="module")
def filled(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """The address of a database with very many effects. SQLite has the same indexes, and one user."""
    for url in fresh_database(postgres_server, postgres_template):
        asyncio.run(fill(url, STORED))
        yield url


async def reads(url: str) -> tuple[int, int]:
    """Return how many rows were read by scans so far, and how many by indexes."""
    connection = await asyncpg.connect(url)
    try:
        by_scan, by_index = await connection.fetchrow(_READ, _GROWING)
        return by_scan, by_index
    finally:
        await connection.close()


async def sweeps(store: Store) -> None:
    """Do what goes round for ever, and what operators look at."""
    assert await store.effects.overdue(100) == []
    assert await store.retention.oldest_alone(None) is None
    assert await store.retention.due_runs(100) == []
    assert await store.retention.forget_holds(Duration(1), 100) == 0
    assert await store.flags.unflagged(100) == []
    assert await store.probes.due_tools() == []
    assert await store.sagas.unfinished(10, None) == []
    assert (await store.effects.tally(TENANT)).executing == 0
    assert await store.flags.count_open(TENANT) == 0
    assert (await store.flags.page(TENANT, FlagFilter()))[0] == []


async def backlogs(store: Store) -> None:
    """Find what has come due, and let go of one run."""
    assert len(await store.effects.overdue(1_000)) == 100
    assert (await store.effects.tally(TENANT)).executing == 100
    (first, _) = await store.retention.due_runs(100)
    assert len(await store.retention.expire_of_run(first.id, {"pay": Duration(1)}, Duration(1), 1_000)) == 100
    assert not await store.retention.empty(first.id, 100)


async def listings(store: Store) -> None:
    """Show pages as operators ask for them."""
    first, after = await store.effects.page(TENANT, EffectFilter(limit=50))
    assert len(first) == 50
    assert len((await store.effects.page(TENANT, EffectFilter(limit=50, after=after)))[0]) == 50
    assert (await store.effects.page(TENANT, EffectFilter(state="in_doubt")))[0] == []
    assert len((await store.effects.page(TENANT, EffectFilter(run="filled-7", limit=20)))[0]) == 20
    runs, after = await store.runs.page(TENANT, RunFilter(limit=50))
    assert len(runs) == 50
    assert len((await store.runs.page(TENANT, RunFilter(limit=50, after=after)))[0]) == 50


async def calls(store: Store) -> None:
    """Begin and commit, and begin again."""
    async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
        for number in range(50):
            call = BeginRequest(tool="pay", run=f"new-{number % 5}", arguments={"n": number}, attempt=uuid4())
            granted = await guard.begin(TENANT, call)
            assert isinstance(granted, Granted)
            commit = CommitRequest(attempt=call.attempt, fence=granted.effect.life.fence, result="done")
            assert isinstance(await guard.commit(TENANT, granted.effect.intent.key, commit), Settled)


@pytest.mark.parametrize(("work", "least", "most"), [(sweeps, 0, 200), (listings, 170, 2_000), (calls, 50, 2_000)])
async def test_what_is_read_does_not_grow_with_what_is_stored(
    filled: str, work: Callable[[Store], Awaitable[None]], least: int, most: int
) -> None:
    before = await reads(filled)
    store = await open_store(filled)
    await work(store)
    await store.close()  # then its connections tell what they read
    after = await reads(filled)
    assert after[0] - before[0] == 0
    assert least <= after[1] - before[1] <= most


async def test_what_has_come_due_is_found_among_much_that_has_not(filled: str) -> None:
    connection = await asyncpg.connect(filled)
    await connection.execute(_AGE)
    await connection.close()
    before = await reads(filled)
    store = await open_store(filled)
    await backlogs(store)
    await store.close()
    after = await reads(filled)
    assert after[0] - before[0] == 0
    assert 500 <= after[1] - before[1] <= 5_000


async def test_updates_of_effects_stay_in_their_page_and_swell_nothing(filled: str) -> None:
    swollen = await bloat(filled, 4_000)
    assert swollen.updates == 4_000
    assert swollen.hot > 0.95
    assert swollen.bytes_after < 1.05 * swollen.bytes_before


async def test_tables_that_grow_are_looked_after_early(filled: str) -> None:
    connection = await asyncpg.connect(filled)
    try:
        for table in _GROWING:
            settings = await connection.fetchval(_SETTINGS, table)
            assert "autovacuum_vacuum_scale_factor=0.01" in settings
    finally:
        await connection.close()
