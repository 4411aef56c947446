"""Mail goes to no address inside a network that no operator has named, and no early word is taken for a receipt."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from guard.core.effects import Instant
from guard.core.mail import render_mail
from outbox_relay.networks import Networks, networks_of
from outbox_relay.secrets import secret_reader
from outbox_relay.sinks.base import Delivered, Outgoing, Permanent, Reached, Retryable, Unknown
from outbox_relay.sinks.smtp import SmtpSink
from tests.integration.sinks.conftest import MakeOutgoing
from tests.integration.sinks.mail_servers import ScriptedServer, free_port
from tests.integration.sinks.webhook_receivers import LOOPBACK
from twiceshy_contract.destinations import SmtpDestination
from twiceshy_contract.messages import Mail

Opener = Callable[..., SmtpSink]


@pytest.fixture
async def opened() -> AsyncIterator[Opener]:
    """Open sinks to a host and port, and close them all."""
    sinks: list[SmtpSink] = []

    def open_sink(port: int, host: str = "127.0.0.1", networks: Networks = LOOPBACK, seconds: float = 5) -> SmtpSink:
        declared = SmtpDestination(
            host=host, port=port, security="none", sender="agent@acme.example", timeout_seconds=seconds
        )
        sinks.append(SmtpSink("mail", declared, secret_reader({}), networks))
        return sinks[-1]

    yield open_sink
    for sink in sinks:
        await sink.close()


def mail(make_outgoing: MakeOutgoing, to: str = "ann@x.example", text: str = "Booked.") -> Outgoing:
    sent = Mail(to=(to,), subject="Room", text=text)
    frozen = render_mail(sent, "agent@acme.example", "acme.example", thread=None, answers=None, at=Instant(0))
    return make_outgoing(
        content_type="message/rfc822", body=frozen.body, headers=frozen.headers, recipient=to, type=None
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "::1", "::ffff:127.0.0.1"])
async def test_a_server_inside_a_network_is_not_dialled(host: str, opened: Opener, make_outgoing: MakeOutgoing) -> None:
    async with ScriptedServer() as server:
        sink = opened(server.port, host, Networks())
        result, seen = await sink.send(mail(make_outgoing)), await sink.check()
    assert isinstance(result, Permanent)
    assert result.why.startswith("blocked: ")
    assert "An operator allows it with TWICESHY_RELAY_ALLOW=" in result.why
    assert result.why.endswith(" Nothing was sent.")
    assert seen == Reached(ok=False, detail=result.why.removesuffix(" Nothing was sent."))
    assert server.connections == 0


async def test_of_several_addresses_the_one_that_may_be_dialled_and_answers_is_taken(
    opened: Opener, make_outgoing: MakeOutgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedServer() as server:

        def several(host: str, port: int, *_: object, **__: object) -> list[object]:
            assert host == "mail.example"
            found = [("10.0.0.7", port), ("127.0.0.1", free), ("127.0.0.1", port)]
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in found]

        free = free_port()
        monkeypatch.setattr(socket, "getaddrinfo", several)
        sink = opened(server.port, "mail.example", networks_of("127.0.0.1/32"))
        assert await sink.send(mail(make_outgoing)) == Delivered(receipt="250 kept")


async def test_an_answer_that_comes_before_the_mail_is_no_receipt(opened: Opener, make_outgoing: MakeOutgoing) -> None:
    async with ScriptedServer(DATA="354 go on\r\n250 kept already") as server:
        result = await opened(server.port).send(mail(make_outgoing))
    assert isinstance(result, Retryable)
    assert result.why.endswith("ended the connection before the mail was sent: it answers before it is asked")
    assert server.stored == []


async def test_an_answer_that_comes_before_all_of_the_mail_left_is_no_receipt(
    opened: Opener, make_outgoing: MakeOutgoing
) -> None:
    released = asyncio.Event()

    async def answer_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 early\r\n")
        for answer in (b"250 early\r\n", b"250 OK\r\n", b"250 OK\r\n", b"354 go on\r\n"):
            await reader.readline()
            writer.write(answer)
        await reader.read(1)
        writer.write(b"250 that is enough\r\n")
        await released.wait()
        writer.transport.abort()

    server = await asyncio.start_server(answer_early, "127.0.0.1", 0)
    async with server:
        sink = opened(server.sockets[0].getsockname()[1])
        result = await sink.send(
            msgspec.structs.replace(mail(make_outgoing), body=b"Subject: s\r\n\r\n" + b"x" * 2**25)
        )
        released.set()
    assert isinstance(result, Unknown)
    assert result.why.endswith("answered before it had all of the mail: 250 that is enough")


async def test_a_domain_beyond_ascii_is_written_as_names_are_asked_for(
    opened: Opener, make_outgoing: MakeOutgoing
) -> None:
    async with ScriptedServer() as server:
        result = await opened(server.port).send(mail(make_outgoing, "ann@bücher.example"))
    assert result == Delivered(receipt="250 kept")
    assert b"To: ann@xn--bcher-kva.example\r\n" in server.stored[0]
