"""Turns: who wants the same thing queues in the process, before a connection is taken.

Those who waited in the database would each keep a connection from everybody else. A turn is remembered only while
somebody has it or wants it.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from guard.ports.store import StoreUnavailable


class _Turn:
    """The queue of one thing, and how many are in it."""

    __slots__ = ("lock", "wanted")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0


class Turns:
    """One turn at a time for each name, and so many of all names; waiting takes no longer than `seconds`."""

    def __init__(self, at_once: int, seconds: float) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._seconds = seconds
        self._turns: dict[Hashable, _Turn] = {}

    def __len__(self) -> int:
        return len(self._turns)

    @asynccontextmanager
    async def of(self, name: Hashable, words: str) -> AsyncIterator[None]:
        """Have the turn of a name. Raises StoreUnavailable, in these words, where too many want it."""
        turn = self._turns.setdefault(name, _Turn())
        turn.wanted += 1
        try:
            await self._wait(turn, words)
            try:
                yield
            finally:
                self._places.release()
                turn.lock.release()
        finally:
            turn.wanted -= 1
            if turn.wanted == 0:
                del self._turns[name]

    async def _wait(self, turn: _Turn, words: str) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await turn.lock.acquire()
                try:
                    await self._places.acquire()
                except BaseException:
                    turn.lock.release()
                    raise
        except TimeoutError as error:
            raise StoreUnavailable(
                f"Too many requests wait for {words}: the turn of this one did not come within {self._seconds:g} s, "
                "and nothing was done. Ask again."
            ) from error
