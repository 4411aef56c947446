"""Reads of entries: while one is in flight, further names gather for the next."""

import asyncio
from typing import Final

from guard.accelerator.entries import MOST_BYTES
from guard.accelerator.link import Link

_MOST: Final = 128
"""Names of one read."""


class Missing:
    """Why there is no entry."""


ABSENT: Final = Missing()
AWAY: Final = Missing()
WRONG_TYPE: Final = Missing()

Found = bytes | Missing


class Reads:
    """Coalesces reads by name."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._wanted: dict[bytes, asyncio.Future[Found]] = {}
        self._in_flight: asyncio.Task[None] | None = None

    async def get(self, name: bytes) -> Found:
        """Return what Redis has under a name, of something too large only so much that this can be seen."""
        if not self._link.is_up:
            return AWAY
        future = self._wanted.get(name)
        if future is None:
            loop = asyncio.get_running_loop()
            future = self._wanted[name] = loop.create_future()
            if self._in_flight is None:
                self._in_flight = loop.create_task(self._run())
        return await asyncio.shield(future)

    async def _run(self) -> None:
        while self._wanted:
            names = list(self._wanted)[:_MOST]
            futures = [self._wanted.pop(name) for name in names]
            answers = await self._link.ask([("GETRANGE", name, 0, MOST_BYTES) for name in names])
            for number, future in enumerate(futures):
                future.set_result(AWAY if answers is None else _found(answers[number]))
        self._in_flight = None


def _found(answer: object) -> Found:
    if not isinstance(answer, bytes):
        return WRONG_TYPE
    return answer or ABSENT
