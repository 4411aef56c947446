"""One service process on each database for the whole session; every test has names of its own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from guard.store.sql.schema import migrate
from tests.integration.inbound import INBOUND_SECRETS
from tests.servers import PostgresServer
from tests.service import ServiceProcess


@pytest.fixture(scope="session")
def sqlite_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    path: Path = tmp_path_factory.mktemp("service") / "guard.db"
    with ServiceProcess(f"sqlite:///{path}", TWICESHY_INBOUND_SECRETS=INBOUND_SECRETS) as process:
        yield process


@pytest.fixture(scope="session")
def postgresql_service(postgres_server: PostgresServer) -> Iterator[ServiceProcess]:
    url = postgres_server.url()
    asyncio.run(migrate(url))
    with ServiceProcess(url, TWICESHY_INBOUND_SECRETS=INBOUND_SECRETS) as process:
        yield process


@pytest.fixture
def service(backend: str, request: pytest.FixtureRequest) -> ServiceProcess:
    """A running service on the database of the test."""
    process: ServiceProcess = request.getfixturevalue(f"{backend}_service")
    return process


@pytest.fixture
def run() -> str:
    """A run that no other test uses."""
    return f"run-{uuid4().hex[:12]}"
