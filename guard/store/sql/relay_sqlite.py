"""Turns on SQLite: the same rules as `relay_turn_v1`, statement by statement, while nobody else writes."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import Connection

from guard.core.effects import Duration, Instant
from guard.ports.relay import Ask, Settlement, Turn, Verdict
from guard.store.sql.begin_sqlite import driver_of
from guard.store.sql.claims_sqlite import Claims
from guard.store.sql.database import Database
from guard.store.sql.due import due_statement
from guard.store.sql.leases import start
from guard.store.sql.marks import Marks
from guard.store.sql.relay_rows import Settled, settled_in_order
from guard.store.sql.sqlite import read_clock

_ARCHIVE: Final = """
    INSERT INTO outbox_history (settled_at, id, message, epoch, tenant, effect, run_id, run, destination_id,
      destination, lane, type, recipient, content_type, headers, body, staged_at, state, attempts, note, receipt)
    SELECT ?, id, message, epoch, tenant, effect, run_id, run, destination_id, destination, lane, type, recipient,
      content_type, headers, body, staged_at, ?, attempts + ?, ?, ?
    FROM outbox WHERE id = ? AND lease = ?"""
_DELETE: Final = "DELETE FROM outbox WHERE id = ? AND lease = ?"
_PUT_BACK: Final = """
    UPDATE outbox SET state = ?1, due_at = CASE WHEN ?1 = 1 THEN ?2 ELSE due_at END,
      in_lane = lane IS NOT NULL AND (?1 = 1 OR ?3), note = coalesce(?4, note), attempts = attempts + ?5, lease = NULL,
      lease_until = NULL, repeatable = NULL
    WHERE id = ?6 AND lease = ?7 RETURNING message, epoch"""
_TRIED: Final = """
    INSERT INTO outbox_tries (message, epoch, number, at, result, detail)
    SELECT ?1, ?2, coalesce(max(number), 0) + 1, ?3, ?4, ?5 FROM outbox_tries WHERE message = ?1 AND epoch = ?2"""

DUE: Final = due_statement("?")


class SqliteTurns:
    """The turns of one store's relays."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database
        self._marks = Marks()

    async def turn(self, lease: UUID, length: Duration, settlements: Sequence[Settlement], asks: Sequence[Ask]) -> Turn:
        """Settle what was sent, and claim what is due, in one transaction."""
        settled = settled_in_order(settlements)
        asks = sorted((ask for ask in asks if ask.slots > 0), key=lambda ask: ask.destination)

        def work(connection: Connection, at: Instant) -> Turn:
            driver = driver_of(connection)
            fenced = tuple(one.id for one in settled if not _settle(driver, at, lease.bytes, one))
            claims = Claims(driver, at, lease, length, self._marks)
            claims.take(asks)
            return Turn(claimed=tuple(claims.claimed), fenced=fenced)

        return await self._database.write(work)

    async def due(self) -> frozenset[int]:
        """Select the destinations that have messages in lanes, or one without a lane that is due."""

        def work(connection: Connection) -> frozenset[int]:
            rows = driver_of(connection).execute(DUE, (read_clock(),))
            return frozenset(row[0] for row in rows)

        return await self._database.read(work)

    async def start(self, lease: UUID, ids: Sequence[int], length: Duration) -> Mapping[int, Verdict]:
        """Begin to send messages that were claimed, in one transaction."""
        return await self._database.write(lambda connection, at: start(connection, at, lease, ids, length))

    async def close(self) -> None:
        """Hold nothing."""


def _settle(driver: sqlite3.Connection, at: Instant, lease: bytes, one: Settled) -> bool:
    """Settle a message; say whether it was under the lease."""
    if one.is_over:
        values = (at, one.state, one.counts, one.note, one.receipt, one.id, lease)
        if driver.execute(_ARCHIVE, values).rowcount != 1:
            return False
        driver.execute(_DELETE, (one.id, lease))
        return True
    tried = one.result is not None
    back = (one.state, at + one.delay, one.blocks, one.note, tried, one.id, lease)
    row = driver.execute(_PUT_BACK, back).fetchone()
    if row is not None and tried:
        driver.execute(_TRIED, (*row, at, one.result, one.note or ""))
    return row is not None
