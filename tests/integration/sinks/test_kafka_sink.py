"""The Kafka sink against librdkafka's mock cluster, which speaks Kafka's protocol over TCP."""

import asyncio
import time
from collections.abc import Iterator
from uuid import uuid4

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Delivered, Permanent, Retryable, SinkRefused, Unknown
from outbox_relay.sinks.kafka import KafkaSink
from tests.brokers import free_port
from tests.integration.sinks.conftest import LOOPBACK, MakeOutgoing
from tests.integration.sinks.interrupted import Account, send_through
from tests.kafka_mock import KafkaMock
from twiceshy_contract.destinations import KafkaDestination

PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaMock]:
    mock = KafkaMock()
    try:
        mock.start()
        yield mock
    finally:
        mock.remove()


@pytest.fixture
def topic(cluster: KafkaMock) -> str:
    name = f"orders-{uuid4().hex}"
    cluster.create_topic(name, PARTITIONS)
    return name


def opened(cluster: KafkaMock, topic: str, **changes: object) -> KafkaSink:
    settings = KafkaDestination(servers=(cluster.url,), topic=topic, timeout_seconds=5)
    return KafkaSink("orders", msgspec.structs.replace(settings, **changes), lambda name: name, LOOPBACK)


async def records(cluster: KafkaMock, topic: str) -> list[ConsumerRecord]:
    """Return all records of a topic, those of one partition in their order."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    # Reset to its end by itself, as without this, it would now and then win over a seek, and wait for ever.
    consumer = AIOKafkaConsumer(bootstrap_servers=cluster.url, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        found: list[ConsumerRecord] = []
        while len(found) < sum(ends.values()):
            for batch in (await consumer.getmany(timeout_ms=1000)).values():
                found += batch
    finally:
        await consumer.stop()
    return found


def identities(found: list[ConsumerRecord]) -> list[str]:
    return sorted(dict(record.headers)["id"].decode() for record in found)


async def test_a_record_arrives_with_its_headers_and_the_lane_as_its_key(
    cluster: KafkaMock, topic: str, make_outgoing: MakeOutgoing
) -> None:
    sink = opened(cluster, topic)
    outgoing = make_outgoing(body=b"\x00\xff", lane="customer-7", headers={"X-Trace": "abc", "Id": "mine"})
    result = await sink.send(outgoing)
    await sink.close()
    [record] = await records(cluster, topic)
    assert result == Delivered(receipt=f"{topic}-{record.partition}@0")
    assert (record.key, record.value) == (b"customer-7", b"\x00\xff")
    assert dict(record.headers) == {
        "X-Trace": b"abc",
        "id": f"{outgoing.message}.1".encode(),
        "content-type": b"application/json",
        "type": b"order.created",
    }


async def test_a_lane_keeps_its_order(cluster: KafkaMock, topic: str, make_outgoing: MakeOutgoing) -> None:
    sink = opened(cluster, topic)

    async def send_lane(lane: str) -> None:
        for number in range(20):
            assert isinstance(await sink.send(make_outgoing(lane=lane, body=str(number).encode())), Delivered)

    lanes = [f"lane-{number}" for number in range(8)]
    await asyncio.gather(*(send_lane(lane) for lane in lanes))
    await sink.close()
    found = await records(cluster, topic)
    for lane in lanes:
        mine = [record for record in found if record.key == lane.encode()]
        assert [int(record.value) for record in mine] == list(range(20))
        assert len({record.partition for record in mine}) == 1


async def test_the_same_identity_again_carries_the_same_id(
    cluster: KafkaMock, topic: str, make_outgoing: MakeOutgoing
) -> None:
    sink = opened(cluster, topic)
    outgoing = make_outgoing()
    await sink.send(outgoing)
    await sink.send(outgoing)
    await sink.close()
    assert identities(await records(cluster, topic)) == [outgoing.identity] * 2


async def test_many_at_once_arrive_once_each(cluster: KafkaMock, topic: str, make_outgoing: MakeOutgoing) -> None:
    sink = opened(cluster, topic)
    messages = [make_outgoing() for _ in range(500)]
    results = await asyncio.gather(*(sink.send(outgoing) for outgoing in messages))
    await sink.close()
    assert all(isinstance(result, Delivered) for result in results)
    assert identities(await records(cluster, topic)) == sorted(outgoing.identity for outgoing in messages)


@pytest.mark.parametrize(("code", "expected"), [(10, Permanent), (29, Retryable), (2, Unknown), (87, Unknown)])
async def test_an_answer_is_taken_for_what_it_proves(
    cluster: KafkaMock, topic: str, make_outgoing: MakeOutgoing, code: int, expected: type
) -> None:
    sink = opened(cluster, topic)
    await sink.check()
    cluster.refuse(code)
    result = await sink.send(make_outgoing())
    assert isinstance(result, expected)
    assert isinstance(await sink.send(make_outgoing()), Delivered)
    await sink.close()
    assert len(await records(cluster, topic)) == 1


async def test_too_few_replicas_are_waited_for(cluster: KafkaMock, topic: str, make_outgoing: MakeOutgoing) -> None:
    sink = opened(cluster, topic)
    await sink.check()
    cluster.refuse(19)
    assert isinstance(await sink.send(make_outgoing()), Delivered)
    await sink.close()
    assert len(await records(cluster, topic)) == 1


async def test_broken_connections_lose_nothing_that_was_called_delivered(
    cluster: KafkaMock, topic: str, make_outgoing: MakeOutgoing
) -> None:
    sink = opened(cluster, topic, timeout_seconds=0.5)
    messages = [make_outgoing() for _ in range(300)]
    try:
        account = await send_through(sink, messages, lambda noticed: _cut_until_noticed(cluster, noticed))
    finally:
        cluster.mend()
        await sink.close()
    assert account.permanent == []
    arrived = identities(await records(cluster, topic))
    assert set(arrived) == set(account.delivered) == {outgoing.identity for outgoing in messages}
    assert len(arrived) <= len(messages) + account.unknown


def _cut_until_noticed(cluster: KafkaMock, account: Account) -> None:
    cluster.cut()
    while account.unknown == 0:
        time.sleep(0.01)
    cluster.mend()


async def test_a_send_over_a_lost_connection_is_unknown(
    cluster: KafkaMock, topic: str, make_outgoing: MakeOutgoing
) -> None:
    sink = opened(cluster, topic, timeout_seconds=0.3)
    await sink.send(make_outgoing())
    cluster.cut()
    try:
        lost = await sink.send(make_outgoing())
        down = await sink.send(make_outgoing())
        seen = await sink.check()
    finally:
        cluster.mend()
    assert lost == Unknown(why="no answer within 0.3 seconds")
    assert isinstance(down, Retryable)
    assert down.is_unreachable
    assert not seen.ok
    await sink.close()


async def test_a_topic_that_does_not_exist_is_permanent(cluster: KafkaMock, make_outgoing: MakeOutgoing) -> None:
    cluster.lose_topic("nowhere")
    sink = opened(cluster, "nowhere")
    result = await sink.send(make_outgoing())
    await sink.close()
    assert result == Permanent(why="the cluster has no topic nowhere: create it")


async def test_a_server_that_never_greets_has_nothing(silent_port: int, make_outgoing: MakeOutgoing) -> None:
    silent = KafkaDestination(servers=(f"127.0.0.1:{silent_port}",), topic="orders", timeout_seconds=0.3)
    sink = KafkaSink("orders", silent, lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    await sink.close()


async def test_servers_that_are_down_are_unreachable(make_outgoing: MakeOutgoing) -> None:
    servers = tuple(f"127.0.0.1:{free_port()}" for _ in range(2))
    sink = KafkaSink("orders", KafkaDestination(servers=servers, topic="orders"), lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert "Connect call failed" in result.why
    await sink.close()


async def test_a_login_that_the_server_does_not_know_is_said(
    cluster: KafkaMock, topic: str, environment: dict[str, str], read_secret: ReadSecret, make_outgoing: MakeOutgoing
) -> None:
    environment["TWICESHY_SECRET_KAFKA"] = "wrong"
    settings = KafkaDestination(
        servers=(cluster.url,),
        topic=topic,
        security="sasl_plaintext",
        username="relay",
        password="env:TWICESHY_SECRET_KAFKA",  # noqa: S106
        timeout_seconds=1,
    )
    sink = KafkaSink("orders", settings, read_secret, LOOPBACK)
    result = await sink.send(make_outgoing())
    await sink.close()
    assert isinstance(result, Retryable)
    assert not result.is_unreachable
    assert result.why.startswith("the server does not know what sasl_plaintext needs: ")


async def test_a_check_sees_the_topic_and_adds_nothing(cluster: KafkaMock, topic: str) -> None:
    sink = opened(cluster, topic)
    seen = await sink.check()
    await sink.close()
    assert (seen.ok, seen.detail) == (True, f"the cluster answers; the topic {topic} has 3 partitions")
    assert await records(cluster, topic) == []


def test_a_server_without_a_port_is_refused(cluster: KafkaMock) -> None:
    with pytest.raises(SinkRefused, match="write host:9092"):
        opened(cluster, "orders", servers=("localhost",))
