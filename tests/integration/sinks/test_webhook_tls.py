"""A webhook over TLS leaves only for who proves to be the receiver."""

import asyncio
import ssl
from pathlib import Path

import pytest

from outbox_relay.sinks.base import Delivered, Retryable
from tests.integration.sinks.conftest import MakeOutgoing
from tests.integration.sinks.mail_servers import certificate
from tests.integration.sinks.webhook_receivers import OK, Names, Webhooks, answering, receiver, status

Tls = tuple[ssl.SSLContext, ssl.SSLContext]


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    """A server's side for `localhost`, and a client's that trusts it."""
    server, authority = certificate(tmp_path)
    return server, ssl.create_default_context(cafile=str(authority))


async def test_over_tls_a_trusted_receiver_gets_the_message(
    tls: Tls, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    server, client = tls
    async with receiver(answering(OK), server) as there:
        sink = webhooks.open(there.url("localhost", "https"), certificates=client)
        assert await sink.send(make_outgoing()) == Delivered(receipt="200: ok")
        reached = await sink.check()
    assert reached.ok
    assert "with TLSv1.3" in reached.detail


async def test_a_receiver_whose_certificate_is_not_trusted_gets_nothing(
    tls: Tls, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async with receiver(answering(OK), tls[0]) as there:
        result = await webhooks.open(there.url("localhost", "https")).send(make_outgoing())
    assert result == Retryable(
        why="The receiver's certificate is not trusted (self-signed certificate). Nothing was sent.",
        is_unreachable=True,
    )
    assert there.requests == []


async def test_a_receiver_with_another_name_in_its_certificate_gets_nothing(
    tls: Tls, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    server, client = tls
    async with receiver(answering(OK), server) as there:
        sink = webhooks.open(there.url("other.example", "https"), certificates=client, resolver=Names(("127.0.0.1",)))
        result = await sink.send(make_outgoing())
    assert isinstance(result, Retryable)
    assert "Hostname mismatch" in result.why
    assert there.requests == []


async def test_a_receiver_that_speaks_no_tls_gets_nothing(webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(status(400))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        result = await webhooks.open(f"https://127.0.0.1:{port}/").send(make_outgoing())
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert result.why.startswith("No encrypted connection could be made (")
