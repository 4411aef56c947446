"""What replicas keep for each other in Redis: it is found at the other one, and never beyond what the database says."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis

from guard.core.effects import SECOND, Duration, Effect
from guard.ports.store import Store
from tests.brokers import ValkeyServer
from tests.contract.given import TENANT, key
from tests.contract.given_redis import Replica, replica, until
from tests.contract.test_retention_store import done


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
async def redis(valkey: ValkeyServer) -> AsyncIterator[Any]:
    """What anybody can do to what is kept."""
    async with Redis.from_url(valkey.url) as client:
        await client.flushall()
        yield client


class Watch:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def kept_by(one: Replica, store: Store, number: int = 1) -> Effect:
    """Let an effect end and be kept."""
    await one.knows()
    effect = await done(store, number)
    await one.keep(effect)
    return effect


async def test_what_one_replica_keeps_another_recalls(store: Store, valkey: ValkeyServer, redis: Any) -> None:
    async with replica(store, valkey.url) as one, replica(store, valkey.url) as other:
        effect = await kept_by(one, store)
        assert await other.recall(key(1)) == effect
        assert await other.recall(key(2)) is None
        assert other.counted.answers == ["hit", "miss"]
    (name,) = await redis.keys("*")
    assert 3_500 < await redis.ttl(name) <= 3_600


async def test_no_name_and_no_value_says_what_was_done(store: Store, valkey: ValkeyServer, redis: Any) -> None:
    async with replica(store, valkey.url) as one:
        await kept_by(one, store)
    (name,) = await redis.keys("*")
    assert len(name) == len("twiceshy:record:") + 40
    assert key(1).hex().encode() not in name


async def test_what_everybody_writes_there_is_believed_by_nobody(
    store: Store, valkey: ValkeyServer, redis: Any
) -> None:
    async with replica(store, valkey.url) as one:
        await kept_by(one, store, 1)
        (first,) = await redis.keys("*")
        true = await redis.get(first)
        await kept_by(one, store, 2)
        (second,) = set(await redis.keys("*")) - {first}
        lies: list[bytes] = [
            os.urandom(400),
            b"",
            true[:-1],
            true + b"x",
            bytes([true[0] ^ 1]) + true[1:],
            bytes(400_000),
        ]
        for lie in lies:
            await redis.set(first, lie)
            assert await one.recall(key(1)) is None, lie[:20]
        await redis.set(second, true)
        assert await one.recall(key(2)) is None
        await redis.delete(first)
        await redis.lpush(first, "a", "b")
        assert await one.recall(key(1)) is None
        assert one.counted.doubts == ["unsealed"] * 4 + ["oversized", "unsealed", "wrong-type"]
        await redis.delete(first)
        await redis.set(first, true)
        assert await one.recall(key(1)) is not None


async def test_an_epoch_that_ended_takes_all_of_it_with_it_within_a_second(
    store: Store, valkey: ValkeyServer, redis: Any
) -> None:
    watch = Watch()
    async with replica(store, valkey.url) as one, replica(store, valkey.url, watch) as other:
        await kept_by(one, store)
        assert await other.recall(key(1)) is not None
        await store.cache_epochs.end(TENANT)
        watch.now += 1.0
        assert await other.recall(key(1)) is None
        assert other.counted.doubts == ["unsealed"]


async def test_an_effect_that_ended_before_its_epoch_was_known_is_not_kept(
    store: Store, valkey: ValkeyServer, redis: Any
) -> None:
    async with replica(store, valkey.url) as one:
        effect = await done(store, 1)
        await store.cache_epochs.end(TENANT)
        await one.knows()
        one.accelerator.keep(effect)
        await kept_by(one, store, 2)
        assert await one.recall(key(1)) is None
        assert await one.recall(key(2)) is not None


async def test_an_entry_lives_as_long_as_it_is_set_whatever_redis_says(
    store: Store, valkey: ValkeyServer, redis: Any
) -> None:
    async with replica(store, valkey.url, lives=100) as one:
        await kept_by(one, store)
        (name,) = await redis.keys("*")
        await redis.persist(name)
        assert await one.recall(key(1)) is not None
    later = Watch()
    async with replica(store, valkey.url, later, lives=100) as other:
        await other.knows()
        later.now += 0.9
        assert await other.recall(key(1)) is not None
        assert await other.recall(key(1), Duration(SECOND // 2)) is None
    async with replica(store, valkey.url, lives=0) as third:
        assert await third.recall(key(1)) is None
        assert third.counted.doubts == ["expired"]


async def test_what_is_forgotten_is_forgotten_by_all(store: Store, valkey: ValkeyServer, redis: Any) -> None:
    async with replica(store, valkey.url) as one, replica(store, valkey.url) as other:
        await kept_by(one, store)
        other.accelerator.forget(TENANT, (key(1), key(2)))
        await until(lambda: other.counted.sent == 2)
        assert await one.recall(key(1)) is None
    assert await redis.keys("*") == []


async def test_a_crowd_of_recalls_is_a_few_questions(store: Store, valkey: ValkeyServer, redis: Any) -> None:
    async with replica(store, valkey.url) as one:
        effect = await kept_by(one, store)
        await redis.config_resetstat()
        found = await asyncio.gather(*(one.recall(key(number % 50)) for number in range(1_000)))
        assert [item for item in found if item is not None] == [effect] * 20
        stats = await redis.info("commandstats")
        assert stats["cmdstat_getrange"]["calls"] == 50


async def test_what_cannot_be_sent_is_dropped_and_what_is_asked_is_not_known(store: Store) -> None:
    async with replica(store, "redis://127.0.0.1:1/0", is_reached=False) as one:
        effect = await done(store, 1)
        for _ in range(10):
            one.accelerator.keep(effect)
        assert await one.recall(key(1)) is None
        assert (one.counted.answers, one.counted.dropped) == (["away"], 10)
        assert await one.accelerator.hottest(TENANT, 10) is None
        await until(lambda: "refused" in one.accelerator.reached.why.lower())


async def test_what_waits_to_be_sent_is_bounded(store: Store, valkey: ValkeyServer, redis: Any) -> None:
    async with replica(store, valkey.url) as one:
        await one.knows()
        effect = await done(store, 1)
        for _ in range(5_000):
            one.accelerator.keep(effect)
        assert one.counted.dropped == 3_000
        await until(lambda: one.counted.sent == 2_000)
