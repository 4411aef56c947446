"""The outbox as relays see it, over one database. How turns are taken is each database's own."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from guard.core.effects import Duration, Instant
from guard.logs import logger
from guard.ports.relay import Ask, Backlog, Heard, Reaped, Settlement, Turn, Verdict, Way
from guard.store.sql import breakers, leases, outbox_history
from guard.store.sql.backlogs import select_backlogs
from guard.store.sql.clock import now
from guard.store.sql.database import Database
from guard.store.sql.destinations import select_ways

_log = logger("guard.relay")


class Turns(Protocol):
    """How a database takes turns."""

    async def turn(self, lease: UUID, length: Duration, settlements: Sequence[Settlement], asks: Sequence[Ask]) -> Turn:
        """Settle what was sent, and claim what is due, in one transaction."""

    async def due(self) -> frozenset[int]:
        """Select the destinations that have messages in lanes, or one without a lane that is due."""

    async def start(self, lease: UUID, ids: Sequence[int], length: Duration) -> Mapping[int, Verdict]:
        """Begin to send messages that were claimed, in one transaction."""

    async def close(self) -> None:
        """Give back what is held for them."""


class Bell(Protocol):
    """How a database lets relays know that something was staged."""

    def ring(self) -> None:
        """Let them know soon; whoever calls waits for nothing, and nothing is raised."""

    def listening(self, heard: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Call `heard` whenever it rings."""

    async def close(self) -> None:
        """Stop what goes on for it."""


class SqlRelay:
    """The port's relay store over one database."""

    def __init__(self, database: Database, turns: Turns, bell: Bell) -> None:
        """Stand on a database, with its own ways to take turns and to be heard."""
        self._database = database
        self._turns = turns
        self._bell = bell
        self._unread: frozenset[str] = frozenset()

    async def turn(self, lease: UUID, length: Duration, settlements: Sequence[Settlement], asks: Sequence[Ask]) -> Turn:
        """Settle what was sent under a lease, and claim what is due under it, in one transaction."""
        return await self._turns.turn(lease, length, settlements, asks)

    async def due(self) -> frozenset[int]:
        """Return the destinations that have messages in lanes, or one without a lane that is due."""
        return await self._turns.due()

    async def start(self, lease: UUID, ids: Sequence[int], length: Duration) -> Mapping[int, Verdict]:
        """Begin to send messages that were claimed behind others; what is not told is no longer under the lease."""
        if not ids:
            return {}
        return await self._turns.start(lease, ids, length)

    async def renew(self, lease: UUID, ids: Sequence[int], length: Duration) -> frozenset[int]:
        """Move the end of the lease of these messages; return those that are still under it."""
        if not ids:
            return frozenset()
        return await self._database.write(lambda connection, at: leases.renew(connection, at, lease, ids, length))

    async def release(self, lease: UUID, besides: Sequence[int]) -> int:
        """Give back all that is under a lease besides these messages; return how many they were. No try is counted."""
        kept = frozenset(besides)
        return await self._database.write(lambda connection, at: leases.release(connection, at, lease, kept))

    async def reap(self, limit: int) -> Reaped:
        """Take back messages whose lease has run out: their relay is gone, or was too slow."""
        return await self._database.write(lambda connection, at: leases.reap(connection, at, limit))

    async def now(self) -> Instant:
        """Return the database's time."""
        return await self._database.read(now)

    async def ways(self) -> list[Way]:
        """Return all destinations that are not removed and that this version can read; tell of others once."""
        ways, unread = await self._database.read_at_once(select_ways)
        for name in unread:
            if name not in self._unread:
                _log.error("destination_unreadable", destination=name, reason="its settings are of a newer version")
        self._unread = frozenset(unread)
        return ways

    async def report(self, heard: Sequence[Heard]) -> None:
        """Move the breakers of destinations by how they did."""
        if heard:
            await self._database.write(lambda connection, at: breakers.report(connection, at, heard))

    async def backlogs(self) -> dict[int, Backlog]:
        """Count what waits, by destination; 0 stands for what has none."""
        return await self._database.read_at_once(select_backlogs)

    async def tidy(self, kept: Duration) -> int:
        """Drop history that is older than `kept`, and make room for what comes; return how much was dropped."""
        return await outbox_history.tidy(self._database, kept)

    async def ring(self) -> None:
        """Tell relays that something was staged, without any promise that they hear it."""
        self._bell.ring()

    def listening(self, heard: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Call `heard` whenever a staging is told; where telling fails, for a time or for ever, nothing is raised."""
        return self._bell.listening(heard)

    async def close(self) -> None:
        """Stop what goes on for relays."""
        await self._bell.close()
        await self._turns.close()
