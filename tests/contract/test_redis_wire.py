"""The wire over Redis: each replica hears the words of all, foreign ones are not heard, and gaps are told."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis

from guard.ports.store import Store
from guard.ports.wire import LONGEST_WORD
from tests.brokers import ValkeyServer
from tests.contract.given import TENANT, key
from tests.contract.given_redis import replica, until

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no minute end while hot keys are counted."""
    monkeypatch.setattr("guard.accelerator.hot_keys._minute", lambda: 4711)


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
    """What anybody can do on the wire."""
    async with Redis.from_url(valkey.url) as client:
        await client.flushall()
        yield client


async def test_every_replica_hears_every_word_the_sender_too_in_the_order_of_each(
    store: Store, valkey: ValkeyServer
) -> None:
    heard: list[list[bytes | None]] = [[], []]
    async with replica(store, valkey.url) as one, replica(store, valkey.url) as other:
        wires = [one.accelerator.wire, other.accelerator.wire]
        async with wires[0].listening(heard[0].append), wires[1].listening(heard[1].append):
            await until(lambda: heard == [[None], [None]])
            for number in range(1_000):
                wires[0].tell(b"one %d" % number)
                wires[1].tell(b"other %d" % number)
            await until(lambda: [len(words) for words in heard] == [2_001, 2_001])
    for words in heard:
        assert [word for word in words if word and word.startswith(b"one")] == [b"one %d" % n for n in range(1_000)]
        assert [word for word in words if word and word.startswith(b"other")] == [b"other %d" % n for n in range(1_000)]


async def test_words_of_one_moment_are_few_messages(store: Store, valkey: ValkeyServer, redis: Any) -> None:
    heard: list[bytes | None] = []
    async with replica(store, valkey.url) as one, one.accelerator.wire.listening(heard.append):
        await until(lambda: heard == [None])
        await redis.config_resetstat()
        for number in range(1_000):
            one.accelerator.wire.tell(b"%d" % number)
        await until(lambda: len(heard) == 1_001)
        assert (await redis.info("commandstats"))["cmdstat_publish"]["calls"] == 4


async def test_foreign_and_broken_messages_are_not_heard(store: Store, valkey: ValkeyServer, redis: Any) -> None:
    heard: list[bytes | None] = []
    async with replica(store, valkey.url) as one, one.accelerator.wire.listening(heard.append):
        await until(lambda: heard == [None])
        (channel,) = await redis.pubsub_channels("*")
        async with redis.pubsub() as spy:
            await spy.subscribe(channel)
            assert (await spy.get_message(timeout=5))["type"] == "subscribe"
            one.accelerator.wire.tell(b"true")
            message = (await spy.get_message(timeout=5))["data"]
        flipped = message[:-1] + bytes([message[-1] ^ 1])
        for lie in (b"", b"x" * 20, flipped, message[:-1], message + b"\x01x", bytes(100_000)):
            await redis.publish(channel, lie)
        one.accelerator.wire.tell(b"last")
        await until(lambda: heard[-1] == b"last")
        assert heard == [None, b"true", b"last"]


async def test_who_listens_is_told_that_words_may_have_been_missed(store: Store) -> None:
    heard: list[bytes | None] = []
    valkey = ValkeyServer()
    try:
        valkey.start()
        async with replica(store, valkey.url) as one, one.accelerator.wire.listening(heard.append):
            await until(lambda: heard == [None])
            valkey.kill()
            await until(lambda: heard == [None, None])
            valkey.start()
            await until(lambda: heard == [None, None, None] and one.accelerator.reached.is_reached)
            one.accelerator.wire.tell(b"again")
            await until(lambda: heard[-1] == b"again")
    finally:
        valkey.remove()


async def test_one_that_listens_to_a_frozen_server_hears_of_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guard.accelerator.wire._QUIET_SECONDS", 0.05)
    monkeypatch.setattr("guard.accelerator.wire._PONG_SECONDS", 0.2)
    heard: list[bytes | None] = []
    valkey = ValkeyServer()
    try:
        valkey.start()
        async with replica(store, valkey.url) as one, one.accelerator.wire.listening(heard.append):
            await until(lambda: heard == [None])
            valkey.freeze()
            await until(lambda: heard == [None, None])
            valkey.thaw()
            await until(lambda: heard[2:] == [None])
    finally:
        valkey.thaw()
        valkey.remove()


async def test_who_listens_is_told_that_words_of_its_own_were_lost_though_it_heard_all(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guard.accelerator.wire._QUIET_SECONDS", 0.05)
    heard: list[bytes | None] = []
    valkey = ValkeyServer()
    try:
        valkey.start()
        async with replica(store, valkey.url) as one, one.accelerator.wire.listening(heard.append):
            await until(lambda: heard == [None])
            valkey.freeze()
            one.accelerator.wire.tell(b"slow")
            await until(lambda: one.counted.dropped == 1)
            valkey.thaw()
            await until(lambda: heard[1:].count(None) == 1)
    finally:
        valkey.thaw()
        valkey.remove()


async def test_what_cannot_be_sent_and_what_is_no_word_is_lost_at_once(store: Store, valkey: ValkeyServer) -> None:
    async with replica(store, "redis://127.0.0.1:1/0", is_reached=False) as away:
        away.accelerator.wire.tell(b"word")
        assert away.counted.dropped == 1
    heard: list[bytes | None] = []
    async with replica(store, valkey.url) as one, one.accelerator.wire.listening(heard.append):
        await until(lambda: heard == [None])
        for word in (b"", b"w" * (LONGEST_WORD + 1), b"w" * LONGEST_WORD):
            one.accelerator.wire.tell(word)
        await until(lambda: len(heard) > 1)
        assert (heard, one.counted.dropped) == ([None, b"w" * LONGEST_WORD], 2)


async def test_hot_keys_are_counted_on_all_replicas_together(store: Store, valkey: ValkeyServer, redis: Any) -> None:
    async with replica(store, valkey.url) as one, replica(store, valkey.url) as other:
        for number, times in ((1, 5), (2, 9), (3, 1)):
            for _ in range(times):
                one.accelerator.contended(TENANT, f"tool-{number}", key(number))
        for _ in range(6):
            other.accelerator.contended(TENANT, "tool-1", key(1))
        await until(lambda: one.counted.sent == 5 and other.counted.sent == 3)
        hottest = await other.accelerator.hottest(TENANT, 2)
        assert hottest is not None
        assert [(hot.key, hot.tool, hot.begins) for hot in hottest] == [(key(1), "tool-1", 11), (key(2), "tool-2", 9)]
        (name,) = await redis.keys("*")
        assert 0 < await redis.ttl(name) <= 7 * 60
        await redis.zincrby(name, 1_000, b"<script>")
        await redis.zincrby(name, 1_000, b"x" * 60)
        assert await other.accelerator.hottest(TENANT, 2) == hottest


async def test_hot_keys_are_bounded(store: Store, valkey: ValkeyServer, redis: Any) -> None:
    async with replica(store, valkey.url) as one:
        for number in range(3_000):
            one.accelerator.contended(TENANT, "tool", key(number))
        assert one.counted.dropped == 2_000
        await until(lambda: one.counted.sent == 1_002)
        await asyncio.gather(*(one.accelerator.hottest(TENANT, 20) for _ in range(20)))
        (name,) = await redis.keys("*")
        assert await redis.zcard(name) == 1_000
