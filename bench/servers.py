"""What is measured, each as a process of its own: a durable PostgreSQL, the service, and the no-op."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import asyncpg
import sqlalchemy as sa

from bench.load import Side
from guard.store.sql.address import FileAddress, parse
from guard.store.sql.schema import migrate
from guard.store.sql.sqlite import writer_engine
from tests.servers import PostgresServer
from tests.service import ServiceProcess

_POSTGRES_MUST: Final = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
_SQLITE_MUST: Final = {"journal_mode": "wal", "synchronous": "2"}
_STOP_SECONDS: Final = 10


@contextmanager
def postgres() -> Iterator[str]:
    """Start a PostgreSQL that loses nothing, with the schema in it; give its address."""
    server = PostgresServer(is_durable=True)
    try:
        server.start()
        asyncio.run(migrate(server.url()))
        yield server.url()
    finally:
        server.remove()


@contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    """Make a database file with the schema in it; give its address."""
    url = f"sqlite:///{folder / 'bench.db'}"
    asyncio.run(migrate(url))
    yield url


@contextmanager
def service(database_url: str) -> Iterator[Side]:
    """Start the service on a database."""
    with ServiceProcess(database_url) as started:
        yield Side(port=started.port, begin="/v1/effects", commit="/v1/effects/{key}/commit")


@contextmanager
def noop() -> Iterator[Side]:
    """Start the no-op."""
    process = subprocess.Popen([sys.executable, "-m", "bench.noop"], stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline() if process.stdout is not None else ""
        if not address:
            raise RuntimeError(f"the no-op did not start; it exited with {process.wait()}")
        yield Side(port=int(address.rpartition(":")[2]), begin="/noop", commit="/noop")
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class NotDurable(Exception):
    """A database that may lose what it acknowledged: its figures mean nothing."""


def durability(database_url: str) -> str:
    """Read back what a database says of its own durability. Raises NotDurable.

    SQLite holds `synchronous` per connection; it is read on one that the service's own code opened to write.
    """
    address = parse(database_url)
    if isinstance(address, FileAddress):
        must, found = _SQLITE_MUST, _sqlite_settings(address)
    else:
        must, found = _POSTGRES_MUST, asyncio.run(_postgres_settings(database_url))
    said = ", ".join(f"{name} {value}" for name, value in found.items())
    if found != must:
        raise NotDurable(f"The database is not durable: {said}. Figures of it would mean nothing.")
    return said


def _sqlite_settings(address: FileAddress) -> dict[str, str]:
    engine = writer_engine(address, "rw")
    try:
        with engine.connect() as connection:
            return {name: str(connection.execute(sa.text(f"PRAGMA {name}")).scalar_one()) for name in _SQLITE_MUST}
    finally:
        engine.dispose()


async def _postgres_settings(database_url: str) -> dict[str, str]:
    connection = await asyncpg.connect(database_url)
    try:
        return {name: str(await connection.fetchval(f"SHOW {name}")) for name in _POSTGRES_MUST}
    finally:
        await connection.close()
