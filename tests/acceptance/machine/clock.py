"""The database's clock for one example: time passes for an effect when all of its instants move into the past.

The service judges stored instants by the database's clock; moving the instants is as good as waiting. The version
of the row moves too, so that whoever has read it before, the sweep above all, looks again. What may be tried again
already still may where instants move into the future, to make up for a slow moment.
"""

import asyncio
import sqlite3
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

import asyncpg

_INSTANTS: Final = {
    "effects": (
        "began_at",
        "granted_at",
        "lease_expires_at",
        "reported_at",
        "epoch_since",
        "ended_at",
    ),
    "attempts": ("granted_at", "deadline", "reported_at"),
    "evidence": ("at",),
}


class Clock(Protocol):
    """Lets time pass for some effects."""

    def move(self, keys: Iterable[str], passed: timedelta) -> None:
        """Move every instant of the effects so far into the past."""


class SqliteClock:
    """Time of effects in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None)

    def move(self, keys: Iterable[str], passed: timedelta) -> None:
        """Move every instant of the effects so far into the past."""
        self._connection.execute("BEGIN IMMEDIATE")
        for key in keys:
            for statement in _statements("?1", "?2"):
                self._connection.execute(statement, (bytes.fromhex(key), _microseconds(passed)))
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


class PostgresClock:
    """Time of effects in PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._connection = self._runner.run(_connect(url))

    def move(self, keys: Iterable[str], passed: timedelta) -> None:
        """Move every instant of the effects so far into the past."""
        for key in keys:
            self._runner.run(self._move(bytes.fromhex(key), _microseconds(passed)))

    async def _move(self, key: bytes, microseconds: int) -> None:
        async with self._connection.transaction():
            for statement in _statements("$1::bytea", "$2::bigint"):
                await self._connection.execute(statement, key, microseconds)

    def close(self) -> None:
        """Let go of the server."""
        self._runner.run(self._connection.close())
        self._runner.close()


async def _connect(url: str) -> "asyncpg.Connection":
    return await asyncpg.connect(url)


def _microseconds(passed: timedelta) -> int:
    return passed // timedelta(microseconds=1)


def _statements(key: str, moved: str) -> list[str]:
    """Return one statement a table, with its two parameters as the database writes them."""
    statements = []
    for table, instants in _INSTANTS.items():
        changes = [f"{instant} = {instant} - {moved}" for instant in instants]
        if table == "effects":
            now = time.time_ns() // 1000
            is_over = f"retry_at <= {now} AND retry_at - {moved} > {now}"
            changes.append(f"retry_at = CASE WHEN {is_over} THEN {now} ELSE retry_at - {moved} END")
            changes.append("version = version + 1")
        statements.append(f"UPDATE {table} SET {', '.join(changes)} WHERE key = {key}")
    return statements
