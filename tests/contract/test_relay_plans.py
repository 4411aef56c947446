"""The relay's statements walk indexes: what they read does not grow with what waits or was delivered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest
from sqlalchemy import Connection

from guard.core.effects import Instant
from guard.ports.outbox import MessageFilter
from guard.ports.relay import Again, Done, Stands
from guard.ports.store import Store
from guard.store.sql import claims_sqlite, leases
from guard.store.sql.backlogs import select_backlogs
from guard.store.sql.engine import open_store
from guard.store.sql.outbox_pages import select_page
from guard.store.sql.plans import walk_indexes
from guard.store.sql.sweeps import free_lanes, park_waiting
from tests.contract.given import TENANT
from tests.contract.given_outbox import LEASE, LENGTH, OTHER, claim, declared, settle, staged
from tests.contract.plans import Work, do, plans, rows

_MANY = 3000


async def _filled(store: Store, url: str) -> int:
    """Have many messages wait in no lane, in one lane, and in lanes of their own."""
    log = await declared(store)
    await staged(store, log, 1)
    copied = "epoch, tenant, destination_id, destination, content_type, headers, body, staged_at, state, attempts"
    made = "randomblob(16)" if url.startswith("sqlite") else "gen_random_uuid()"
    for lane in ("NULL", "'one'", "'l' || i"):
        await do(
            url,
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_MANY}) "
            f"INSERT INTO outbox (message, {copied}, lane, in_lane, due_at) "
            f"SELECT {made}, {copied}, {lane}, {lane} IS NOT NULL, staged_at FROM outbox, n WHERE outbox.id = 1",
        )
    return log


async def _work(store: Store, log: int) -> None:
    """Do each thing that a relay does, once or twice."""
    claimed = await claim(store, log)
    await store.relay.start(LEASE, [one.id for one in claimed if not one.is_first][:3], LENGTH)
    await store.relay.renew(LEASE, [one.id for one in claimed], LENGTH)
    if claimed:
        one, two, three = claimed[:3]
        await settle(
            store,
            Done(id=one.id, over="delivered"),
            Again(id=two.id, delay=LENGTH, tried="retryable"),
            Stands(id=three.id, state="dead", note="no", tried="permanent"),
        )
    await claim(store, log, lease=OTHER)
    assert await store.relay.due() <= {log}
    await store.relay.reap(10)


class TestPostgres:
    """By the counters of the server: rows that were read in no index's order, and rows that were read by index."""

    @pytest.fixture
    def backend(self) -> str:
        return "postgresql"

    @pytest.mark.parametrize("is_planned_empty", [True, False])
    async def test_no_statement_scans_the_queue(self, database_url: str, *, is_planned_empty: bool) -> None:
        async with _reads(database_url), _opened(database_url) as first:
            log = await declared(first)
            if not is_planned_empty:
                await _filled(first, database_url)
        async with _reads(database_url) as reads, _opened(database_url) as store:
            if is_planned_empty:
                await _work(store, log)
                await _filled(store, database_url)
            await _work(store, log)
        scanned, fetched = reads
        assert scanned < 50
        assert fetched < _MANY, "a claim of 10 reads a few dozen rows"


class TestSqlite:
    """By the plans: no table is scanned."""

    @pytest.fixture
    def backend(self) -> str:
        return "sqlite"

    @pytest.mark.parametrize(
        ("statement", "index"),
        [
            (claims_sqlite.FREE, "outbox_free"),
            (claims_sqlite.NEXT_HEAD, "outbox_lanes"),
            (claims_sqlite.BEHIND, "outbox_lanes"),
            (claims_sqlite.IN_FLIGHT, "outbox_claimed"),
            (claims_sqlite.IS_BUSY, "outbox_lanes"),
        ],
    )
    async def test_a_claim_searches_by_index(self, store: Store, database_url: str, statement: str, index: str) -> None:
        await _filled(store, database_url)
        plan = str(await rows(database_url, "EXPLAIN QUERY PLAN " + statement.replace("?", "1")))
        assert f"outbox USING INDEX {index}" in plan
        assert "SCAN outbox'" not in plan


def _sweep(held: Connection) -> None:
    """Do what is done for ever once a destination was removed; of one so many wait that a scan would look cheap."""
    walk_indexes(held)
    park_waiting(held, [1, 2], 10)
    free_lanes(held, [1, 2], 10)


@pytest.mark.parametrize(
    ("work", "indexes"),
    [
        (lambda held: leases.reap(held, Instant(1), 10), {"outbox_claimed"}),
        (select_backlogs, {"outbox_claimed", "outbox_standing"}),
        (_sweep, {"outbox_free", "outbox_lanes"}),
        (lambda held: leases.release(held, Instant(1), LEASE, frozenset()), {"outbox_claimed"}),
        (lambda held: select_page(held, TENANT, MessageFilter(state="dead"), None), {"outbox_standing"}),
    ],
)
async def test_other_statements_search_by_index(store: Store, database_url: str, work: Work, indexes: set[str]) -> None:
    await _filled(store, database_url)
    if database_url.startswith("postgresql"):
        await do(database_url, "ANALYZE outbox")
    found = "\n".join(await plans(database_url, work))
    assert {index for index in indexes if index not in found} == set(), found
    assert "Seq Scan on outbox" not in found
    assert "SCAN outbox\n" not in found + "\n"


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Store]:
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def _reads(url: str, besides: int = 0) -> AsyncIterator[list[int]]:
    """Count the rows of the queue that are read meanwhile, by scans and by indexes: a session tells when it ends."""
    connection = await asyncpg.connect(url)
    counts: list[int] = []

    async def read() -> list[int]:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = $1"
        while await connection.fetchval(others, "client backend") > 1 + besides:  # noqa: ASYNC110  the server tells nobody
            await asyncio.sleep(0.01)
        row = await connection.fetchrow(
            "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'outbox'"
        )
        assert row is not None
        return [row["seq_tup_read"] or 0, row["idx_tup_fetch"] or 0]

    try:
        before = await read()
        yield counts
        counts += [now - then for now, then in zip(await read(), before, strict=True)]
    finally:
        await connection.close()
