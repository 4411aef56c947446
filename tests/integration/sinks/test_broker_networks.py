"""Where the sinks of brokers connect to: nowhere that an operator has not allowed; and what a check says of it."""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from outbox_relay.networks import Networks
from outbox_relay.sinks.base import Permanent, Reached, Retryable, Sink
from outbox_relay.sinks.kafka import KafkaSink
from outbox_relay.sinks.nats import NatsSink
from outbox_relay.sinks.rabbitmq import RabbitMqSink
from outbox_relay.sinks.redis import RedisSink
from tests.integration.sinks.conftest import LOOPBACK, MakeOutgoing
from twiceshy_contract.destinations import (
    KafkaDestination,
    NatsDestination,
    RabbitMqDestination,
    RedisDestination,
)

OTHERS_WORDS = b"550 the words of another server"
LONG_LINE = b"INFO " + b"x" * 70_000 + b"\r\n"

Open = Callable[[str, Networks], Sink]


def redis(place: str, networks: Networks) -> Sink:
    settings = RedisDestination(url=f"redis://{place}", stream="orders", timeout_seconds=1)
    return RedisSink("orders", settings, lambda name: name, networks)


def nats(place: str, networks: Networks) -> Sink:
    settings = NatsDestination(servers=(f"nats://{place}",), subject="orders", timeout_seconds=1)
    return NatsSink("orders", settings, lambda name: name, networks)


def kafka(place: str, networks: Networks) -> Sink:
    settings = KafkaDestination(servers=(place,), topic="orders", timeout_seconds=1)
    return KafkaSink("orders", settings, lambda name: name, networks)


def rabbitmq(place: str, networks: Networks) -> Sink:
    settings = RabbitMqDestination(url=f"amqp://{place}/", routing_key="orders", timeout_seconds=1)
    return RabbitMqSink("orders", settings, lambda name: name, networks)


KINDS: tuple[Open, ...] = (redis, nats, kafka, rabbitmq)


class Stranger(msgspec.Struct):
    """A server on the loopback that is no broker: it says `words` to whoever connects, and hangs up."""

    port: int = 0
    connections: int = 0
    words: bytes = OTHERS_WORDS + b"\r\n" * 20

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.write(self.words)
        writer.write_eof()
        await reader.read()
        writer.close()


@pytest.fixture
async def stranger() -> AsyncIterator[Stranger]:
    listening = Stranger()
    server = await asyncio.start_server(listening.answer, "127.0.0.1", 0)
    listening.port = server.sockets[0].getsockname()[1]
    yield listening
    server.close()
    await server.wait_closed()


async def seen_by(sink: Sink) -> Reached:
    seen = await sink.check()
    await sink.close()
    return seen


@pytest.mark.parametrize("opened", KINDS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1"])
async def test_nobody_is_connected_to_who_is_not_allowed(
    stranger: Stranger, opened: Open, host: str, make_outgoing: MakeOutgoing
) -> None:
    sink = opened(f"{host}:{stranger.port}", Networks())
    result = await sink.send(make_outgoing())
    seen = await seen_by(sink)
    assert isinstance(result, Permanent)
    assert "is not dialled (loopback). An operator allows it with TWICESHY_RELAY_ALLOW=" in result.why
    assert seen == Reached(ok=False, detail=result.why)
    assert stranger.connections == 0


@pytest.mark.parametrize("opened", KINDS)
async def test_a_check_does_not_repeat_what_a_stranger_says(
    stranger: Stranger, opened: Open, make_outgoing: MakeOutgoing
) -> None:
    sink = opened(f"127.0.0.1:{stranger.port}", LOOPBACK)
    result = await sink.send(make_outgoing())
    seen = await seen_by(sink)
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert "refuses the login" not in result.why
    assert not seen.ok
    assert "words" not in seen.detail
    assert stranger.connections > 0


@pytest.mark.parametrize("opened", KINDS)
async def test_a_name_that_has_no_address_is_tried_again(opened: Open, make_outgoing: MakeOutgoing) -> None:
    sink = opened("nobody.invalid:9", Networks())
    result = await sink.send(make_outgoing())
    await sink.close()
    assert isinstance(result, Retryable)
    assert result.is_unreachable


async def test_a_node_that_another_node_names_is_judged_too(stranger: Stranger, make_outgoing: MakeOutgoing) -> None:
    stranger.words = b"+OK\r\n" * 2 + b"-MOVED 1 169.254.169.254:80\r\n"
    sink = redis(f"127.0.0.1:{stranger.port}", LOOPBACK)
    result = await sink.send(make_outgoing())
    await sink.close()
    assert isinstance(result, Permanent)
    assert "169.254.169.254 is not dialled (link-local)" in result.why


async def test_a_first_line_that_is_too_long_is_no_connection(stranger: Stranger, make_outgoing: MakeOutgoing) -> None:
    stranger.words = LONG_LINE
    sink = nats(f"127.0.0.1:{stranger.port}", LOOPBACK)
    result = await sink.send(make_outgoing())
    await sink.close()
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert len(result.why) < 400
