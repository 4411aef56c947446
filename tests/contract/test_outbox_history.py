"""History has its time: days are dropped whole where there are partitions, rows in small batches elsewhere."""

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from guard.core.effects import SECOND, Duration
from guard.ports.outbox import MessageFilter, Redrive
from guard.ports.relay import Done, Stands
from guard.ports.store import Store
from tests.contract.given import TENANT
from tests.contract.given_outbox import claim, declared, row, settle, stage, staged
from tests.contract.plans import do, rows

_DAY = 86_400 * SECOND
_KEPT = Duration(30 * _DAY)


async def _delivered(store: Store, destination: int) -> None:
    await settle(store, *(Done(id=one.id, over="delivered") for one in await claim(store, destination)))


async def test_what_is_older_than_it_is_kept_is_dropped_and_nothing_else(store: Store, database_url: str) -> None:
    log = await declared(store)
    old, new, waits = await staged(store, log, 3)
    (first,) = await claim(store, log, 1)
    await settle(store, Done(id=first.id, over="delivered"))
    await do(database_url, f"UPDATE outbox_history SET settled_at = settled_at - {40 * _DAY}")
    (second,) = await claim(store, log, 1)
    await settle(store, Done(id=second.id, over="delivered"))
    assert await store.relay.tidy(_KEPT) == 1
    assert await store.relay.tidy(_KEPT) == 0
    page, _ = await store.outbox.page(TENANT, MessageFilter(state="delivered"))
    assert [standing.message for standing in page] == [new]
    assert await store.outbox.get(TENANT, old) is None
    assert await store.outbox.get(TENANT, waits) is not None


async def test_old_tries_go_and_the_ids_of_old_mail_unless_it_waits(store: Store, database_url: str) -> None:
    log = await declared(store)
    await stage(store, 1, row(1, log, recipient="a@b.c", mail_id="sent"))
    (one,) = await claim(store, log)
    await settle(store, Stands(id=one.id, state="dead", note="no", tried="permanent"))
    await store.outbox.redrive(TENANT, one.message, Redrive(anew=False, note="again"))
    await _delivered(store, log)
    await stage(store, 2, row(2, log, recipient="a@b.c", mail_id="waits"))
    await do(
        database_url,
        f"UPDATE mails SET staged_at = staged_at - {40 * _DAY}",
        f"UPDATE outbox_tries SET at = at - {40 * _DAY}",
    )
    assert await store.relay.tidy(_KEPT) == 2
    assert await rows(database_url, "SELECT mail_id FROM mails") == [("waits",)]
    assert await rows(database_url, "SELECT count(*) FROM outbox_tries") == [(0,)]


async def test_more_than_one_batch_goes_at_once(store: Store, database_url: str) -> None:
    log = await declared(store)
    await staged(store, log, 1)
    await _delivered(store, log)
    copied = "message, epoch, tenant, destination, content_type, headers, body, staged_at, state, attempts"
    await do(
        database_url,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) "
        f"INSERT INTO outbox_history (settled_at, id, {copied}) SELECT i, i, {copied} FROM outbox_history, n",
    )
    assert await store.relay.tidy(_KEPT) == 2500


@pytest.fixture
def dropped_days(database_url: str) -> list[str]:
    """The names of the partitions that a database is made with."""
    today = datetime.now(UTC).date()
    return [f"outbox_history_{today + timedelta(days=days):%Y%m%d}" for days in range(-1, 5)]


class TestPartitions:
    """What only PostgreSQL has."""

    @pytest.fixture
    def backend(self) -> str:
        return "postgresql"

    async def test_days_ahead_have_their_partition_and_the_rest_is_empty(
        self, store: Store, database_url: str, dropped_days: list[str]
    ) -> None:
        log = await declared(store)
        await staged(store, log, 1)
        await _delivered(store, log)
        assert await _days(database_url) == dropped_days
        await do(database_url, *(f"DROP TABLE {name}" for name in dropped_days[2:]))
        assert await store.relay.tidy(_KEPT) == 0
        assert await _days(database_url) == dropped_days[:5]
        assert await rows(database_url, "SELECT count(*) FROM ONLY outbox_history_rest") == [(0,)]
        assert await rows(database_url, f"SELECT count(*) FROM ONLY {dropped_days[1]}") == [(1,)]

    async def test_a_day_that_is_wholly_past_is_dropped_whole(
        self, store: Store, database_url: str, dropped_days: list[str]
    ) -> None:
        log = await declared(store)
        await staged(store, log, 2)
        await _delivered(store, log)
        await do(database_url, f"UPDATE outbox_history SET settled_at = settled_at - {_DAY}")
        assert await store.relay.tidy(Duration(2 * _DAY)) == 0
        assert await store.relay.tidy(Duration(SECOND)) == 2
        assert dropped_days[0] not in await _days(database_url)
        page, _ = await store.outbox.page(TENANT, MessageFilter(state="delivered"))
        assert page == []

    async def test_a_day_of_which_there_are_rows_among_the_rest_is_left_there(
        self, store: Store, database_url: str, dropped_days: list[str]
    ) -> None:
        log = await declared(store)
        await staged(store, log, 1)
        await do(database_url, f"DROP TABLE {dropped_days[1]}")
        await _delivered(store, log)
        assert await store.relay.tidy(_KEPT) == 0
        assert dropped_days[1] not in await _days(database_url)
        page, _ = await store.outbox.page(TENANT, MessageFilter(state="delivered"))
        assert len(page) == 1

    async def test_a_reader_that_holds_the_history_holds_nobody_up(
        self, store: Store, database_url: str, dropped_days: list[str]
    ) -> None:
        log = await declared(store)
        await staged(store, log, 2)
        reader = await asyncpg.connect(database_url)
        try:
            begun = reader.transaction()
            await begun.start()
            await reader.fetch("SELECT FROM outbox_history")
            assert await store.relay.tidy(Duration(SECOND)) == 0
            assert dropped_days[0] in await _days(database_url)
            await _delivered(store, log)
            await begun.rollback()
        finally:
            await reader.close()
        await store.relay.tidy(Duration(SECOND))
        assert dropped_days[0] not in await _days(database_url)


async def _days(url: str) -> list[str]:
    found = await rows(
        url,
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'outbox_history'::regclass ORDER BY 1",
    )
    return [str(name) for (name,) in found if name != "outbox_history_rest"]
