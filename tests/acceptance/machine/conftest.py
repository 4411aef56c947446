"""Worlds for the machine: running services on a database, and the hand on the database's clock."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import settings

from tests.acceptance.machine.clock import Clock, PostgresClock, SqliteClock
from tests.acceptance.machine.example import World
from tests.service import ServiceProcess

settings.register_profile("search", max_examples=500, stateful_step_count=60, deadline=None)

OpenWorld = Callable[[int], World]


@pytest.fixture
def clock(database_url: str) -> Iterator[Clock]:
    """The clock of the test's database."""
    with closing(_clock(database_url)) as opened:
        yield opened


@pytest.fixture
def open_world(database_url: str, clock: Clock) -> Iterator[OpenWorld]:
    """Open a world of so many services on the test's database."""
    with ExitStack() as opened:

        def open_(services: int) -> World:
            processes = [opened.enter_context(ServiceProcess(database_url)) for _ in range(services)]
            return World(asks=[process.ask for process in processes], clock=clock)

        yield open_


@pytest.fixture(scope="module")
def honest_url(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a database on SQLite."""
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path_factory.mktemp('honest') / 'guard.db')}"


@pytest.fixture(scope="module")
def honest_service(honest_url: str) -> Iterator[ServiceProcess]:
    """A service that tells the truth."""
    with ServiceProcess(honest_url) as process:
        yield process


@pytest.fixture(scope="module")
def honest_clock(honest_url: str) -> Iterator[Clock]:
    """The clock of its database."""
    with closing(_clock(honest_url)) as opened:
        yield opened


def _clock(url: str) -> SqliteClock | PostgresClock:
    is_file = url.startswith("sqlite:///")
    return SqliteClock(Path(url.removeprefix("sqlite:///"))) if is_file else PostgresClock(url)
