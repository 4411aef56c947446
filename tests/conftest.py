"""Real databases for every test: a PostgreSQL server for the session, a fresh migrated database for each test."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from guard.ports.store import Store
from guard.store.sql.engine import open_store
from guard.store.sql.schema import migrate
from tests.servers import PostgresServer

_TEMPLATE = "twiceshy_template"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def spool_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let no guard of a test leave a spool in the folder where the tests are run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWICESHY_SPOOL", str(tmp_path_factory.mktemp("spool") / "twiceshy.spool"))
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running PostgreSQL without durability, which only a power cut could tell."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A running, durable PostgreSQL that the test may kill."""
    server = PostgresServer(is_durable=True)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> str:
    """Which of the two databases the test runs on."""
    return str(request.param)


@pytest.fixture
def empty_database_url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without a schema; on SQLite the file is missing."""
    if backend == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    yield from fresh_database(request.getfixturevalue("postgres_server"), "template0")


@pytest.fixture
def database_url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a fresh database with the schema."""
    if backend == "sqlite":
        yield f"sqlite:///{shutil.copy(request.getfixturevalue('sqlite_template'), tmp_path / 'guard.db')}"
        return
    yield from fresh_database(request.getfixturevalue("postgres_server"), request.getfixturevalue("postgres_template"))


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    """A store over a fresh database."""
    opened = await open_store(database_url)
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    path = tmp_path_factory.mktemp("template") / "template.db"
    asyncio.run(migrate(f"sqlite:///{path}"))
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    """The name of a migrated database to copy."""
    asyncio.run(_execute(postgres_server, f"CREATE DATABASE {_TEMPLATE}"))
    asyncio.run(migrate(postgres_server.url(_TEMPLATE)))
    return _TEMPLATE


def fresh_database(server: PostgresServer, template: str) -> Iterator[str]:
    """Make a database from a template, and remove it in the end."""
    name = f"test_{uuid4().hex}"
    asyncio.run(_execute(server, f"CREATE DATABASE {name} TEMPLATE {template}"))
    yield server.url(name)
    asyncio.run(_execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


async def _execute(server: PostgresServer, statement: str) -> None:
    connection = await asyncpg.connect(server.url())
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
