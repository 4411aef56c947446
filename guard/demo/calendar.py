"""A small real calendar: its own process, its own SQLite file, and no idempotency whatsoever.

A hold is committed before anything can go wrong with its answer. So a fault is what it is in the field: the row is
there, and the caller does not know.
"""

import asyncio
import socket
import sqlite3
import sys
from pathlib import Path
from typing import Annotated, Any, Final, cast

import click
import msgspec
import uvicorn
from litestar import Litestar, Request, get, post
from litestar.datastructures import State
from litestar.di import Provide
from litestar.params import Parameter
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from guard.demo.holds import Fault, Hold

CalendarRequest = Request[Any, Any, State]
_TABLE: Final = """CREATE TABLE IF NOT EXISTS holds (
    id INTEGER PRIMARY KEY, start_time TEXT NOT NULL, duration_minutes INTEGER NOT NULL, title TEXT NOT NULL
)"""


class NewHold(msgspec.Struct, frozen=True, kw_only=True):
    """What a client sends to hold a time."""

    start_time: str
    duration_minutes: int
    title: str


class NewFault(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo sends to break the answer to the next hold at a time."""

    start_time: str
    fault: Fault


class Holds:
    """The table of holds in the calendar's file."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file)
        with self._connection:
            self._connection.execute(_TABLE)

    def add(self, new: NewHold) -> Hold:
        """Commit a hold."""
        values = (new.start_time, new.duration_minutes, new.title)
        with self._connection as connection:
            row = connection.execute(
                "INSERT INTO holds (start_time, duration_minutes, title) VALUES (?, ?, ?) "
                "RETURNING id, start_time, duration_minutes, title",
                values,
            ).fetchone()
        return _hold(row)

    def at(self, start: str) -> list[Hold]:
        """List the holds of one start time, oldest first."""
        rows = self._connection.execute(
            "SELECT id, start_time, duration_minutes, title FROM holds WHERE start_time = ? ORDER BY id", (start,)
        )
        return [_hold(row) for row in rows]


def _hold(row: tuple[int, str, int, str]) -> Hold:
    number, start_time, duration_minutes, title = row
    return Hold(id=number, start_time=start_time, duration_minutes=duration_minutes, title=title)


class Connections:
    """The open connections by their client's address, so that one can be cut."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], asyncio.Transport] = {}

    def cut(self, request: CalendarRequest) -> None:
        """Close the connection of a request without an answer."""
        if request.client is not None:
            self._open[request.client.host, request.client.port].abort()

    def protocol(self) -> type[HttpToolsProtocol]:
        """Return uvicorn's protocol, which notes its connections here."""
        opened = self._open

        class Noted(HttpToolsProtocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                connection = cast("asyncio.Transport", transport)
                self._address: tuple[str, int] = connection.get_extra_info("peername")[:2]
                opened[self._address] = connection
                super().connection_made(connection)

            def connection_lost(self, exc: Exception | None) -> None:
                del opened[self._address]
                super().connection_lost(exc)

        return Noted


class Faults:
    """What is to go wrong, each once."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._next: dict[str, Fault] = {}

    def plan(self, new: NewFault) -> None:
        """Let the answer to the next hold at a time go wrong."""
        self._next[new.start_time] = new.fault

    async def happen(self, start_time: str, request: CalendarRequest) -> None:
        """Let go wrong what is planned: cut the connection, or stay silent until the client is gone."""
        match self._next.pop(start_time, None):
            case "drop":
                self._connections.cut(request)
            case "hang":
                while (await request.receive())["type"] != "http.disconnect":
                    pass
            case None:
                pass


@post("/holds")
async def hold(data: NewHold, holds: Holds, faults: Faults, request: CalendarRequest) -> Hold:
    """Make a hold, whatever is there already."""
    made = holds.add(data)
    await faults.happen(made.start_time, request)
    return made


@get("/holds", sync_to_thread=False)
def listing(start: Annotated[str, Parameter(query="start")], holds: Holds) -> list[Hold]:
    """List the holds of one start time."""
    return holds.at(start)


@post("/faults", sync_to_thread=False)
def fault(data: NewFault, faults: Faults) -> dict[str, str]:
    """Plan a fault."""
    faults.plan(data)
    return {"planned": data.fault}


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def serve(file: Path) -> None:
    """Serve the calendar of FILE on a free port of the loopback, and print its address."""
    connections = Connections()
    holds, faults = Holds(file), Faults(connections)
    listening = socket.create_server(("127.0.0.1", 0))

    def announce() -> None:
        click.echo(f"The calendar serves http://127.0.0.1:{listening.getsockname()[1]}")

    app = Litestar(
        route_handlers=[hold, listing, fault],
        dependencies={
            "holds": Provide(lambda: holds, sync_to_thread=False),
            "faults": Provide(lambda: faults, sync_to_thread=False),
        },
        on_startup=[announce],
        openapi_config=None,
        logging_config=None,
    )
    config = uvicorn.Config(
        app, http=connections.protocol(), log_level="warning", access_log=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    server.run(sockets=[listening])
    sys.exit(not server.started)


if __name__ == "__main__":
    serve()
