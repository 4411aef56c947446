"""Connections to one SMTP server: kept while they are used, asked whether they live before they are used again.

A server closes a connection whenever it likes. One that was found closed proves that nothing was sent over it.
"""

import asyncio
import socket
import ssl
from typing import Final

from aiosmtplib import (
    SMTP,
    SMTPAuthenticationError,
    SMTPConnectError,
    SMTPConnectResponseError,
    SMTPException,
    SMTPHeloError,
    SMTPResponseException,
)

from outbox_relay.dialling import AddressRefused, DialGuard, dial
from outbox_relay.networks import Networks
from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import SinkRefused
from twiceshy_contract.destinations import SmtpDestination

KEPT_SECONDS: Final = 30.0
"""How long a connection is kept that nobody uses: less than servers do."""
_FRESH_SECONDS: Final = 1.0
"""A connection that was used so lately is not asked whether it lives."""
_ASK_SECONDS: Final = 5.0
_GOODBYE_SECONDS: Final = 2.0
_UNNAMED: Final = "localhost"


class NotConnected(Exception):
    """No connection could be made. The text says why; nothing was sent.

    `is_blocked`: none of the server's addresses may be dialled.
    """

    def __init__(self, why: str, *, is_blocked: bool = False) -> None:
        super().__init__(why)
        self.is_blocked = is_blocked


class SmtpConnections:
    """The connections to one server that are not in use, the one used last in front."""

    def __init__(self, settings: SmtpDestination, read_secret: ReadSecret, networks: Networks) -> None:
        self._settings = settings
        self._guard = DialGuard(networks)
        self._read_secret = read_secret
        self._kept: list[tuple[float, SMTP]] = []
        self._sweep: asyncio.TimerHandle | None = None
        self._context: ssl.SSLContext | None = None

    async def kept(self) -> SMTP | None:
        """Return a connection that was kept and lives, if there is one; it is the caller's until it is kept again."""
        while self._kept:
            since, client = self._kept.pop()
            if not client.is_connected:
                continue
            if asyncio.get_running_loop().time() - since < _FRESH_SECONDS or await _lives(client):
                return client
        return None

    async def open(self) -> SMTP:
        """Connect, greet, encrypt and log in. Raises NotConnected."""
        settings = self._settings
        try:
            made = await dial(self._guard, settings.host, settings.port, settings.timeout_seconds)
            try:
                client = await self._greeted(made)
            except BaseException:
                made.close()
                raise
        except AddressRefused as error:
            raise NotConnected(f"blocked: {error}", is_blocked=True) from error
        except (SMTPException, OSError, ValueError, SinkRefused) as error:
            raise NotConnected(self._why(error)) from error
        return client

    def keep(self, client: SMTP) -> None:
        """Take back a connection on which no mail is under way."""
        if not client.is_connected or len(self._kept) >= self._settings.concurrency:
            client.close()
            return
        loop = asyncio.get_running_loop()
        self._kept.append((loop.time(), client))
        if self._sweep is None:
            self._sweep = loop.call_later(KEPT_SECONDS, self._close_unused)

    async def close(self) -> None:
        """Say goodbye on all that are kept."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        kept, self._kept = self._kept, []
        await asyncio.gather(*(say_goodbye(client) for _, client in kept))

    def _close_unused(self) -> None:
        loop = asyncio.get_running_loop()
        used = [(since, client) for since, client in self._kept if loop.time() - since < KEPT_SECONDS]
        for since, client in self._kept:
            if (since, client) not in used:
                client.close()
        self._kept = used
        self._sweep = loop.call_at(used[0][0] + KEPT_SECONDS, self._close_unused) if used else None

    async def _greeted(self, made: socket.socket) -> SMTP:
        """Speak to the server over a socket that is connected, which is the client's from here on."""
        client = await self._client(made)
        try:
            await client.connect()
            if client.is_ehlo_or_helo_needed:
                await _greet(client)
        except BaseException:
            client.close()
            raise
        return client

    async def _client(self, made: socket.socket) -> SMTP:
        settings = self._settings
        if self._context is None and settings.security != "none":
            self._context = await asyncio.to_thread(ssl.create_default_context)
        domain = settings.domain or settings.sender.rpartition("@")[2].rstrip("> ")
        return SMTP(
            hostname=settings.host,
            sock=made,
            username=settings.username,
            password=None if settings.password is None else self._read_secret(settings.password),
            local_hostname=domain if domain.isascii() and domain else _UNNAMED,
            timeout=settings.timeout_seconds,
            use_tls=settings.security == "tls",
            start_tls=settings.security == "starttls",
            tls_context=self._context,
        )

    def _why(self, error: Exception) -> str:
        place = f"{self._settings.host}:{self._settings.port}"
        untrusted = _untrusted(error)
        if untrusted is not None:
            return (
                f"{place} showed a certificate that cannot be trusted ({untrusted}): give the destination the name "
                "that it is for as `host`, or the relay its authority in SSL_CERT_FILE."
            )
        match error:
            case SinkRefused():
                return str(error)
            case SMTPAuthenticationError() if error.code < 500:
                return f"{place} cannot check the password now: {said(error.code, error.message)}"
            case SMTPAuthenticationError():
                return (
                    f"{place} refuses `username` and `password`: {said(error.code, error.message)}. Set them right; "
                    "mail waits meanwhile."
                )
            case SMTPConnectResponseError() | SMTPHeloError() | SMTPResponseException():
                return f"{place} takes no mail now: {said(error.code, error.message)}"
            case _:
                cause = error.__cause__ if isinstance(error, SMTPConnectError) else None
                return f"{place} cannot be reached: {cause or error}"


def said(code: int, text: str) -> str:
    """Return an answer of a server as one short line that any log can hold."""
    line = " ".join(text.encode(errors="replace").decode().split())
    return f"{code} {''.join(letter for letter in line if letter.isprintable())}"[:400].rstrip()


async def say_goodbye(client: SMTP) -> None:
    """End a connection as the protocol says, where the server plays along."""
    try:
        await client.quit(timeout=_GOODBYE_SECONDS)
    except (SMTPException, OSError):
        pass
    finally:
        client.close()


async def _lives(client: SMTP) -> bool:
    try:
        await client.noop(timeout=_ASK_SECONDS)
    except (SMTPException, OSError):
        client.close()
        return False
    except BaseException:
        client.close()
        raise
    return True


async def _greet(client: SMTP) -> None:
    try:
        await client.ehlo()
    except SMTPHeloError:
        if not client.is_connected:
            raise
        await client.helo()


def _untrusted(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__
    return None
