"""Whoever writes to a SQLite file gets its turn beside others that write without a break."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from guard.ports.steps import Written
from guard.ports.store import Store
from guard.store.sql import begin_sqlite
from guard.store.sql.begin_sqlite import begin_immediate
from tests.contract.given import TENANT, insert, one

pytestmark = pytest.mark.parametrize("backend", ["sqlite"])

_COMMITS_IN_A_ROW = """
import sqlite3, sys, time
file, transactions, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
rival = sqlite3.connect(file, isolation_level=None, timeout=60)
for number in range(transactions):
    rival.execute("BEGIN IMMEDIATE")
    rival.execute(f"PRAGMA user_version = {number + 1}")
    if not number:
        print("held", flush=True)
    time.sleep(seconds)
    rival.execute("COMMIT")
"""


@asynccontextmanager
async def _commits_in_a_row(database_url: str, transactions: int, seconds: float) -> AsyncIterator[None]:
    """Let a process write without a break, each time as long as a slow disk takes; enter during the first."""
    rival = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _COMMITS_IN_A_ROW, _path(database_url), str(transactions), str(seconds),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert rival.stdout is not None
    assert await rival.stdout.readline() == b"held\n"
    try:
        yield
    finally:
        await rival.wait()


async def test_a_batch_and_a_transaction_wait_for_others_that_get_on(store: Store, database_url: str) -> None:
    """Three seconds of another's transactions, when two seconds of a single one are a locked file."""
    async with _commits_in_a_row(database_url, 10, 0.3):
        assert isinstance(await one(store, insert(1)), Written)
    async with _commits_in_a_row(database_url, 10, 0.3):
        assert [run.name for run in await store.runs.open(TENANT, ["beside"])] == ["beside"]


class _AlwaysBehind(sqlite3.Connection):
    """A connection that finds the file in use each time it asks, each time by another transaction."""

    tries = 0

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        if sql == "PRAGMA data_version":
            self.tries += 1
            return super().execute(f"SELECT {self.tries}")
        return super().execute(sql, *arguments)


def test_a_wait_ends_though_others_get_on(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin_sqlite, "_LONGEST_SECONDS", 0.2)
    with (
        closing(sqlite3.connect(_path(database_url), isolation_level=None)) as holder,
        closing(sqlite3.connect(_path(database_url), isolation_level=None, timeout=0, factory=_AlwaysBehind)) as behind,
    ):
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            begin_immediate(behind)
        assert behind.tries
        holder.execute("COMMIT")
        begin_immediate(behind)
        assert behind.in_transaction


def test_what_is_no_lock_is_not_waited_for(database_url: str) -> None:
    address = Path(_path(database_url)).as_uri() + "?mode=ro"
    with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
            begin_immediate(connection)


def _path(database_url: str) -> str:
    return database_url.removeprefix("sqlite:///")
