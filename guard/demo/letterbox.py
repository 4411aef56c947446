"""A small real letterbox: webhooks and mail arrive in one SQLite file, in a process of its own.

What arrives is committed before anything can go wrong with its answer. A webhook is dropped whose `webhook-id` is in
the file, as receivers of signed webhooks do; mail is kept as often as it comes, as mail servers do.
"""

import asyncio
import socket
import sqlite3
import sys
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import uvicorn
from litestar import Litestar, Request, post
from litestar.datastructures import State
from litestar.di import Provide

from guard.demo.letters import LetterFault

_TABLE: Final = """CREATE TABLE IF NOT EXISTS arrivals (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, identity TEXT NOT NULL, is_kept INTEGER NOT NULL
)"""
_ARRIVED: Final = """INSERT INTO arrivals (kind, identity, is_kept)
    SELECT ?1, ?2, NOT (?3 AND EXISTS (SELECT 1 FROM arrivals WHERE kind = ?1 AND identity = ?2))"""
_NEVER: Final = 3600.0


class NewFault(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo sends to let the next answer of a kind never come."""

    fault: LetterFault


class Letterbox:
    """The file of what arrived, and what is to go wrong, each once."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file)
        self._faults: list[LetterFault] = []
        with self._connection:
            self._connection.execute(_TABLE)

    def keep(self, kind: str, identity: str, *, drops_known: bool) -> None:
        """Commit what arrived; one that is known may be dropped."""
        with self._connection as connection:
            connection.execute(_ARRIVED, (kind, identity, drops_known))

    def plan(self, fault: LetterFault) -> None:
        """Let an answer never come."""
        self._faults.append(fault)

    async def happen(self, fault: LetterFault) -> None:
        """Say nothing any more, if that is planned for here, and write that down."""
        if fault in self._faults:
            self._faults.remove(fault)
            self.keep("held", fault, drops_known=False)
            await asyncio.sleep(_NEVER)


LetterRequest = Request[Any, Any, State]


@post("/hook", status_code=200)
async def hook(request: LetterRequest, letterbox: Letterbox) -> dict[str, bool]:
    """Take a webhook."""
    await request.body()
    letterbox.keep("webhook", request.headers.get("webhook-id", ""), drops_known=True)
    await letterbox.happen("webhook-answer")
    return {"ok": True}


@post("/faults", sync_to_thread=False)
def fault(data: NewFault, letterbox: Letterbox) -> dict[str, str]:
    """Plan a fault."""
    letterbox.plan(data.fault)
    return {"planned": data.fault}


async def take_mail(letterbox: Letterbox, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak as much of SMTP (RFC 5321) as it takes to be given mail."""
    try:
        writer.write(b"220 letterbox.example\r\n")
        while line := await reader.readline():
            said = line.strip().upper()
            if said.startswith(b"RCPT"):
                await letterbox.happen("mail-recipient")
            if said == b"DATA":
                writer.write(b"354 go on\r\n")
                content = (await reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n")
                identity = str(message_from_bytes(content, policy=default)["Message-ID"])
                letterbox.keep("mail", identity, drops_known=False)
                await letterbox.happen("mail-receipt")
            writer.write(b"221 bye\r\n" if said == b"QUIT" else b"250 fine\r\n")
            if said == b"QUIT":
                break
    except (OSError, asyncio.IncompleteReadError):
        pass  # whoever sent is gone
    finally:
        writer.close()


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def serve(file: Path) -> None:
    """Serve the letterbox of FILE on two free ports of the loopback, and print their addresses."""
    letterbox = Letterbox(file)
    listening = socket.create_server(("127.0.0.1", 0))
    servers: list[asyncio.Server] = []

    async def announce() -> None:
        mail = await asyncio.start_server(lambda reader, writer: take_mail(letterbox, reader, writer), "127.0.0.1", 0)
        servers.append(mail)
        web_port, mail_port = listening.getsockname()[1], mail.sockets[0].getsockname()[1]
        click.echo(f"The letterbox serves http://127.0.0.1:{web_port} smtp://127.0.0.1:{mail_port}")

    app = Litestar(
        route_handlers=[hook, fault],
        dependencies={"letterbox": Provide(lambda: letterbox, sync_to_thread=False)},
        on_startup=[announce],
        openapi_config=None,
        logging_config=None,
    )
    config = uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=0)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    serve()
