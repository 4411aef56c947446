"""Brokers and mail servers are killed while messages are delivered to them: none is lost, no lane is out of order.

A message arrives twice only where the broker cannot tell it apart, and only where a try of it was counted that may have
arrived. `SOAK=10000` is the full figure. Kafka's mock forgets all when it is killed: there it is the connections that
are cut, and the relay that is killed.
"""

import asyncio
import os
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import Any, Final, TypeVar

import aio_pika
import nats
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from redis.asyncio import Redis

from guard.core import breakers
from guard.core.effects import Duration
from guard.ports.outbox import MessageFilter
from guard.ports.store import Store
from tests.acceptance.broker_lanes import (
    LANES,
    Arrival,
    Watch,
    check_duplicates_are_counted,
    check_lanes,
    check_nothing_stands,
    check_once,
    deliver,
    few_left,
    interrupting,
    nothing,
    stage_lanes,
)
from tests.acceptance.mail_keeper import MailKeeper
from tests.acceptance.relays import RelayProcess
from tests.brokers import Broker, NatsServer, ValkeyServer
from tests.contract.given import TENANT
from tests.kafka_mock import KafkaMock
from tests.rabbitmq import RabbitServer
from twiceshy_contract.destinations import (
    KafkaDestination,
    NatsDestination,
    RabbitMqDestination,
    RedisDestination,
    SmtpDestination,
)
from twiceshy_contract.outbox import MessageState

pytestmark = pytest.mark.anyio
SOAK: Final = int(os.environ.get("SOAK", "0"))
COUNT: Final = SOAK // 10 * 10 or 1000
KILLS: Final = 10 if SOAK else 3
SLOW_KILLS: Final = 10 if SOAK else 1
"""RabbitMQ takes seconds to start, and a relay that is killed leaves leases that must run out."""
AT_ONCE: Final = 8
TOPIC: Final = "orders"
PARTITIONS: Final = 3
ON_SQLITE: Final = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
ON_POSTGRESQL: Final = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
Started = TypeVar("Started", bound=Broker)
PATIENT: Final[dict[str, Any]] = {"attempts": 1000, "timeout_seconds": 5, "concurrency": AT_ONCE}


@pytest.fixture(autouse=True)
def breakers_that_open_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a breaker stay open for moments: the tests wait for brokers, and not for it."""
    monkeypatch.setattr(breakers, "SHORTEST", Duration(50_000))
    monkeypatch.setattr(breakers, "LONGEST", Duration(200_000))


@pytest.fixture
def valkey() -> Iterator[ValkeyServer]:
    yield from _started(ValkeyServer())


@pytest.fixture
def nats_server() -> Iterator[NatsServer]:
    yield from _started(NatsServer())


@pytest.fixture
def rabbit() -> Iterator[RabbitServer]:
    yield from _started(RabbitServer())


@pytest.fixture
def cluster() -> Iterator[KafkaMock]:
    mock = KafkaMock()
    try:
        mock.start()
        mock.create_topic(TOPIC, PARTITIONS)
        yield mock
    finally:
        mock.remove()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[MailKeeper]:
    server = MailKeeper(tmp_path / "mails")
    yield server
    server.kill()


@ON_SQLITE
async def test_a_valkey_that_is_killed_has_each_message_once(store: Store, valkey: ValkeyServer) -> None:
    await stage_lanes(store, RedisDestination(url=valkey.url, stream="orders", **PATIENT), COUNT)
    await deliver(store, interrupting(COUNT, KILLS, valkey.kill, valkey.start))
    async with Redis.from_url(valkey.url) as client:
        entries: Any = await client.xrange("orders")
    arrivals = [(fields[b"id"].decode(), fields[b"body"].decode()) for _, fields in entries]
    check_lanes(arrivals, COUNT)
    check_once(arrivals, COUNT)
    await check_nothing_stands(store)


@ON_SQLITE
async def test_a_nats_server_that_is_killed_has_each_message_once(store: Store, nats_server: NatsServer) -> None:
    client = await nats.connect(nats_server.url)
    await client.jetstream().add_stream(name="orders", subjects=["orders"])
    await client.close()
    await stage_lanes(store, NatsDestination(servers=(nats_server.url,), subject="orders", **PATIENT), COUNT)
    await deliver(store, interrupting(COUNT, KILLS, nats_server.kill, nats_server.start))
    arrivals = await stored(nats_server)
    check_lanes(arrivals, COUNT)
    check_once(arrivals, COUNT)
    await check_nothing_stands(store)


@ON_SQLITE
async def test_a_rabbitmq_that_is_killed_has_each_message_and_what_it_has_twice_was_in_doubt(
    store: Store, rabbit: RabbitServer
) -> None:
    async with await aio_pika.connect(rabbit.url) as connection:
        await (await connection.channel()).declare_queue("orders", durable=True)
    await asyncio.to_thread(rabbit.sync)
    await stage_lanes(store, RabbitMqDestination(url=rabbit.url, routing_key="orders", **PATIENT), COUNT)
    watch = await deliver(store, interrupting(COUNT, SLOW_KILLS, rabbit.kill, rabbit.start))
    arrivals = await queued(rabbit)
    check_lanes(arrivals, COUNT)
    assert len(arrivals) <= COUNT + watch.unknown
    await check_duplicates_are_counted(store, arrivals, COUNT)
    await check_nothing_stands(store)


@ON_SQLITE
async def test_a_mail_server_that_is_killed_has_no_mail_twice_and_what_it_may_have_waits_for_a_person(
    store: Store, keeper: MailKeeper
) -> None:
    """It is killed when it has kept a mail and not said so: that one is in doubt for certain."""
    settings = SmtpDestination(
        host="127.0.0.1", port=keeper.port, security="none", sender="desk@acme.example", lanes="skip", **PATIENT
    )
    addressed = {
        "recipient": "ann@x.example",
        "content_type": "message/rfc822",
        "headers": b'{"mail-from":"desk@acme.example","message-id-domain":"acme.example"}',
    }
    await stage_lanes(store, settings, COUNT, "Subject: {}\r\n\r\nBooked.\r\n", **addressed)
    part = COUNT // (KILLS + 1)

    async def weather(watch: Watch) -> None:
        for turn in range(1, KILLS + 1):
            await asyncio.to_thread(keeper.hear, "silent")
            failed = watch.failed
            await asyncio.to_thread(keeper.kill)
            await watch.trouble(failed)
            await asyncio.to_thread(keeper.start, part if turn < KILLS else None)

    keeper.start(part)
    watch = await deliver(store, weather)
    delivered, unknown = await bodies(store, "delivered"), await bodies(store, "unknown")
    assert len(delivered | unknown) == len(delivered) + len(unknown) == COUNT
    assert len(unknown) == watch.unknown
    assert KILLS <= len(unknown) <= KILLS * AT_ONCE
    assert len(keeper.subjects) == len(set(keeper.subjects))
    assert delivered <= set(keeper.subjects)
    for lane in range(LANES):
        numbers = [int(subject.split()[1]) for subject in keeper.subjects if subject.startswith(f"lane-{lane} ")]
        assert numbers == sorted(numbers)


@ON_SQLITE
async def test_a_kafka_whose_connections_are_cut_has_each_message_and_what_it_has_twice_was_in_doubt(
    store: Store, cluster: KafkaMock
) -> None:
    settings = KafkaDestination(servers=(cluster.url,), topic=TOPIC, attempts=1000, timeout_seconds=0.5)
    await stage_lanes(store, settings, COUNT)
    watch = await deliver(store, interrupting(COUNT, KILLS, cluster.cut, cluster.mend))
    arrivals = await recorded(cluster)
    check_lanes(arrivals, COUNT)
    assert len(arrivals) <= COUNT + watch.unknown
    await check_duplicates_are_counted(store, arrivals, COUNT)
    await check_nothing_stands(store)


@ON_POSTGRESQL
async def test_a_kafka_whose_relay_is_killed_has_each_message_and_what_it_has_twice_was_in_doubt(
    store: Store, database_url: str, cluster: KafkaMock, tmp_path: Path
) -> None:
    settings = KafkaDestination(servers=(cluster.url,), topic=TOPIC, attempts=1000, timeout_seconds=1)
    await stage_lanes(store, settings, COUNT)
    for turn in range(1, SLOW_KILLS + 1):
        with RelayProcess(database_url, tmp_path):
            await few_left(store, COUNT - COUNT * turn // (SLOW_KILLS + 1))
    await deliver(store, nothing)
    arrivals = await recorded(cluster)
    check_lanes(arrivals, COUNT)
    await check_duplicates_are_counted(store, arrivals, COUNT)
    await check_nothing_stands(store)


async def stored(server: NatsServer) -> list[Arrival]:
    """Return what the stream holds, in its order."""
    client = await nats.connect(server.url)
    try:
        streams = client.jetstream()
        last = (await streams.stream_info("orders")).state.last_seq
        messages = [await streams.get_msg("orders", number) for number in range(1, last + 1)]
    finally:
        await client.close()
    return [((one.headers or {})["Nats-Msg-Id"], (one.data or b"").decode()) for one in messages]


async def queued(server: RabbitServer) -> list[Arrival]:
    """Take all from the queue, in its order."""
    found: list[Arrival] = []
    async with await aio_pika.connect(server.url) as connection:
        queue = await (await connection.channel()).get_queue("orders")
        while (message := await queue.get(no_ack=True, fail=False)) is not None:
            found.append((str(message.message_id), message.body.decode()))
    return found


async def recorded(cluster: KafkaMock) -> list[Arrival]:
    """Return all records of the topic, those of one partition in their order."""
    places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    found: list[Arrival] = []
    # Reset to its end by itself, as without this, it would now and then win over a seek, and wait for ever.
    async with AIOKafkaConsumer(bootstrap_servers=cluster.url, auto_offset_reset="earliest") as consumer:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        while len(found) < sum(ends.values()):
            for batch in (await consumer.getmany(timeout_ms=1000)).values():
                found += [(dict(record.headers)["id"].decode(), record.value.decode()) for record in batch]
    return found


async def bodies(store: Store, state: MessageState) -> set[str]:
    """Return the subjects of all mails of a state."""
    found: set[str] = set()
    after: str | None = None
    while True:
        page, after = await store.outbox.page(TENANT, MessageFilter(state=state, limit=500, after=after))
        found |= {str(message_from_bytes(standing.body)["Subject"]) for standing in page}
        if after is None:
            return found


def _started(server: Started) -> Iterator[Started]:
    try:
        server.start()
        yield server
    finally:
        server.remove()
