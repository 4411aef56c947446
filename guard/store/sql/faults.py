"""What a driver's error means to the service: not reached, refused, or to be tried again at once."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import asyncpg
from sqlalchemy import exc
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from guard.ports.store import StatementFailed, StoreUnavailable

ResultT = TypeVar("ResultT")

_UNREACHED_STATES: Final = ("08", "25006", "28", "3D", "53", "55P03", "57", "58")
"""Connection, read-only standby, login, no database, resources, lock time-out, intervention and time-out, system."""
_CONTENDED_STATES: Final = ("40",)
_UNREACHED_FILES: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    }
)
_DRIVERS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    sqlite3.Error,
    exc.SQLAlchemyError,
    OSError,
    EOFError,
    TimeoutError,
    UnicodeError,
    OverflowError,
)


class Contended(StoreUnavailable):
    """Another transaction stood in the way; nothing happened, and the same batch may go again at once."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn a driver's error into one of the port's, chained."""
    try:
        yield
    except _DRIVERS as error:
        raise _meaning(error) from error


async def patiently(work: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Do the work; where it is contended, do it again: up to five times more within about a second."""
    try:
        return await work()
    except Contended:
        again = AsyncRetrying(
            retry=retry_if_exception_type(Contended),
            stop=stop_after_attempt(5),
            wait=wait_random_exponential(multiplier=0.01, max=0.5),
            reraise=True,
        )
        return await again(work)


def _meaning(error: BaseException) -> StoreUnavailable | StatementFailed:
    cause = cause_of(error)
    said = str(cause) or type(cause).__name__
    if isinstance(cause, asyncpg.PostgresError):
        return _meaning_of_state(cause.sqlstate or "", said)
    if isinstance(cause, sqlite3.Error):
        return _meaning_of_code(getattr(cause, "sqlite_errorcode", None), said)
    if isinstance(cause, (UnicodeError, OverflowError)):
        return StatementFailed(f"The batch cannot be stored: {said}.")
    if isinstance(cause, exc.TimeoutError):
        return StoreUnavailable(
            "Too many requests wait for the database: no connection to it became free in time, and nothing was done. "
            "Ask again."
        )
    if isinstance(cause, exc.StatementError):
        return StatementFailed(f"The database refused the batch: {said}.")
    return StoreUnavailable(f"The database could not be reached: {said}.")


def _meaning_of_code(code: int | None, said: str) -> StoreUnavailable | StatementFailed:
    if code is not None and code & 0xFF in _UNREACHED_FILES:
        return StoreUnavailable(f"The database file could not be used: {said}.")
    return StatementFailed(f"The database refused the batch: {said}.")


def _meaning_of_state(state: str, said: str) -> StoreUnavailable | StatementFailed:
    if state.startswith(_CONTENDED_STATES):
        return Contended(f"The database undid the batch, others stood in its way: {said}.")
    if state.startswith(_UNREACHED_STATES):
        return StoreUnavailable(f"The database did not answer: {said}.")
    return StatementFailed(f"The database refused the batch: {said}.")


def cause_of(error: BaseException) -> BaseException:
    """Return what the driver itself raised, from under the port's error and SQLAlchemy's wrappers."""
    if isinstance(error, (StoreUnavailable, StatementFailed)) and error.__cause__ is not None:
        error = error.__cause__
    while isinstance(error, exc.DBAPIError) and error.orig is not None:
        error = error.orig
        if not isinstance(error, (asyncpg.PostgresError, sqlite3.Error)) and error.__cause__ is not None:
            error = error.__cause__
    return error
