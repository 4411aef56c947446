"""A receiver that pours answers holds up nobody else, and one that answers early loses no other message."""

import asyncio
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from outbox_relay.secrets import secret_reader
from outbox_relay.sinks.base import Delivered, Permanent, Unknown
from outbox_relay.sinks.opening import open_sink
from tests.integration.sinks.conftest import MakeOutgoing
from tests.integration.sinks.webhook_receivers import LOOPBACK, OK, Visit, Webhooks, receiver, status
from twiceshy_contract.destinations import WebhookDestination

INTERIM = b"HTTP/1.1 103 Early Hints\r\n\r\n"
TOO_LONG = Unknown(
    why="The request left, and what came back is no HTTP (it does not come to an end before its status)."
)


@pytest.mark.parametrize(
    "flood",
    [
        INTERIM * 20_000,
        b"HTTP/1.1 103 x\n\n" * 20_000,
        b"HTTP/1.1 103 x\r\nA: " + b"y" * 40_000 + b"\r\n\r\n",
    ],
    ids=["many", "bare line feeds", "long ones"],
)
async def test_answers_that_say_nothing_are_heard_to_a_bound(
    flood: bytes, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async def pour(visit: Visit) -> None:
        while not visit.writer.is_closing():
            await visit.say(flood)

    async with receiver(pour) as there:
        sending = asyncio.create_task(webhooks.open(there.url(), timeout_seconds=60).send(make_outgoing()))
        await there.read_one.wait()
        began = time.process_time()
        assert await sending == TOO_LONG
    assert time.process_time() - began < 2


async def test_a_few_answers_that_say_nothing_are_passed_over(webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    async def answer(visit: Visit) -> None:
        await visit.say(INTERIM * 16 + OK)

    async with receiver(answer) as there:
        sink = webhooks.open(there.url())
        assert [await sink.send(make_outgoing()) for _ in range(2)] == [Delivered(receipt="200: ok")] * 2
    assert there.connections == 1


async def test_a_connection_that_was_answered_before_it_was_read_is_not_used_again(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    heads: list[bytes] = []
    done = asyncio.Event()

    async def answer_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)
        await done.wait()
        writer.transport.abort()

    async with await asyncio.start_server(answer_early, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        sink = webhooks.open(f"http://127.0.0.1:{port}/")
        for body in (b"x" * 2**25, b"small"):
            assert await sink.send(make_outgoing(body=body)) == Delivered(receipt="200: ok")
        done.set()
    assert len(heads) == 2


async def test_what_a_receiver_says_that_is_no_http_is_not_quoted(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async def echo(visit: Visit) -> None:
        await visit.say(b"POST /hook?a=1 HTTP/1.1\r\n\r\n")

    async with receiver(echo) as there:
        result = await webhooks.open(there.url()).send(make_outgoing())
    assert isinstance(result, Unknown)
    assert "/hook" not in result.why


async def test_a_destination_that_is_opened_by_its_kind_tells_no_secret(
    make_outgoing: MakeOutgoing, tmp_path: Path
) -> None:
    async def point_away(visit: Visit) -> None:
        token = visit.received.headers["authorization"]
        await visit.say(status(302, f"Location: http://x.example/?a={quote(token)}&b={token}"))

    async with receiver(point_away) as there:
        settings = WebhookDestination(
            url=there.url(), secret_headers={"Authorization": "env:TWICESHY_SECRET_TOKEN"}, timeout_seconds=5
        )
        read_secret = secret_reader({"TWICESHY_SECRET_TOKEN": "Bearer t0ps3cret"})
        sink = open_sink("hook", settings, read_secret, LOOPBACK, tmp_path)
        result = await sink.send(make_outgoing())
        await sink.close()
    assert result == Permanent(
        why="The receiver answered 302 and points to http://x.example/?a=…&b=…. "
        "No redirect is followed: declare the address that takes messages."
    )
