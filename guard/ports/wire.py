"""Words between the replicas of one database: who waits for what, and what has ended. Nothing depends on them."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

LONGEST_WORD = 64
"""Bytes of a word."""


class Wire(Protocol):
    """Carries short words to all replicas, the sender too, in the order in which they were sent by each.

    It is as good as it can be and no better: a word may be lost or come twice, and a foreign one may come. Whoever
    listens must be right without it.
    """

    def tell(self, word: bytes) -> None:
        """Send a word soon, together with others. It never waits and never raises: what cannot be sent is lost."""

    def listening(self, heard: Callable[[bytes | None], None]) -> AbstractAsyncContextManager[None]:
        """Call `heard` in this loop with each word; with None when words may have been missed."""

    async def close(self) -> None:
        """Send what waits, if that is quick, and give back all connections."""
