"""The RabbitMQ sink against Debian's real server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import aio_pika
import msgspec
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Delivered, Permanent, Retryable, SinkRefused, Unknown
from outbox_relay.sinks.rabbitmq import RabbitMqSink
from tests.brokers import free_port
from tests.integration.sinks.conftest import LOOPBACK, MakeOutgoing
from tests.integration.sinks.cut_line import CutLine
from tests.integration.sinks.interrupted import send_through
from tests.rabbitmq import RabbitServer
from twiceshy_contract.destinations import RabbitMqDestination


@pytest.fixture(scope="module")
def server() -> Iterator[RabbitServer]:
    broker = RabbitServer()
    try:
        broker.start()
        yield broker
    finally:
        broker.remove()


@pytest.fixture
async def channel(server: RabbitServer) -> AsyncIterator[AbstractChannel]:
    async with await aio_pika.connect(server.url) as connection:
        yield await connection.channel()


@pytest.fixture
async def queue(channel: AbstractChannel) -> str:
    """A durable queue, which the default exchange knows by its name."""
    name = f"orders-{uuid4().hex}"
    await channel.declare_queue(name, durable=True)
    return name


@pytest.fixture
async def sink(server: RabbitServer, queue: str) -> AsyncIterator[RabbitMqSink]:
    opened = RabbitMqSink("orders", settings(server, queue), lambda name: name, LOOPBACK)
    yield opened
    await opened.close()


def settings(server: RabbitServer, key: str, **changes: object) -> RabbitMqDestination:
    given = RabbitMqDestination(url=server.url, routing_key=key, timeout_seconds=5)
    return msgspec.structs.replace(given, **changes)


async def taken(server: RabbitServer, queue: str) -> list[AbstractIncomingMessage]:
    """Take all messages from a queue."""
    found: list[AbstractIncomingMessage] = []
    async with await aio_pika.connect(server.url) as connection:
        place = await (await connection.channel()).get_queue(queue)
        while (message := await place.get(no_ack=True, fail=False)) is not None:
            found.append(message)
    return found


async def test_a_message_arrives_persistent_with_its_properties(
    server: RabbitServer, sink: RabbitMqSink, queue: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing(body=b"\x00\xff")
    assert await sink.send(outgoing) == Delivered(receipt="confirmed")
    [message] = await taken(server, queue)
    assert message.body == b"\x00\xff"
    assert message.message_id == f"{outgoing.message}.1"
    assert (message.type, message.content_type) == ("order.created", "application/json")
    assert message.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
    assert message.headers == {"X-Trace": "abc"}


async def test_the_same_identity_again_carries_the_same_id(
    server: RabbitServer, sink: RabbitMqSink, queue: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing()
    await sink.send(outgoing)
    await sink.send(outgoing)
    assert [message.message_id for message in await taken(server, queue)] == [outgoing.identity] * 2


async def test_many_at_once_arrive_once_each(
    server: RabbitServer, sink: RabbitMqSink, queue: str, make_outgoing: MakeOutgoing
) -> None:
    messages = [make_outgoing() for _ in range(200)]
    results = await asyncio.gather(*(sink.send(outgoing) for outgoing in messages))
    assert all(isinstance(result, Delivered) for result in results)
    arrived = sorted(str(message.message_id) for message in await taken(server, queue))
    assert arrived == sorted(outgoing.identity for outgoing in messages)


async def test_a_named_exchange_takes_it(
    server: RabbitServer, channel: AbstractChannel, queue: str, make_outgoing: MakeOutgoing
) -> None:
    exchange = await channel.declare_exchange(f"shop-{uuid4().hex}", aio_pika.ExchangeType.TOPIC)
    await (await channel.get_queue(queue)).bind(exchange, "order.*")
    sink = RabbitMqSink(
        "orders", settings(server, "order.created", exchange=exchange.name), lambda name: name, LOOPBACK
    )
    assert isinstance(await sink.send(make_outgoing()), Delivered)
    assert (await sink.check()).detail == f"the server answers and has the exchange {exchange.name}"
    await sink.close()
    assert len(await taken(server, queue)) == 1


async def test_a_message_that_no_queue_takes_is_permanent(server: RabbitServer, make_outgoing: MakeOutgoing) -> None:
    sink = RabbitMqSink("orders", settings(server, "nobody"), lambda name: name, LOOPBACK)
    results = await asyncio.gather(*(sink.send(make_outgoing()) for _ in range(20)))
    await sink.close()
    why = "no queue takes it from the default exchange by the routing key nobody: bind one"
    assert results == [Permanent(why=why)] * 20


async def test_an_exchange_that_does_not_exist_is_permanent(server: RabbitServer, make_outgoing: MakeOutgoing) -> None:
    sink = RabbitMqSink("orders", settings(server, "order", exchange="nowhere"), lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    seen = await sink.check()
    await sink.close()
    assert result == Permanent(why="the server has no exchange nowhere: declare it")
    assert (seen.ok, seen.detail) == (False, result.why)


async def test_a_message_that_the_broker_does_not_take_is_sent_later(
    server: RabbitServer, channel: AbstractChannel, make_outgoing: MakeOutgoing
) -> None:
    name = f"full-{uuid4().hex}"
    await channel.declare_queue(name, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    sink = RabbitMqSink("orders", settings(server, name), lambda name: name, LOOPBACK)
    assert isinstance(await sink.send(make_outgoing()), Delivered)
    result = await sink.send(make_outgoing())
    await sink.close()
    assert isinstance(result, Retryable)
    assert result.is_throttled


async def test_a_server_that_freezes_leaves_it_unknown(
    server: RabbitServer, queue: str, make_outgoing: MakeOutgoing
) -> None:
    sink = RabbitMqSink("orders", settings(server, queue, timeout_seconds=0.5), lambda name: name, LOOPBACK)
    await sink.send(make_outgoing())
    server.freeze()
    try:
        frozen = await sink.send(make_outgoing())
    finally:
        server.thaw()
    await sink.close()
    assert frozen == Unknown(why="no answer within 0.5 seconds")


async def test_a_server_that_never_greets_has_nothing(silent_port: int, make_outgoing: MakeOutgoing) -> None:
    silent = RabbitMqDestination(url=f"amqp://127.0.0.1:{silent_port}/", routing_key="orders", timeout_seconds=0.2)
    sink = RabbitMqSink("orders", silent, lambda name: name, LOOPBACK)
    assert await sink.send(make_outgoing()) == Retryable(why="no connection within 0.2 seconds", is_unreachable=True)
    await sink.close()


async def test_a_server_that_is_down_is_unreachable(make_outgoing: MakeOutgoing) -> None:
    url = f"amqp://127.0.0.1:{free_port()}/"
    sink = RabbitMqSink("orders", RabbitMqDestination(url=url, routing_key="orders"), lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert not (await sink.check()).ok
    await sink.close()


async def test_a_password_is_read_at_every_connection(
    server: RabbitServer, queue: str, environment: dict[str, str], read_secret: ReadSecret, make_outgoing: MakeOutgoing
) -> None:
    url = server.url.replace("guest:guest@", "guest@")
    named = settings(server, queue, url=url, password="env:TWICESHY_SECRET_RABBITMQ")  # noqa: S106
    sink = RabbitMqSink("orders", named, read_secret, LOOPBACK)
    environment["TWICESHY_SECRET_RABBITMQ"] = "wrong"
    refused = await sink.send(make_outgoing())
    environment["TWICESHY_SECRET_RABBITMQ"] = "guest"
    accepted = await sink.send(make_outgoing())
    await sink.close()
    assert isinstance(refused, Retryable)
    assert not refused.is_unreachable
    assert "refuses the login" in refused.why
    assert isinstance(accepted, Delivered)


async def test_a_line_that_is_cut_loses_nothing_that_was_confirmed(
    server: RabbitServer, queue: str, make_outgoing: MakeOutgoing
) -> None:
    messages = [make_outgoing() for _ in range(300)]
    async with CutLine(server.port) as line:
        url = server.url.replace(f":{server.port}/", f":{line.port}/")
        sink = RabbitMqSink("orders", settings(server, queue, url=url), lambda name: name, LOOPBACK)
        loop = asyncio.get_running_loop()
        account = await send_through(sink, messages, lambda _: loop.call_soon_threadsafe(line.cut))
        await sink.close()
    assert account.permanent == []
    assert account.refused + account.unknown > 0
    arrived = [str(message.message_id) for message in await taken(server, queue)]
    assert set(arrived) == set(account.delivered) == {outgoing.identity for outgoing in messages}
    assert len(arrived) <= len(messages) + account.unknown


@pytest.mark.parametrize(
    "wrong",
    [{"routing_key": "é" * 128}, {"exchange": "é" * 128}, {"url": "amqps://localhost/?cafile=/etc/passwd"}],
)
def test_settings_that_the_client_breaks_at_are_refused(wrong: dict[str, str]) -> None:
    given = RabbitMqDestination(url="amqp://localhost", routing_key="orders")
    with pytest.raises(SinkRefused, match="of orders"):
        RabbitMqSink("orders", msgspec.structs.replace(given, **wrong), lambda name: name, LOOPBACK)


@pytest.mark.parametrize("url", ["http://localhost", "amqp://", "not a url"])
def test_a_url_of_something_else_is_refused(url: str) -> None:
    with pytest.raises(SinkRefused, match="The url of orders is none of RabbitMQ"):
        RabbitMqSink("orders", RabbitMqDestination(url=url, routing_key="orders"), lambda name: name, LOOPBACK)
