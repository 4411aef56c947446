"""Epochs: they end where a record goes earlier than it says itself, and not where its time is simply over."""

import pytest

from guard.core.effects import SECOND, Duration, TenantId
from guard.core.retention import RECALLED_AT_MOST
from guard.ports.store import Store
from guard.store.sql.tables import effects, runs
from tests.contract.given import TENANT, insert, key, look, opened, written
from tests.contract.test_retention_store import DAY, HOUR, TOOL, aged, done


async def epoch(store: Store) -> int:
    return (await store.cache_epochs.read(TENANT)).epoch


async def test_the_first_epoch_is_none_and_each_end_begins_the_next(store: Store) -> None:
    assert await epoch(store) == 0
    await store.cache_epochs.end(TENANT)
    await store.cache_epochs.end(TENANT)
    assert await epoch(store) == 2


async def test_an_epoch_is_told_with_the_database_s_time(store: Store) -> None:
    before = (await written(store, insert(1))).at
    told = await store.cache_epochs.read(TENANT)
    after = (await written(store, insert(2))).at
    assert before <= told.at <= after


async def test_a_tenant_that_is_not_there_has_none(store: Store) -> None:
    with pytest.raises(LookupError, match="there is no tenant 9"):
        await store.cache_epochs.read(TenantId(9))


async def expired(store: Store, url: str, *, since_run: Duration, since_effect: Duration) -> int:
    """Let an effect expire with its run, each having ended so long ago; return the epoch then."""
    run = await opened(store)
    effect = await done(store, 1, run)
    assert effect.life.ended_at is not None
    await store.runs.end(TENANT, run.name, "finished")
    now = (await store.cache_epochs.read(TENANT)).at
    await aged(url, runs, runs.c.id == run.id, ended_at=now - since_run, kept_until=now)
    await aged(url, effects, effects.c.key == key(1), ended_at=now - since_effect)
    assert await store.retention.expire_of_run(run.id, {TOOL: HOUR}, DAY, 10) == [key(1)]
    assert (await look(store)).expired_at is not None
    return await epoch(store)


async def test_a_record_whose_time_is_over_ends_no_epoch(store: Store, database_url: str) -> None:
    assert await expired(store, database_url, since_run=HOUR, since_effect=Duration(2 * HOUR)) == 0


async def test_one_that_became_final_after_its_run_had_ended_ends_it(store: Store, database_url: str) -> None:
    assert await expired(store, database_url, since_run=Duration(2 * HOUR), since_effect=Duration(SECOND)) == 1


async def test_one_that_is_older_than_anything_is_kept_beside_the_database_ends_none(
    store: Store, database_url: str
) -> None:
    long_ago = Duration(RECALLED_AT_MOST + HOUR)
    assert await expired(store, database_url, since_run=Duration(2 * long_ago), since_effect=long_ago) == 0


async def test_an_effect_without_a_run_expires_by_its_own_end_and_ends_none(store: Store, database_url: str) -> None:
    await done(store, 1)
    now = (await store.cache_epochs.read(TENANT)).at
    await aged(database_url, effects, effects.c.key == key(1), ended_at=now - HOUR)
    assert await store.retention.expire_alone(TENANT, TOOL, HOUR, 10) == [key(1)]
    assert await epoch(store) == 0


async def test_an_effect_that_is_given_its_slot_afterwards_ends_it_where_it_may_still_be_kept_elsewhere(
    store: Store, database_url: str
) -> None:
    await done(store, 1)
    await store.effects.keep_slot(key(1), b"s" * 32)
    assert await epoch(store) == 1
    await done(store, 2)
    now = (await store.cache_epochs.read(TENANT)).at
    await aged(database_url, effects, effects.c.key == key(2), ended_at=now - RECALLED_AT_MOST - HOUR)
    await store.effects.keep_slot(key(2), b"t" * 32)
    assert await epoch(store) == 1
