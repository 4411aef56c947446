"""Mail servers on free ports: a real one, and one that answers as it is told and breaks off where it is told."""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


class Mailbox:
    """What a real server was given; it takes the password `right`, and nobody at `nobody@x.example`."""

    def __init__(self) -> None:
        self.mails: list[Envelope] = []
        self.users: list[str] = []

    @property
    def contents(self) -> list[bytes]:
        """The bytes of the mails."""
        return [mail.content for mail in self.mails if isinstance(mail.content, bytes)]

    async def handle_RCPT(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Refuse one address for good and one for now."""
        if address == "nobody@x.example":
            return "550 5.1.1 no such person"
        if address == "later@x.example":
            return "451 4.7.1 greylisted, come again"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Keep the mail."""
        self.mails.append(envelope)
        return f"250 2.0.0 queued as {len(self.mails)}"

    def log_in(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
        """Take the right password."""
        assert isinstance(data, LoginPassword)
        self.users.append(data.login.decode())
        return AuthResult(success=data.password == b"right", handled=False)


class _Session(SMTP):
    """A session of the real server that closes with its client, and when the test ends."""

    def eof_received(self) -> bool:
        """Close with the client."""
        super().eof_received()
        return False

    def abort(self) -> None:
        """Close whatever is open."""
        for transport in (self.transport, self._original_transport):
            if isinstance(transport, asyncio.Transport):
                transport.abort()


@asynccontextmanager
async def real_server(context: ssl.SSLContext | None = None) -> AsyncIterator[tuple[Mailbox, int]]:
    """Run aiosmtpd on a free port; yields its mailbox and the port."""
    mailbox, loop = Mailbox(), asyncio.get_running_loop()
    sessions: list[_Session] = []

    def take() -> _Session:
        sessions.append(
            _Session(
                mailbox,
                hostname="localhost",
                tls_context=context,
                require_starttls=context is not None,
                authenticator=mailbox.log_in,
                auth_require_tls=False,
                enable_SMTPUTF8=True,
                loop=loop,
            )
        )
        return sessions[-1]

    server = await loop.create_server(take, "127.0.0.1", 0)
    try:
        yield mailbox, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for session in sessions:
            session.abort()
        await server.wait_closed()


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return a server's context for `localhost`, and the file of the authority that vouches for it."""
    key, authority = folder / "key.pem", folder / "authority.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", authority],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, key)
    return context, authority


class ScriptedServer:
    """A server that answers each command as `answers` says (by its verb; `END` is the end of the mail).

    An answer of None closes the connection without a word, and one of "" never comes. `stored` holds the mails that
    were taken in whole, whatever was said about them.
    """

    def __init__(self, **answers: str | None) -> None:
        self.answers: dict[str, str | None] = {
            "GREETING": "220 scripted ESMTP", "EHLO": "250 scripted", "MAIL": "250 OK", "RCPT": "250 OK",
            "NOOP": "250 OK", "RSET": "250 OK", "DATA": "354 go on", "END": "250 kept", "QUIT": "221 bye", **answers,
        }  # fmt: skip
        self.stored: list[bytes] = []
        self.verbs: list[str] = []
        self.has_stored = asyncio.Event()
        self.connections = 0
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def hang_up(self, last_words: str = "") -> None:
        """Close all connections, as a server does with idle ones, and let the other side hear of it."""
        for writer in tuple(self._open):
            writer.write(last_words.encode())
            writer.close()
        await self.all_left()

    async def all_left(self) -> None:
        """Wait until nobody is connected."""
        await asyncio.wait(self._tasks)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self._open.add(writer)
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        verb = "GREETING"
        while await self._answer(verb, writer):
            if verb == "DATA" and (self.answers["DATA"] or "").startswith("354"):
                self.stored.append(await reader.readuntil(b"\r\n.\r\n"))
                self.has_stored.set()
                verb = "END"
                continue
            line = await reader.readline()
            if not line:
                return
            verb = line.split()[0].decode().upper()
            self.verbs.append(verb)

    async def _answer(self, verb: str, writer: asyncio.StreamWriter) -> bool:
        answer = self.answers.get(verb, "502 unknown")
        if answer is None:
            return False
        if answer:
            writer.write(f"{answer}\r\n".encode())
            await writer.drain()
        return True


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
