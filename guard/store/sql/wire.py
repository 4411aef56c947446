"""The wire over the database: words by PostgreSQL's notifications, and within the process for a file of SQLite.

Whoever tells waits for nothing. Words that come within a moment are one notification, on a connection of its own and
outside of all transactions: telling within them would make them wait for each other.
"""

import asyncio
import base64
import binascii
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from guard.ports.store import StatementFailed, StoreUnavailable
from guard.ports.wire import LONGEST_WORD
from guard.store.sql.address import FileAddress
from guard.store.sql.faults import translated
from guard.store.sql.listening import FileChannel, ended, listen
from guard.store.sql.postgresql import PostgresDatabase

Heard = Callable[[bytes | None], None]

MOST_WAITING: Final = 4_096
"""Words that wait to be sent; beyond them the oldest are lost."""
_CHANNEL: Final = "twiceshy_words"
_NOTIFY: Final = f"SELECT pg_notify('{_CHANNEL}', $1)"
_LONGEST_TEXT: Final = 7_900
"""Bytes of a notification: PostgreSQL takes less than 8,000."""
_TOGETHER: Final = _LONGEST_TEXT // (4 * (LONGEST_WORD // 3 + 1) + 1)
_TOGETHER_SECONDS: Final = 0.01
_LAST_SECONDS: Final = 0.5


class FileWire(FileChannel):
    """The wire of a SQLite file."""

    def __init__(self, address: FileAddress) -> None:
        """Stand at a file."""
        super().__init__(address, "words")


class ServerWire:
    """The wire of a PostgreSQL database."""

    def __init__(self, database: PostgresDatabase) -> None:
        """Connect nothing yet."""
        self._database = database
        self._held = database.held()
        self._words: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._sending: asyncio.Task[None] | None = None

    def tell(self, word: bytes) -> None:
        """Send a word at once, or, right after others, once their moment is over."""
        self._words.append(word)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    @asynccontextmanager
    async def listening(self, heard: Heard) -> AsyncIterator[None]:
        """Call `heard` with each word; with None whenever the connection was lost, or made for the first time."""

        def told(text: str | None) -> None:
            if text is None:
                heard(None)
                return
            for word in words_of(text):
                heard(word)

        task = asyncio.get_running_loop().create_task(listen(self._database, _CHANNEL, told))
        try:
            yield
        finally:
            await ended(task)

    async def close(self) -> None:
        """Send what waits, if that is quick."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=_LAST_SECONDS)
            await ended(self._sending)
        await self._held.close()

    async def _send(self) -> None:
        while self._words:
            words = [self._words.popleft() for _ in range(min(len(self._words), _TOGETHER))]
            with suppress(StoreUnavailable, StatementFailed), translated():
                await self._held.call(_NOTIFY, ",".join(base64.b64encode(word).decode() for word in words))
            await asyncio.sleep(_TOGETHER_SECONDS)


def words_of(text: str) -> list[bytes]:
    """Read the words of a notification; what is none of ours has none."""
    try:
        words = [base64.b64decode(part, validate=True) for part in text.split(",")]
    except (binascii.Error, ValueError):
        return []
    return [word for word in words if 0 < len(word) <= LONGEST_WORD]
