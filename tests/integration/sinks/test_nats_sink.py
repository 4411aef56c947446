"""The NATS sink against a real server with JetStream, which syncs before it answers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import msgspec
import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import DiscardPolicy, RawStreamMsg

from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Delivered, Permanent, Retryable, SinkRefused, Unknown
from outbox_relay.sinks.nats import NatsSink
from tests.brokers import NatsServer, free_port
from tests.integration.sinks.conftest import LOOPBACK, MakeOutgoing
from tests.integration.sinks.interrupted import Account, send_through
from twiceshy_contract.destinations import NatsDestination

TOKEN = "env:TWICESHY_SECRET_NATS"


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    broker = NatsServer()
    try:
        broker.start()
        yield broker
    finally:
        broker.remove()


@pytest.fixture
async def client(server: NatsServer) -> AsyncIterator[Client]:
    connected = await nats.connect(server.url, reconnect_time_wait=0)
    yield connected
    await connected.close()


@pytest.fixture
async def subject(client: Client) -> str:
    """A subject that a stream of the same name takes."""
    name = f"orders-{uuid4().hex}"
    await client.jetstream().add_stream(name=name, subjects=[name])
    return name


@pytest.fixture
async def sink(server: NatsServer, subject: str, read_secret: ReadSecret) -> AsyncIterator[NatsSink]:
    opened = NatsSink("orders", settings(server, subject), read_secret, LOOPBACK)
    yield opened
    await opened.close()


def settings(server: NatsServer, name: str, **changes: object) -> NatsDestination:
    given = NatsDestination(servers=(server.url,), subject=name, timeout_seconds=5)
    return msgspec.structs.replace(given, **changes)


async def stored(client: Client, stream: str) -> list[RawStreamMsg]:
    streams = client.jetstream()
    state = (await streams.stream_info(stream)).state
    return [await streams.get_msg(stream, number) for number in range(1, state.last_seq + 1)]


async def test_a_message_arrives_with_its_headers(
    sink: NatsSink, client: Client, subject: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing(body=b"\x00\xff", headers={"X-Trace": "abc", "Nats-Rollup": "all"})
    assert await sink.send(outgoing) == Delivered(receipt=f"{subject} 1")
    [message] = await stored(client, subject)
    assert message.data == b"\x00\xff"
    assert message.headers == {
        "X-Trace": "abc",
        "Nats-Msg-Id": f"{outgoing.message}.1",
        "Content-Type": "application/json",
        "Type": "order.created",
    }


async def test_the_same_identity_is_stored_once(
    sink: NatsSink, client: Client, subject: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing()
    first, again = await sink.send(outgoing), await sink.send(outgoing)
    assert first == Delivered(receipt=f"{subject} 1")
    assert again == Delivered(receipt=f"{subject} 1", is_duplicate=True)
    assert len(await stored(client, subject)) == 1


async def test_the_next_epoch_is_another_message(
    sink: NatsSink, client: Client, subject: str, make_outgoing: MakeOutgoing
) -> None:
    message = uuid4()
    await sink.send(make_outgoing(message=message))
    await sink.send(make_outgoing(message=message, epoch=2))
    assert len(await stored(client, subject)) == 2


async def test_many_at_once_are_stored_once_each(
    sink: NatsSink, client: Client, subject: str, make_outgoing: MakeOutgoing
) -> None:
    results = await asyncio.gather(*(sink.send(make_outgoing()) for _ in range(200)))
    assert all(isinstance(result, Delivered) for result in results)
    assert len(await stored(client, subject)) == 200


async def test_a_subject_that_no_stream_takes_is_permanent(server: NatsServer, make_outgoing: MakeOutgoing) -> None:
    sink = NatsSink("orders", settings(server, "nobody.listens"), lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    seen = await sink.check()
    await sink.close()
    assert result == Permanent(why="no stream takes the subject nobody.listens: create one, or correct the subject")
    assert (seen.ok, seen.detail) == (False, result.why)


async def test_another_stream_than_the_one_expected_is_permanent(
    server: NatsServer, subject: str, make_outgoing: MakeOutgoing
) -> None:
    sink = NatsSink("orders", settings(server, subject, stream="another"), lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    seen = await sink.check()
    await sink.close()
    assert isinstance(result, Permanent)
    assert "expected stream does not match" in result.why
    assert seen.detail == f"the stream {subject} takes the subject, not another"


async def test_a_full_stream_is_asked_later(server: NatsServer, client: Client, make_outgoing: MakeOutgoing) -> None:
    await client.jetstream().add_stream(name="full", subjects=["full"], max_msgs=1, discard=DiscardPolicy.NEW)
    sink = NatsSink("orders", settings(server, "full"), lambda name: name, LOOPBACK)
    await sink.send(make_outgoing())
    result = await sink.send(make_outgoing())
    await sink.close()
    assert isinstance(result, Retryable)
    assert result.is_throttled


async def test_a_message_larger_than_the_server_takes_is_permanent(sink: NatsSink, make_outgoing: MakeOutgoing) -> None:
    result = await sink.send(make_outgoing(body=b"x" * 1_048_576))
    assert isinstance(result, Permanent)
    assert isinstance(await sink.send(make_outgoing()), Delivered)


async def test_what_a_restart_broke_off_is_stored_once(
    server: NatsServer, sink: NatsSink, client: Client, subject: str, make_outgoing: MakeOutgoing
) -> None:
    messages = [make_outgoing() for _ in range(300)]

    def restart(_: Account) -> None:
        server.kill()
        server.start()

    account = await send_through(sink, messages, restart)
    assert account.permanent == []
    assert account.refused + account.unknown > 0
    arrived = sorted((message.headers or {})["Nats-Msg-Id"] for message in await stored(client, subject))
    assert arrived == sorted(account.delivered) == sorted(outgoing.identity for outgoing in messages)


async def test_a_server_that_freezes_leaves_it_unknown(
    server: NatsServer, client: Client, subject: str, make_outgoing: MakeOutgoing
) -> None:
    sink = NatsSink("orders", settings(server, subject, timeout_seconds=0.3), lambda name: name, LOOPBACK)
    await sink.send(make_outgoing())
    outgoing = make_outgoing()
    server.freeze()
    try:
        frozen = await sink.send(outgoing)
    finally:
        server.thaw()
    assert frozen == Unknown(why="no answer within 0.3 seconds")
    assert isinstance(await sink.send(outgoing), Delivered)
    assert len(await stored(client, subject)) == 2
    await sink.close()


async def test_a_server_that_never_greets_has_nothing(silent_port: int, make_outgoing: MakeOutgoing) -> None:
    silent = NatsDestination(servers=(f"nats://127.0.0.1:{silent_port}",), subject="orders", timeout_seconds=0.2)
    sink = NatsSink("orders", silent, lambda name: name, LOOPBACK)
    assert await sink.send(make_outgoing()) == Retryable(why="no connection within 0.2 seconds", is_unreachable=True)
    await sink.close()


async def test_servers_that_are_down_are_unreachable(make_outgoing: MakeOutgoing) -> None:
    servers = (f"nats://127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}")
    sink = NatsSink("orders", NatsDestination(servers=servers, subject="orders"), lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert not (await sink.check()).ok
    await sink.close()


async def test_the_second_server_is_used_where_the_first_is_down(
    server: NatsServer, subject: str, make_outgoing: MakeOutgoing
) -> None:
    servers = (f"nats://127.0.0.1:{free_port()}", server.url)
    sink = NatsSink("orders", settings(server, subject, servers=servers), lambda name: name, LOOPBACK)
    assert isinstance(await sink.send(make_outgoing()), Delivered)
    await sink.close()


async def test_a_token_is_read_at_every_connection(
    environment: dict[str, str], read_secret: ReadSecret, make_outgoing: MakeOutgoing
) -> None:
    server = NatsServer(token="right")  # noqa: S106
    sink = NatsSink("orders", settings(server, "orders", token=TOKEN), read_secret, LOOPBACK)
    try:
        server.start()
        environment["TWICESHY_SECRET_NATS"] = "wrong"
        refused = await sink.send(make_outgoing())
        environment["TWICESHY_SECRET_NATS"] = "right"
        allowed = await sink.send(make_outgoing())
        await sink.close()
    finally:
        server.remove()
    assert isinstance(refused, Retryable)
    assert not refused.is_unreachable
    assert "Authorization Violation" in refused.why
    assert isinstance(allowed, Permanent)


async def test_credentials_without_a_key_are_refused(
    server: NatsServer, subject: str, environment: dict[str, str], read_secret: ReadSecret, make_outgoing: MakeOutgoing
) -> None:
    environment["TWICESHY_SECRET_CREDENTIALS"] = "nonsense"
    named = settings(server, subject, credentials="env:TWICESHY_SECRET_CREDENTIALS")
    sink = NatsSink("orders", named, read_secret, LOOPBACK)
    result = await sink.send(make_outgoing())
    await sink.close()
    assert isinstance(result, Retryable)
    assert "give the contents of a .creds file" in result.why


async def test_a_check_sees_the_stream_and_stores_nothing(sink: NatsSink, client: Client, subject: str) -> None:
    seen = await sink.check()
    assert seen.detail == f"the server answers; the stream {subject} takes {subject}"
    assert seen.ok
    assert await stored(client, subject) == []


@pytest.mark.parametrize("stream", [None, "ORDERS"])
@pytest.mark.parametrize("answer", [b"{}", b'{"ok":true}', b"", b"null", b'{"error":{"code":500}}'])
async def test_the_answer_of_a_client_that_subscribes_proves_nothing(
    server: NatsServer, client: Client, make_outgoing: MakeOutgoing, answer: bytes, stream: str | None
) -> None:
    async def respond(asked: Msg) -> None:
        await asked.respond(answer)

    subscription = await client.subscribe("answered", cb=respond)
    await client.flush()
    sink = NatsSink("orders", settings(server, "answered", stream=stream), lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    await sink.close()
    await subscription.unsubscribe()
    assert isinstance(result, Unknown)
    assert result.why.startswith("who answered is no stream: a client subscribes to answered and replies.")


@pytest.mark.parametrize(
    "wrong",
    [
        {"subject": "orders.>"},
        {"subject": "two words"},
        {"subject": "$JS.API.STREAM.DELETE.orders"},
        {"servers": ("http://a b",)},
        {"servers": ("nats://a:99999",)},
        {"servers": ("nats://a:b",)},
        {"servers": ("nats://token@a",)},
        {"servers": ("ws://a",)},
    ],
)
def test_settings_that_the_client_cannot_read_are_refused(server: NatsServer, wrong: dict[str, object]) -> None:
    with pytest.raises(SinkRefused, match="of orders"):
        NatsSink("orders", settings(server, "orders", **wrong), lambda name: name, LOOPBACK)
