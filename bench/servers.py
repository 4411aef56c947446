"""What is measured, each as a process of its own: a durable PostgreSQL, the service, and the no-op."""

import asyncio
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import asyncpg
import sqlalchemy as sa

from bench.failure import BenchFailure, NotDurable
from bench.load import Side
from bench.processes import running
from guard.store.sql.address import FileAddress, parse
from guard.store.sql.schema import migrate
from guard.store.sql.sqlite import writer_engine
from tests.brokers import ValkeyServer
from tests.servers import PostgresServer
from tests.service import ServiceProcess

POSTGRES_MUST: Final = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
VALKEY_MUST: Final = {"appendonly": "yes", "appendfsync": "always"}
_SQLITE_MUST: Final = {"journal_mode": "wal", "synchronous": "2"}


@contextmanager
def postgres() -> Iterator[str]:
    """Start a PostgreSQL that loses nothing, with the schema in it; give its address."""
    server = PostgresServer(is_durable=True)
    try:
        _started("PostgreSQL", server.start)
        asyncio.run(migrate(server.url()))
        yield server.url()
    finally:
        server.remove()


@contextmanager
def sqlite() -> Iterator[str]:
    """Make a database file with the schema in it, in a folder of its own; give its address."""
    with tempfile.TemporaryDirectory(prefix="twiceshy-bench-") as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        asyncio.run(migrate(url))
        yield url


@contextmanager
def valkey() -> Iterator[int]:
    """Start a Valkey that syncs every write; give its port."""
    server = ValkeyServer()
    try:
        _started("Valkey", server.start)
        yield server.port
    finally:
        server.remove()


@contextmanager
def service(database_url: str, options: Sequence[str] = ()) -> Iterator[Side]:
    """Start the service on a database that loses nothing. Raises NotDurable."""
    durability(database_url)
    process = ServiceProcess(database_url, errors=subprocess.DEVNULL, options=options)
    try:
        _started("the service", process.start)
        yield Side(port=process.port, begin="/v1/effects", commit="/v1/effects/{key}/commit")
    finally:
        process.stop()


@contextmanager
def noop() -> Iterator[Side]:
    """Start the no-op."""
    with running("the no-op", [sys.executable, "-m", "bench.noop"]) as process:
        yield Side(port=int(process.read().rpartition(b":")[2]), begin="/noop", commit="/noop")


def _started(name: str, start: Callable[[], object]) -> None:
    try:
        start()
    except RuntimeError as error:
        raise BenchFailure(f"{name} could not be started: {error}") from error


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that nobody has now, no two the same."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def durability(database_url: str) -> str:
    """Read back what a database says of its own durability. Raises NotDurable.

    SQLite holds `synchronous` per connection; it is read on one that the service's own code opened to write.
    """
    address = parse(database_url)
    if isinstance(address, FileAddress):
        return durable(f"SQLite {sqlite3.sqlite_version}", _sqlite_settings(address), _SQLITE_MUST)
    version, found = asyncio.run(_postgres_settings(database_url))
    return durable(f"PostgreSQL {version}", found, POSTGRES_MUST)


def durable(name: str, found: Mapping[str, str], must: Mapping[str, str]) -> str:
    """Say what a side said of its own durability. Raises NotDurable where that is not what it must."""
    said = f"{name}: " + ", ".join(f"{setting} {value}" for setting, value in found.items())
    if any(found.get(setting) != value for setting, value in must.items()):
        raise NotDurable(f"{said}. That may lose what it acknowledged, so its figures would mean nothing.")
    return said


def _sqlite_settings(address: FileAddress) -> dict[str, str]:
    engine = writer_engine(address, "rw")
    try:
        with engine.connect() as connection:
            return {name: str(connection.execute(sa.text(f"PRAGMA {name}")).scalar_one()) for name in _SQLITE_MUST}
    finally:
        engine.dispose()


async def _postgres_settings(database_url: str) -> tuple[str, dict[str, str]]:
    """Return the server's version and its settings."""
    connection = await asyncpg.connect(database_url)
    try:
        version = str(await connection.fetchval("SHOW server_version")).split()[0]
        return version, {name: str(await connection.fetchval(f"SHOW {name}")) for name in POSTGRES_MUST}
    finally:
        await connection.close()
