"""The Redis sink against a real Valkey, which fsyncs before it answers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from redis.asyncio import Redis

from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Delivered, Permanent, Retryable, SinkRefused, Unknown
from outbox_relay.sinks.redis import RedisSink
from tests.brokers import ValkeyServer, free_port
from tests.integration.sinks.conftest import LOOPBACK, MakeOutgoing
from tests.integration.sinks.interrupted import Account, send_through
from twiceshy_contract.destinations import RedisDestination

PASSWORD = "env:TWICESHY_SECRET_REDIS"


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def stream() -> str:
    return f"orders-{uuid4().hex}"


@pytest.fixture
async def reader(valkey: ValkeyServer) -> AsyncIterator[Redis]:
    async with Redis.from_url(valkey.url) as client:
        yield client


@pytest.fixture
async def sink(valkey: ValkeyServer, stream: str, read_secret: ReadSecret) -> AsyncIterator[RedisSink]:
    opened = RedisSink(
        "orders", RedisDestination(url=valkey.url, stream=stream, timeout_seconds=5), read_secret, LOOPBACK
    )
    yield opened
    await opened.close()


async def entries(reader: Redis, stream: str) -> list[dict[bytes, bytes]]:
    found: Any = await reader.xrange(stream)
    return [fields for _, fields in found]


async def test_a_message_arrives_as_plain_fields(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing(body=b'{"name":"\xc3\xa9"}', headers={"X-Trace": "abc", "ID": "mine"})
    result = await sink.send(outgoing)
    found: Any = await reader.xrange(stream)
    [(entry, fields)] = found
    assert result == Delivered(receipt=entry.decode())
    assert fields == {
        b"id": f"{outgoing.message}.1".encode(),
        b"type": b"order.created",
        b"content-type": b"application/json",
        b"body": b'{"name":"\xc3\xa9"}',
        b"X-Trace": b"abc",
    }


async def test_the_same_identity_is_appended_once(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing()
    first = await sink.send(outgoing)
    again = await sink.send(outgoing)
    assert isinstance(first, Delivered)
    assert isinstance(again, Delivered)
    assert (first.is_duplicate, again.is_duplicate) == (False, True)
    assert len(await entries(reader, stream)) == 1


async def test_the_next_epoch_is_another_message(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    message = uuid4()
    await sink.send(make_outgoing(message=message))
    await sink.send(make_outgoing(message=message, epoch=2))
    assert [fields[b"id"] for fields in await entries(reader, stream)] == [
        f"{message}.1".encode(),
        f"{message}.2".encode(),
    ]


async def test_the_mark_of_a_message_ends_with_its_time(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing()
    await sink.send(outgoing)
    left = await reader.ttl(f"{{{stream}}}:twiceshy:{outgoing.identity}")
    assert 86_390 < left <= 86_400


async def test_many_at_once_arrive_once_each(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    messages = [make_outgoing() for _ in range(300)]
    results = await asyncio.gather(*(sink.send(outgoing) for outgoing in messages))
    assert all(isinstance(result, Delivered) for result in results)
    assert sorted(fields[b"id"].decode() for fields in await entries(reader, stream)) == sorted(
        outgoing.identity for outgoing in messages
    )


async def test_a_message_that_could_not_be_appended_is_not_known(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing()
    await reader.set(stream, "not a stream")
    refused = await sink.send(outgoing)
    assert isinstance(refused, Permanent)
    assert "WRONGTYPE" in refused.why
    await reader.delete(stream, f"{{{stream}}}:twiceshy:{outgoing.identity}")
    assert isinstance(await sink.send(outgoing), Delivered)
    assert len(await entries(reader, stream)) == 1


async def test_the_mark_of_what_could_not_be_appended_goes_by_itself(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing()
    await reader.set(stream, "not a stream")
    await sink.send(outgoing)
    assert await reader.pttl(f"{{{stream}}}:twiceshy:{outgoing.identity}") <= 1


async def test_a_message_of_too_many_headers_stays_refused(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing(headers={f"h{number}": "v" for number in range(4010)})
    refused = Permanent(why="it has 4010 headers, and 1000 are the most of an entry")
    assert [await sink.send(outgoing), await sink.send(outgoing)] == [refused, refused]
    assert await reader.exists(stream) == 0


async def test_a_script_that_fails_after_its_mark_takes_the_mark_back(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox_relay.sinks.redis._MOST_HEADERS", 10_000)
    outgoing = make_outgoing(headers={f"h{number}": "v" for number in range(4010)})
    results = [await sink.send(outgoing), await sink.send(outgoing)]
    assert [type(result) for result in results] == [Retryable, Retryable]
    assert isinstance(await sink.send(msgspec.structs.replace(outgoing, headers={})), Delivered)
    assert len(await entries(reader, stream)) == 1


async def test_a_mark_that_was_taken_back_does_not_say_that_the_message_is_known(
    sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing()
    await reader.set(f"{{{stream}}}:twiceshy:{outgoing.identity}", "0")
    result = await sink.send(outgoing)
    assert isinstance(result, Delivered)
    assert not result.is_duplicate


async def test_a_user_needs_no_more_than_is_written_down(
    valkey: ValkeyServer, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    rules = f"on nopass ~{stream} ~{{{stream}}}:twiceshy:* +evalsha +eval +get +set +xadd +xlen".split()
    await reader.execute_command("ACL", "SETUSER", "relay", "reset", *rules)
    url = valkey.url.replace("://", "://relay@")
    settings = RedisDestination(url=url, stream=stream, password="env:TWICESHY_SECRET_ANY")  # noqa: S106
    sink = RedisSink("orders", settings, lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    seen = await sink.check()
    await sink.close()
    assert isinstance(result, Delivered)
    assert seen.ok


async def test_a_script_that_the_server_forgot_is_given_again(
    sink: RedisSink, reader: Redis, make_outgoing: MakeOutgoing
) -> None:
    await sink.send(make_outgoing())
    await reader.script_flush()
    result = await sink.send(make_outgoing())
    assert isinstance(result, Delivered)


async def test_a_full_server_is_asked_later(sink: RedisSink, reader: Redis, make_outgoing: MakeOutgoing) -> None:
    await reader.config_set("maxmemory", "1")
    try:
        result = await sink.send(make_outgoing())
    finally:
        await reader.config_set("maxmemory", "0")
    assert isinstance(result, Retryable)
    assert result.is_throttled


async def test_a_stream_is_trimmed(
    valkey: ValkeyServer, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    sink = RedisSink(
        "orders", RedisDestination(url=valkey.url, stream=stream, max_length=10), lambda name: name, LOOPBACK
    )
    await asyncio.gather(*(sink.send(make_outgoing()) for _ in range(300)))
    await sink.close()
    assert 10 <= await reader.xlen(stream) <= 110


async def test_what_a_restart_broke_off_is_delivered_once(
    valkey: ValkeyServer, sink: RedisSink, reader: Redis, stream: str, make_outgoing: MakeOutgoing
) -> None:
    messages = [make_outgoing() for _ in range(300)]

    def restart(_: Account) -> None:
        valkey.kill()
        valkey.start()

    account = await send_through(sink, messages, restart)
    assert account.refused + account.unknown > 0
    arrived = [fields[b"id"].decode() for fields in await entries(reader, stream)]
    assert sorted(arrived) == sorted(account.delivered) == sorted(outgoing.identity for outgoing in messages)


async def test_a_server_that_freezes_leaves_it_unknown(
    valkey: ValkeyServer, stream: str, reader: Redis, make_outgoing: MakeOutgoing
) -> None:
    settings = RedisDestination(url=valkey.url, stream=stream, timeout_seconds=0.3)
    sink = RedisSink("orders", settings, lambda name: name, LOOPBACK)
    await sink.send(make_outgoing())
    outgoing = make_outgoing()
    valkey.freeze()
    try:
        frozen = await sink.send(outgoing)
    finally:
        valkey.thaw()
    assert frozen == Unknown(why="no answer within 0.3 seconds")
    assert isinstance(await sink.send(outgoing), Delivered)
    assert len(await entries(reader, stream)) == 2
    await sink.close()


async def test_a_server_that_never_greets_has_nothing(silent_port: int, make_outgoing: MakeOutgoing) -> None:
    settings = RedisDestination(url=f"redis://127.0.0.1:{silent_port}", stream="orders", timeout_seconds=0.2)
    sink = RedisSink("orders", settings, lambda name: name, LOOPBACK)
    assert await sink.send(make_outgoing()) == Retryable(why="no connection within 0.2 seconds", is_unreachable=True)
    await sink.close()


async def test_a_server_that_is_down_is_unreachable(make_outgoing: MakeOutgoing) -> None:
    url = f"redis://127.0.0.1:{free_port()}"
    sink = RedisSink("orders", RedisDestination(url=url, stream="orders"), lambda name: name, LOOPBACK)
    result = await sink.send(make_outgoing())
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert not (await sink.check()).ok
    await sink.close()


async def test_a_password_is_read_at_every_connection(
    environment: dict[str, str], read_secret: ReadSecret, make_outgoing: MakeOutgoing
) -> None:
    server = ValkeyServer(password="right")  # noqa: S106
    sink = RedisSink(
        "orders", RedisDestination(url=server.url, stream="orders", password=PASSWORD), read_secret, LOOPBACK
    )
    try:
        server.start()
        missing = await sink.send(make_outgoing())
        environment["TWICESHY_SECRET_REDIS"] = "wrong"
        refused = await sink.send(make_outgoing())
        environment["TWICESHY_SECRET_REDIS"] = "right"
        taken = await sink.send(make_outgoing())
        await sink.close()
    finally:
        server.remove()
    assert isinstance(missing, Retryable)
    assert "TWICESHY_SECRET_REDIS" in missing.why
    assert isinstance(refused, Retryable)
    assert not refused.is_unreachable
    assert "refuses the login" in refused.why
    assert isinstance(taken, Delivered)


async def test_a_check_sees_the_stream_and_adds_nothing(sink: RedisSink, reader: Redis, stream: str) -> None:
    seen = await sink.check()
    assert seen.ok
    assert seen.detail == f"the server answers; the stream {stream} holds 0 entries"
    assert await reader.exists(stream) == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "redis:///0",
        "redis://localhost:99999",
        "unix:///var/run/docker.sock",
        "redis://localhost?foo=1",
        "redis://localhost?encoding=bogus",
        "redis://localhost?parser_class=x",
        "redis://localhost?ssl_ca_certs=/x",
        "redis://localhost?credential_provider=x",
        "redis://localhost?host=169.254.169.254",
        "redis://localhost?db=abc",
    ],
)
def test_a_url_that_is_not_only_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(SinkRefused, match="The url of orders"):
        RedisSink("orders", RedisDestination(url=url, stream="orders"), lambda name: name, LOOPBACK)
