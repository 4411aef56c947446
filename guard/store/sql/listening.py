"""A connection to PostgreSQL that listens to one channel, and is made anew whenever it is lost."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import asyncpg

from guard.ports.store import StatementFailed, StoreUnavailable
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
