"""Close connections that stand still: whose request has begun and does not end, or whose answer nobody reads.

They cost others nothing but memory and a file; so nobody is in a hurry, and no request pays for being watched: now and
then somebody looks at all connections, and closes what has not moved for some looks.
"""

import asyncio
from collections.abc import Collection
from typing import Final, Protocol

from guard.logs import logger

LOOK_SECONDS: Final = 15.0
"""How often all connections are looked at."""
MOST_LOOKS: Final = 4
"""How many looks in a row may find a connection where it was: a request has 45 seconds at least to come."""
_log = logger("guard.serve")


class Watched(Protocol):
    """A connection; what is unfinished on it is None, or something that is the same as long as nothing moves."""

    @property
    def unfinished(self) -> tuple[object, int] | None:
        """Say where it stands."""

    def cut(self) -> None:
        """Close it at once."""


class Stalled:
    """Looks at the connections of one process."""

    def __init__(self, connections: Collection[Watched]) -> None:
        self._connections = connections
        self._seen: dict[Watched, tuple[tuple[object, int], int]] = {}

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.run_once()

    def run_once(self) -> int:
        """Look once; return how many connections were closed."""
        seen: dict[Watched, tuple[tuple[object, int], int]] = {}
        cut: list[Watched] = []
        for connection in self._connections:
            unfinished = connection.unfinished
            if unfinished is None:
                continue
            before, looks = self._seen.get(connection, (None, 0))
            looks = looks + 1 if before == unfinished else 1
            if looks > MOST_LOOKS:
                cut.append(connection)
            else:
                seen[connection] = unfinished, looks
        self._seen = seen
        for connection in cut:
            connection.cut()
        if cut:
            _log.warning("connections_stalled", closed=len(cut))
        return len(cut)
