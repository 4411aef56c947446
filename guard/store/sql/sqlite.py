"""SQLite: one writer thread that owns one connection, and a few readers on their own.

Every commit reaches the disk before it is answered.

SQLite's locks belong to the process and are not inherited, yet its library in a forked child believes that it holds
them. So all connections are closed before the process is forked, and opened again when they are next needed.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool, QueuePool

from guard.core.effects import Instant
from guard.ports.steps import Step, StepResult
from guard.store.sql.address import FileAddress
from guard.store.sql.apply_sqlite import apply_steps
from guard.store.sql.begin_sqlite import begin_immediate, driver_of
from guard.store.sql.database import ResultT
from guard.store.sql.file import File
from guard.store.sql.workers import Workers

_READERS: Final = 4
_WRITER_PRAGMAS: Final = (
    "PRAGMA busy_timeout = 2000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA busy_timeout = 0",  # `begin_immediate` waits
)
_READER_PRAGMAS: Final = ("PRAGMA busy_timeout = 2000", "PRAGMA query_only = ON")


class SqliteDatabase:
    """A SQLite database file."""

    def __init__(self, address: FileAddress) -> None:
        """Open nothing yet: each connection is opened in the thread that uses it first."""
        self._file = File(address)
        self._writer_engine = writer_engine(address, "rw")
        self._reader_engine = _reader_engine(address)
        self._writer_thread = Workers(1, "twiceshy-writer", before_fork=self._close_writer)
        self._reader_threads = Workers(_READERS, "twiceshy-reader", before_fork=self._reader_engine.dispose)
        self._writer: Connection | None = None
        self._is_closed = False

    @property
    def lanes(self) -> int:
        """How many batches may be in flight at once."""
        return 1

    async def apply(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        """Apply a batch in one transaction."""
        del lane
        return await self._writer_thread.do(lambda: self._apply(steps))

    async def read(self, work: Callable[[Connection], ResultT]) -> ResultT:
        """Do work that only reads, in one statement."""
        return await self.read_at_once(work)

    async def read_at_once(self, work: Callable[[Connection], ResultT]) -> ResultT:
        """Do work that only reads, in several statements that see one moment."""
        return await self._reader_threads.do(lambda: self._read(work))

    async def write(self, work: Callable[[Connection, Instant], ResultT]) -> ResultT:
        """Do work in one transaction, at the database's time."""
        return await self._writer_thread.do(lambda: self._write(work))

    async def close(self) -> None:
        """Give back all connections."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._reader_threads.close()
        await self._writer_thread.do(self._reader_engine.dispose)  # never while the process is forked
        await self._writer_thread.do(self._close_writer)
        await self._writer_thread.close()

    def _apply(self, steps: Sequence[Step]) -> list[StepResult]:
        with self._file.used():
            driver = driver_of(self._held())
            begin_immediate(driver)
            try:
                answers = apply_steps(driver, steps, read_clock())
                driver.execute("COMMIT")
            finally:
                if driver.in_transaction:
                    driver.execute("ROLLBACK")
            return answers

    def _write(self, work: Callable[[Connection, Instant], ResultT]) -> ResultT:
        with self._file.used():
            connection = self._held()
            with connection.begin():
                return work(connection, read_clock())

    def _read(self, work: Callable[[Connection], ResultT]) -> ResultT:
        with self._file.used(), self._reader_engine.begin() as connection:
            return work(connection)

    def _held(self) -> Connection:
        if self._writer is None:
            self._writer = self._writer_engine.connect()
        return self._writer

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def read_clock() -> Instant:
    """Return the time; on SQLite the database's clock is that of the machine."""
    return Instant(time.time_ns() // 1_000)


def writer_engine(address: FileAddress, mode: str) -> Engine:
    """Return an engine whose connections write: opened read-write (`rw`), or made as well (`rwc`)."""

    def connect() -> sqlite3.Connection:
        return _opened(address, mode, _WRITER_PRAGMAS)

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: begin_immediate(driver_of(connection)))
    return engine


def _reader_engine(address: FileAddress) -> Engine:
    def connect() -> sqlite3.Connection:
        return _opened(address, "rw", _READER_PRAGMAS)

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=_READERS)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def _opened(address: FileAddress, mode: str, pragmas: Sequence[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(address.uri(mode), uri=True, isolation_level=None, check_same_thread=False)
    try:
        for pragma in pragmas:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection
