"""Listening to a channel of a database.

On PostgreSQL over a connection that is made anew whenever it is lost; on SQLite within the process, by file.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import asyncpg

from guard.ports.store import StatementFailed, StoreUnavailable
from guard.store.sql.address import FileAddress
from guard.store.sql.faults import translated
from guard.store.sql.postgresql import PostgresDatabase

_PROBE_SECONDS: Final = 30.0
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 5.0
Told = Callable[[str | None], None]
"""Hears what a notification says; None where notifications may have been missed."""


async def listen(database: PostgresDatabase, channel: str, told: Told) -> None:
    """Listen for ever, until that is cancelled."""
    wait = _FIRST_WAIT
    while True:
        with suppress(StoreUnavailable, StatementFailed), translated():
            connection = await database.listener()
            wait = _FIRST_WAIT
            try:
                await _hear(connection, channel, told)
            finally:
                connection.terminate()
        told(None)
        await asyncio.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)


async def _hear(connection: "asyncpg.Connection[asyncpg.Record]", channel: str, told: Told) -> None:
    """Listen until the connection is lost: it says so, or does not answer a question."""
    is_lost = asyncio.Event()
    connection.add_termination_listener(lambda _connection: is_lost.set())
    await connection.add_listener(channel, lambda *said: told(str(said[-1])))
    told(None)
    while not is_lost.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(_PROBE_SECONDS):
                await is_lost.wait()
        if not is_lost.is_set():
            await connection.execute("SELECT 1")


async def ended(task: asyncio.Task[None]) -> None:
    """Cancel a task, and wait for its end."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


Heard = Callable[[bytes], None]
_Listener = tuple[asyncio.AbstractEventLoop, Heard]


class FileChannel:
    """A channel of a SQLite file: it reaches the stores of this process that are on the same file."""

    def __init__(self, address: FileAddress, name: str) -> None:
        """Stand at a file."""
        self._place = (str(address.path.absolute()), name)

    def tell(self, word: bytes) -> None:
        """Let all who listen hear a word."""
        for loop, heard in list(_LISTENING.get(self._place, ())):
            with suppress(RuntimeError):  # that loop is closed
                loop.call_soon_threadsafe(heard, word)

    @asynccontextmanager
    async def listening(self, heard: Heard) -> AsyncIterator[None]:
        """Call `heard` in this loop with each word."""
        listener = (asyncio.get_running_loop(), heard)
        _LISTENING.setdefault(self._place, []).append(listener)
        try:
            yield
        finally:
            _LISTENING[self._place].remove(listener)

    async def close(self) -> None:
        """Hold nothing."""


_LISTENING: Final[dict[tuple[str, str], list[_Listener]]] = {}
"""Who listens in this process, by file and channel: stores are opened one by one, and know of each other only here."""
