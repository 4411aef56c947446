"""Wake-up: relays are told that something was staged, apart from the transaction that staged it.

Nothing depends on it: relays look for themselves as well. So whoever rings waits for nothing, and what cannot be told
is not told. Rings within fifteen milliseconds are one: a notification inside of each staging cost a third of them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final

from guard.ports.store import StatementFailed, StoreUnavailable
from guard.store.sql.address import FileAddress
from guard.store.sql.faults import translated
from guard.store.sql.listening import FileChannel, ended, listen
from guard.store.sql.postgresql import PostgresDatabase

_TOGETHER_SECONDS: Final = 0.015
_CHANNEL: Final = "twiceshy_outbox"
_NOTIFY: Final = f"NOTIFY {_CHANNEL}"


class FileBell:
    """The bell of a SQLite file: it is heard by the stores of this process that are on the same file."""

    def __init__(self, address: FileAddress) -> None:
        """Stand at a file."""
        self._channel = FileChannel(address, "bell")

    def ring(self) -> None:
        """Let all who listen know."""
        self._channel.tell(b"")

    def listening(self, heard: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Call `heard` in this loop whenever it rings."""
        return self._channel.listening(lambda _word: heard())

    async def close(self) -> None:
        """Hold nothing."""


class ServerBell:
    """The bell of a PostgreSQL database: a notification, on a connection of its own."""

    def __init__(self, database: PostgresDatabase) -> None:
        """Connect nothing yet."""
        self._database = database
        self._held = database.held()
        self._ringing: asyncio.Task[None] | None = None
        self._is_asked = False

    def ring(self) -> None:
        """Notify at once, or, right after another notification, once its time is over."""
        self._is_asked = True
        if self._ringing is None or self._ringing.done():
            self._ringing = asyncio.get_running_loop().create_task(self._ring())

    @asynccontextmanager
    async def listening(self, heard: Callable[[], None]) -> AsyncIterator[None]:
        """Call `heard` whenever it rings, and whenever the connection was lost, for it may have rung meanwhile."""
        task = asyncio.get_running_loop().create_task(listen(self._database, _CHANNEL, lambda _said: heard()))
        try:
            yield
        finally:
            await ended(task)

    async def close(self) -> None:
        """Stop ringing."""
        if self._ringing is not None:
            await ended(self._ringing)
        await self._held.close()

    async def _ring(self) -> None:
        while self._is_asked:
            self._is_asked = False
            with suppress(StoreUnavailable, StatementFailed), translated():
                await self._held.call(_NOTIFY)
            await asyncio.sleep(_TOGETHER_SECONDS)
