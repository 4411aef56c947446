"""Why a database could not be opened, for people: what happened, to what, and what to do next."""

import sqlite3
from pathlib import Path
from typing import Final

import asyncpg

from guard.store.sql.address import Address, FileAddress, ServerAddress
from guard.store.sql.faults import cause_of
from guard.store.sql.holders import holders
from guard.store.sql.refusals import DatabaseRefused, FileLocked, FileRefused, ServerRefused

_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_UNWRITABLE: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})


def refusal_of(error: Exception, address: Address) -> DatabaseRefused:
    """Say what an error of a driver, or the port's in its place, means to whoever wants the database opened."""
    cause = cause_of(error)
    if isinstance(address, FileAddress):
        return _refusal_of_file(cause, address.path)
    return _refusal_of_server(cause, address)


def _refusal_of_file(cause: BaseException, path: Path) -> DatabaseRefused:
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in _LOCKED:
        return FileLocked(
            f"{path} is locked by another program{_named(holders(path))}. Close that program, or let it end its "
            "transaction, or name another file."
        )
    if code in _UNWRITABLE:
        return FileRefused(
            f"{path} cannot be opened for writing ({cause}). SQLite writes beside it too: grant the right to write "
            f"{path.absolute().parent} and all files {path.name}*, or name a file elsewhere."
        )
    if code == sqlite3.SQLITE_NOTADB:
        return FileRefused(f"{path} is not a database that can be used: {cause}. Name another file.")
    if code == sqlite3.SQLITE_CORRUPT:
        return FileRefused(f"{path} is damaged ({cause}). Restore it from a copy, or name another file.")
    if code == sqlite3.SQLITE_FULL:
        return FileRefused(f"{path} cannot grow: the disk is full. Make room, or name a file elsewhere.")
    return FileRefused(f"{path} cannot be used: {cause}. Correct that, or name another file.")


def _named(processes: list[int]) -> str:
    if not processes:
        return ""
    return f" (process {', '.join(map(str, processes))})"


def _refusal_of_server(cause: BaseException, address: ServerAddress) -> DatabaseRefused:
    state = getattr(cause, "sqlstate", None) or ""
    if state.startswith("28"):
        return ServerRefused(
            f"The server of {address.shown} refuses the login: {cause}. Correct user and password in the address."
        )
    if state == asyncpg.InvalidCatalogNameError.sqlstate:
        return ServerRefused(
            f"The server of {address.shown} is there, its database is not: {cause}. Make it with CREATE DATABASE, "
            "or correct the address."
        )
    if state == asyncpg.InsufficientPrivilegeError.sqlstate:
        return ServerRefused(f"The user of {address.shown} lacks a right: {cause}. Grant it.")
    if state:
        return ServerRefused(f"The server of {address.shown} does not serve us: {cause}. Correct that, and try again.")
    return ServerRefused(
        f"{address.shown} cannot be reached: {str(cause) or type(cause).__name__}. Check that the server runs, and "
        "host and port of the address."
    )
