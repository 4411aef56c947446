"""Prepare a database before the service stands on it: what is wrong is said in one line, and nothing is served."""

import asyncio
import time
from typing import Final

from guard.ports.description import Description
from guard.ports.store import StatementFailed, StoreUnavailable
from guard.store.sql import schema
from guard.store.sql.address import FileAddress, parse
from guard.store.sql.engine import open_store
from guard.store.sql.opening import refusal_of
from guard.store.sql.refusals import FileLocked, SchemaOutdated

LOCKED_SECONDS: Final = 5.0
"""How long a file that another program holds is tried again."""
_PAUSE_SECONDS: Final = 0.1


async def prepare(database: str) -> Description:
    """Bring a SQLite file up to date, and open the database once; PostgreSQL is brought up to date by `migrate`.

    Return what the database says of itself. Raises DatabaseRefused: whatever is wrong, with what to do.
    """
    until = time.monotonic() + LOCKED_SECONDS
    while True:
        try:
            return await _prepare(database)
        except FileLocked:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)


async def migrate(database: str) -> str:
    """Bring the database's schema to this code's version; return the version. Raises DatabaseRefused."""
    address = parse(database)
    try:
        return await schema.migrate(database)
    except (StoreUnavailable, StatementFailed) as error:
        raise refusal_of(error, address) from error


async def _prepare(database: str) -> Description:
    try:
        return await _open_once(database)
    except SchemaOutdated:
        if not isinstance(parse(database), FileAddress):
            raise
        await migrate(database)
        return await _open_once(database)


async def _open_once(database: str) -> Description:
    address = parse(database)
    try:
        store = await open_store(database)
        try:
            return await store.describe()
        finally:
            await store.close()
    except (StoreUnavailable, StatementFailed) as error:
        raise refusal_of(error, address) from error
