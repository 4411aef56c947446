"""What is proved about a mail is said exactly: handed over, refused, never sent, or unknown; against real servers."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from guard.core.effects import Instant
from guard.core.mail import mail_id, render_mail
from outbox_relay.secrets import secret_reader
from outbox_relay.sinks.base import Delivered, Outgoing, Permanent, Result, Retryable, SinkRefused, Unknown
from outbox_relay.sinks.smtp import SmtpSink
from tests.integration.sinks.mail_servers import Mailbox, ScriptedServer, certificate, free_port, real_server
from tests.integration.sinks.webhook_receivers import LOOPBACK
from twiceshy_contract.destinations import SmtpDestination
from twiceshy_contract.messages import Mail

ID = UUID("0192f5b0-7c3a-7000-8000-000000000001")
RIGHT = "env:TWICESHY_SECRET_MAIL"
WRONG = "env:TWICESHY_SECRET_WRONG"
MISSING = "env:TWICESHY_SECRET_NONE"
SECRETS = {"TWICESHY_SECRET_MAIL": "right", "TWICESHY_SECRET_WRONG": "wrong"}
Opener = Callable[..., SmtpSink]


@pytest.fixture
async def opened() -> AsyncIterator[Opener]:
    """Open sinks to a port, and close them all."""
    sinks: list[SmtpSink] = []

    def open_sink(port: int, **settings: object) -> SmtpSink:
        fields = {"kind": "smtp", "host": "localhost", "port": port, "security": "none", "sender": "agent@acme.example"}
        declared = msgspec.convert(fields | {"timeout_seconds": 5} | settings, SmtpDestination)
        sinks.append(SmtpSink("mail", declared, secret_reader(SECRETS), LOOPBACK))
        return sinks[-1]

    yield open_sink
    for sink in sinks:
        await sink.close()


@pytest.fixture
async def mailbox() -> AsyncIterator[tuple[Mailbox, int]]:
    """A real server without encryption."""
    async with real_server() as server:
        yield server


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """A certificate of `localhost`."""
    return certificate(tmp_path_factory.mktemp("certificate"))


def outgoing(
    recipient: str | None = "ann@x.example", epoch: int = 1, text: str = "Booked.\n.\n..\n", to: str = ""
) -> Outgoing:
    mail = Mail(to=(to or recipient or "ann@x.example", "bob@x.example"), subject="Room", text=text)
    frozen = render_mail(mail, "agent@acme.example", "acme.example", thread=None, answers=None, at=Instant(0))
    return Outgoing(
        message=ID,
        epoch=epoch,
        number=1,
        destination="mail",
        content_type="message/rfc822",
        body=frozen.body,
        headers=frozen.headers,
        staged_at=0,
        recipient=recipient,
    )


def kind(result: Result) -> tuple[type[Result], str]:
    return type(result), result.receipt if isinstance(result, Delivered) else result.why


async def test_a_mail_is_handed_over_with_its_bytes_behind_its_id(mailbox: tuple[Mailbox, int], opened: Opener) -> None:
    box, port = mailbox
    sink = opened(port)
    assert sink.capability == "sends_blindly"
    assert await sink.send(outgoing()) == Delivered(receipt="250 2.0.0 queued as 1")
    (kept,) = box.mails
    assert (kept.mail_from, kept.rcpt_tos) == ("agent@acme.example", ["ann@x.example"])
    assert kept.content == f"Message-ID: <{mail_id(f'{ID}.1')}@acme.example>\r\n".encode() + outgoing().body


async def test_every_try_sends_the_same_bytes_and_another_epoch_another_id(
    mailbox: tuple[Mailbox, int], opened: Opener
) -> None:
    box, port = mailbox
    sink = opened(port)
    for epoch in (1, 1, 2):
        assert isinstance(await sink.send(outgoing(epoch=epoch)), Delivered)
    first, again, anew = box.contents
    assert first == again
    ids = [message_from_bytes(content, policy=default)["Message-ID"] for content in (first, anew)]
    assert ids == [f"<{mail_id(f'{ID}.1')}@acme.example>", f"<{mail_id(f'{ID}.2')}@acme.example>"]


@pytest.mark.parametrize(
    ("recipient", "end"),
    [
        ("nobody@x.example", (Permanent, "550 5.1.1 no such person")),
        ("later@x.example", (Retryable, "451 4.7.1 greylisted, come again")),
    ],
)
async def test_a_refused_recipient_is_never_said_to_be_delivered(
    mailbox: tuple[Mailbox, int], opened: Opener, recipient: str, end: tuple[type[Result], str]
) -> None:
    sink = opened(mailbox[1])
    assert kind(await sink.send(outgoing(recipient))) == end
    assert isinstance(await sink.send(outgoing()), Delivered)
    assert [kept.rcpt_tos for kept in mailbox[0].mails] == [["ann@x.example"]]


async def test_an_address_beyond_ascii_needs_a_server_that_takes_it(
    mailbox: tuple[Mailbox, int], opened: Opener
) -> None:
    assert isinstance(await opened(mailbox[1]).send(outgoing("jürgen@x.example")), Delivered)
    assert mailbox[0].mails[0].rcpt_tos == ["jürgen@x.example"]
    async with ScriptedServer() as server:
        assert isinstance(await opened(server.port).send(outgoing("jürgen@x.example")), Permanent)
        assert "DATA" not in server.verbs


async def test_mail_is_encrypted_for_a_server_that_is_who_it_says_and_for_no_other(
    trusted: tuple[ssl.SSLContext, Path], opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_server(trusted[0]) as (box, port):
        login = {"security": "starttls", "username": "agent", "password": RIGHT}
        refused = await opened(port, **login).send(outgoing())
        assert isinstance(refused, Retryable)
        assert refused.is_unreachable
        assert "certificate that cannot be trusted (self-signed certificate)" in refused.why
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted[1]))
        other_name = await opened(port, host="127.0.0.1", **login).check()
        assert (other_name.ok, "IP address mismatch" in other_name.detail) == (False, True)
        assert isinstance(await opened(port, **login).send(outgoing()), Delivered)
        checked = await opened(port, **login).check()
        assert (checked.ok, checked.detail) == (True, f"localhost:{port} takes mail, encrypted, as agent")
        assert (len(box.mails), box.users) == (1, ["agent", "agent"])


async def test_a_wrong_password_is_an_operators_matter_and_the_mail_waits(
    mailbox: tuple[Mailbox, int], opened: Opener
) -> None:
    sink = opened(mailbox[1], username="agent", password=WRONG)
    result = await sink.send(outgoing())
    assert isinstance(result, Retryable)
    assert "refuses `username` and `password`: 535" in result.why
    assert not (await sink.check()).ok


async def test_encryption_that_a_server_has_not_is_said(mailbox: tuple[Mailbox, int], opened: Opener) -> None:
    reached = await opened(mailbox[1], security="starttls").check()
    assert (reached.ok, "STARTTLS" in reached.detail) == (False, True)


async def test_nobody_there_is_unreachable(opened: Opener) -> None:
    port = free_port()
    result = await opened(port).send(outgoing())
    assert isinstance(result, Retryable)
    assert (result.is_unreachable, result.why.startswith(f"localhost:{port} cannot be reached: ")) == (True, True)


@pytest.mark.parametrize("settings", [{"username": "agent"}, {"password": RIGHT}])
async def test_half_a_login_is_refused(opened: Opener, settings: dict[str, object]) -> None:
    with pytest.raises(SinkRefused, match="only one of `username` and `password`"):
        opened(1, **settings)


async def test_a_missing_secret_is_refused_at_once(opened: Opener) -> None:
    with pytest.raises(SinkRefused, match="TWICESHY_SECRET_NONE is not set"):
        opened(1, username="agent", password=MISSING)


async def test_what_is_no_mail_is_refused(opened: Opener) -> None:
    assert isinstance(await opened(1).send(outgoing(recipient=None)), Permanent)


NO_ANSWER = ""
HANG_UP = None
LOST = "ended the connection before the mail was sent"


@pytest.mark.parametrize(
    ("at", "answer", "end", "why"),
    [
        ("GREETING", "554 no mail here", Retryable, "takes no mail now: 554 no mail here"),
        ("GREETING", HANG_UP, Retryable, "cannot be reached"),
        ("GREETING", NO_ANSWER, Retryable, "was too slow: nothing was sent yet"),
        ("EHLO", "421 too many", Retryable, "takes no mail now: 421 too many"),
        ("MAIL", "451 busy", Retryable, "451 busy"),
        ("MAIL", "421 closing", Retryable, "421 closing"),
        ("MAIL", "530 log in first", Retryable, "530 log in first: set `username`"),
        ("MAIL", "553 not yours to send from", Permanent, "553 not yours to send from"),
        ("MAIL", HANG_UP, Retryable, LOST),
        ("RCPT", NO_ANSWER, Retryable, "was too slow: nothing was sent yet"),
        ("RCPT", "rubbish", Retryable, "Malformed"),
        ("DATA", "452 full", Retryable, "452 full"),
        ("DATA", "554 no", Permanent, "554 no"),
        ("DATA", "250 what", Retryable, "250 what"),
        ("DATA", HANG_UP, Retryable, LOST),
        ("END", "451 come again", Retryable, "451 come again"),
        ("END", "421 closing", Retryable, "421 closing"),
        ("END", "554 spam", Permanent, "554 spam"),
        ("END", HANG_UP, Unknown, "did not say what came of the mail"),
        ("END", NO_ANSWER, Unknown, "did not say in time what came of it"),
        ("END", "rubbish", Unknown, "did not say what came of the mail"),
        ("END", "354 and then", Unknown, "neither yes nor no: 354 and then"),
    ],
)
async def test_only_what_may_have_arrived_is_unknown(
    opened: Opener, at: str, answer: str | None, end: type[Result], why: str
) -> None:
    async with ScriptedServer(**{at: answer}) as server:
        result = await opened(server.port, timeout_seconds=0.5).send(outgoing())
        assert (type(result), why in kind(result)[1]) == (end, True), result
        assert bool(server.stored) == (at == "END")


async def test_a_server_that_closes_asks_for_less_of_anything(opened: Opener) -> None:
    async with ScriptedServer(RCPT="421 too many mails") as server:
        assert await opened(server.port).send(outgoing()) == Retryable(why="421 too many mails", is_throttled=True)


async def test_dots_and_line_ends_arrive_as_they_were_frozen(opened: Opener) -> None:
    async with ScriptedServer() as server:
        bare = msgspec.structs.replace(outgoing(), body=b"Subject: s\n\n.a\r..\r\nend")
        assert isinstance(await opened(server.port).send(bare), Delivered)
        assert server.stored[0].endswith(b"Subject: s\r\n\r\n..a\r\n...\r\nend\r\n.\r\n")


async def test_a_connection_is_kept_and_one_that_the_server_closed_costs_nothing(opened: Opener) -> None:
    async with ScriptedServer() as server:
        sink = opened(server.port)
        for _ in range(3):
            assert isinstance(await sink.send(outgoing()), Delivered)
        assert server.connections == 1
        await server.hang_up("421 idle for too long\r\n")
        assert isinstance(await sink.send(outgoing()), Delivered)
        assert (server.connections, len(server.stored)) == (2, 4)


async def test_a_kept_connection_that_breaks_before_the_mail_is_replaced(opened: Opener) -> None:
    async with ScriptedServer() as server:
        sink = opened(server.port)
        assert isinstance(await sink.send(outgoing()), Delivered)
        server.answers["MAIL"] = "421 that were enough mails"
        first = await sink.send(outgoing())
        assert first == Retryable(why="421 that were enough mails", is_throttled=True)
        assert (server.connections, len(server.stored)) == (2, 1)


async def test_connections_are_shared_by_no_two_mails_and_kept_up_to_the_limit(opened: Opener) -> None:
    async with ScriptedServer() as server:
        sink = opened(server.port, concurrency=2)
        results = await asyncio.gather(*(sink.send(outgoing()) for _ in range(4)))
        assert all(isinstance(result, Delivered) for result in results)
        assert len(server.stored) == 4
        before = server.connections
        await asyncio.gather(*(sink.send(outgoing()) for _ in range(2)))
        assert server.connections == before
        await sink.close()
        assert server.verbs.count("QUIT") == 2


async def test_a_cancelled_send_leaves_no_connection_behind(opened: Opener) -> None:
    async with ScriptedServer(END=NO_ANSWER) as server:
        sink = opened(server.port)
        sending = asyncio.create_task(sink.send(outgoing()))
        await server.has_stored.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        server.answers["END"] = "250 kept"
        assert isinstance(await sink.send(outgoing()), Delivered)
        assert server.connections == 2


async def test_a_connection_that_nobody_uses_is_closed(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox_relay.sinks.smtp_connections.KEPT_SECONDS", 0.01)
    async with ScriptedServer() as server:
        sink = opened(server.port)
        for sent in (1, 2):
            assert isinstance(await sink.send(outgoing()), Delivered)
            await server.all_left()
            assert server.connections == sent
