"""Hand mail to an SMTP server, one recipient at a time, and say exactly what is proved about it.

Until the line that ends the mail has left, nothing can have been delivered; from then on only an answer proves
anything. A server that keeps the mail and then falls silent looks like one that never got it: that is unknown.
"""

import asyncio
import re
from typing import Final, Literal, cast

import msgspec
from aiosmtplib import (
    SMTP,
    SMTPException,
    SMTPRecipientRefused,
    SMTPResponseException,
    SMTPSenderRefused,
    SMTPServerDisconnected,
)

from guard.core.mail import DOMAIN, MAIL_FROM, mail_id, with_ascii_domain
from outbox_relay.networks import Networks
from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import (
    Delivered,
    Outgoing,
    Permanent,
    Reached,
    Result,
    Retryable,
    SinkRefused,
    Unknown,
)
from outbox_relay.sinks.smtp_connections import NotConnected, SmtpConnections, said, say_goodbye
from twiceshy_contract.destinations import SmtpDestination

_START_INPUT: Final = 354
_CLOSING: Final = 421
_ABOUT_THE_LOGIN: Final = frozenset({530, 534, 535, 538})
"""What says that the user or the encryption is wrong, and nothing of the mail."""
_RESET_SECONDS: Final = 2.0
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_LEADING_DOT: Final = re.compile(rb"(?m)^\.")


class _Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A mail as it goes over the wire: who it is from and for, and its bytes with the dots doubled and the end."""

    sender: str
    recipient: str
    wire: bytes
    is_international: bool


class SmtpSink:
    """One SMTP server, over connections that are kept for a while."""

    def __init__(self, name: str, settings: SmtpDestination, read_secret: ReadSecret, networks: Networks) -> None:
        if (settings.username is None) != (settings.password is None):
            raise SinkRefused(f"{name} has only one of `username` and `password`: give it both, or none.")
        if settings.password is not None:
            read_secret(settings.password)
        self._settings = settings
        self._connections = SmtpConnections(settings, read_secret, networks)

    @property
    def capability(self) -> Literal["deduplicates", "sends_blindly"]:
        """Say that SMTP promises nothing about a mail that it is given twice."""
        return "sends_blindly"

    async def send(self, outgoing: Outgoing) -> Result:
        """Hand over one mail once."""
        envelope = _envelope(outgoing)
        if envelope is None:
            return Permanent(why="it is no mail: it has no recipient or no sender")
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_seconds
        try:
            async with asyncio.timeout_at(deadline):
                client = await self._offer(envelope)
        except TimeoutError:
            return Retryable(why=f"{self._place} was too slow: nothing was sent yet", is_unreachable=True)
        except NotConnected as error:
            if error.is_blocked:
                return Permanent(why=f"{error} Nothing was sent.")
            return Retryable(why=str(error), is_unreachable=True)
        if not isinstance(client, SMTP):
            return client
        return await self._hand_over(client, envelope, deadline)

    async def check(self) -> Reached:
        """Connect, greet, encrypt and log in, and leave again."""
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                client = await self._connections.open()
        except TimeoutError:
            return Reached(ok=False, detail=f"{self._place} was too slow")
        except NotConnected as error:
            return Reached(ok=False, detail=str(error))
        encryption = "no encryption" if self._settings.security == "none" else "encrypted"
        user = "without a user" if self._settings.username is None else f"as {self._settings.username}"
        await say_goodbye(client)
        return Reached(ok=True, detail=f"{self._place} takes mail, {encryption}, {user}")

    async def close(self) -> None:
        """Give back all connections that are kept."""
        await self._connections.close()

    @property
    def _place(self) -> str:
        return f"{self._settings.host}:{self._settings.port}"

    async def _offer(self, envelope: _Envelope) -> SMTP | Result:
        """Bring the server to the point where it takes the mail's bytes, over a fresh connection where one was lost.

        Returns the connection, or why the mail is not taken. Raises NotConnected.
        """
        kept = await self._connections.kept()
        if kept is not None:
            try:
                return await self._announce(kept, envelope)
            except (SMTPException, OSError):
                kept.close()
        fresh = await self._connections.open()
        try:
            return await self._announce(fresh, envelope)
        except SMTPResponseException as error:
            fresh.close()
            return _refused(error.code, error.message)
        except (SMTPException, OSError) as error:
            fresh.close()
            raise NotConnected(f"{self._place} ended the connection before the mail was sent: {error}") from error

    async def _announce(self, client: SMTP, envelope: _Envelope) -> SMTP | Result:
        """Say who the mail is from and for. Raises SMTPException or OSError where the connection is of no more use."""
        try:
            return await self._ask(client, envelope)
        except (SMTPSenderRefused, SMTPRecipientRefused) as error:
            if error.code == _CLOSING:
                raise
            await self._keep(client)
            return _refused(error.code, error.message)
        except ValueError as error:
            await self._keep(client)
            return Permanent(why=f"an address cannot be written to a mail server: {error}")
        except BaseException:
            client.close()
            raise

    async def _ask(self, client: SMTP, envelope: _Envelope) -> SMTP | Result:
        options = [f"SIZE={len(envelope.wire)}"] if client.supports_extension("size") else []
        encoding = "utf-8" if envelope.is_international else "ascii"
        if envelope.is_international:
            if not client.supports_extension("smtputf8"):
                self._connections.keep(client)
                return Permanent(why=f"{self._place} takes no addresses beyond ASCII (SMTPUTF8)")
            options.append("SMTPUTF8")
        await client.mail(envelope.sender, options=options, encoding=encoding)
        await client.rcpt(envelope.recipient, encoding=encoding)
        answer = await client.execute_command(b"DATA")
        if answer.code == _START_INPUT:
            if _has_said_more(client):
                raise SMTPException("it answers before it is asked")
            return client
        if answer.code == _CLOSING:
            raise SMTPResponseException(answer.code, answer.message)
        await self._keep(client)
        return _refused(answer.code, answer.message)

    async def _keep(self, client: SMTP) -> None:
        """Have the server forget the mail that it refused, and keep the connection."""
        try:
            await client.rset(timeout=_RESET_SECONDS)
        except (SMTPException, OSError):
            client.close()
        else:
            self._connections.keep(client)

    async def _hand_over(self, client: SMTP, envelope: _Envelope, deadline: float) -> Result:
        """Send the mail's bytes and hear what came of it. What is not heard is unknown."""
        if client.protocol is None or asyncio.get_running_loop().time() >= deadline:
            client.close()
            return Retryable(why=f"{self._place} ended the connection before the mail was sent")
        try:
            client.protocol.write(envelope.wire)
        except SMTPServerDisconnected:
            client.close()
            return Retryable(why=f"{self._place} ended the connection before the mail was sent")
        try:
            async with asyncio.timeout_at(deadline):
                answer = await client.protocol.read_response()
        except TimeoutError:
            client.close()
            return Unknown(why=f"{self._place} has all of the mail, and did not say in time what came of it")
        except (SMTPException, OSError) as error:
            client.close()
            return Unknown(why=f"{self._place} did not say what came of the mail: {error}")
        except BaseException:
            client.close()
            raise
        result, is_early = _result(answer.code, answer.message), _has_unwritten(client)
        if is_early and isinstance(result, Delivered):
            result = Unknown(why=f"{self._place} answered before it had all of the mail: {result.receipt}")
        if is_early or answer.code == _CLOSING or isinstance(result, Unknown):
            client.close()
        else:
            self._connections.keep(client)
        return result


def _has_said_more(client: SMTP) -> bool:
    """Say whether something came behind an answer, which the library would take for the answer to the mail."""
    return client.protocol is not None and bool(client.protocol._buffer)  # noqa: SLF001  nothing public tells


def _has_unwritten(client: SMTP) -> bool:
    return client.transport is not None and cast("asyncio.WriteTransport", client.transport).get_write_buffer_size() > 0


def _envelope(outgoing: Outgoing) -> _Envelope | None:
    sender, domain = outgoing.headers.get(MAIL_FROM), outgoing.headers.get(DOMAIN)
    if outgoing.recipient is None or sender is None or domain is None:
        return None
    named = f"Message-ID: <{mail_id(outgoing.identity)}@{domain}>\r\n".encode()
    lines = _LINE_END.sub(b"\r\n", named + outgoing.body)
    ended = lines if lines.endswith(b"\r\n") else lines + b"\r\n"
    recipient = with_ascii_domain(outgoing.recipient)
    is_plain = recipient.isascii() and sender.isascii() and lines.isascii()
    wire = _LEADING_DOT.sub(b"..", ended) + b".\r\n"
    return _Envelope(sender=sender, recipient=recipient, wire=wire, is_international=not is_plain)


def _refused(code: int, text: str) -> Result:
    """Judge an answer to a command before the mail's bytes: nothing was sent."""
    why = said(code, text)
    if code in _ABOUT_THE_LOGIN:
        return Retryable(
            why=f"{why}: set `username`, `password` or `security` right; mail waits meanwhile", is_unreachable=True
        )
    if 500 <= code < 600:
        return Permanent(why=why)
    return Retryable(why=why, is_throttled=code == _CLOSING)


def _result(code: int, text: str) -> Result:
    """Judge the answer to the mail."""
    if 200 <= code < 300:
        return Delivered(receipt=said(code, text))
    if 400 <= code < 600:
        return _refused(code, text)
    return Unknown(why=f"the answer to the mail says neither yes nor no: {said(code, text)}")
