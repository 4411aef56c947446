"""Agents, their world, and a service that a test may kill."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import fresh_database
from tests.service import ServiceProcess


class Agent:
    """An agent process; what it says comes line by line."""

    def __init__(
        self, url: str, sink: Path, *words: str, patience: float = 20, module: str = "agents", **more: str
    ) -> None:
        environment = os.environ | {"AGENT_URL": url, "AGENT_SINK": str(sink), "AGENT_PATIENCE": str(patience)}
        environment |= {"TWICESHY_SPOOL": str(sink.parent / "spool")} | more
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"tests.acceptance.{module}", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def hear(self) -> str:
        """Wait for the next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def hear_all(self) -> list[str]:
        """Wait for everything that it still says."""
        assert self.process.stdout is not None
        return self.process.stdout.read().split("\n")[:-1]

    def tell(self) -> None:
        """Say the word that it waits for."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def send(self, what: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(what)

    def end(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


StartAgent = Callable[..., Agent]


@pytest.fixture
def sink(tmp_path: Path) -> Path:
    """The world: one line an effect."""
    path = tmp_path / "world"
    path.touch()
    return path


@pytest.fixture
def service(database_url: str) -> Iterator[ServiceProcess]:
    """A service of the test's own."""
    with ServiceProcess(database_url) as process:
        yield process


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database that the tests of a module share."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("shared") / "guard.db"
        yield f"sqlite:///{shutil.copy(request.getfixturevalue('sqlite_template'), path)}"
        return
    yield from fresh_database(request.getfixturevalue("postgres_server"), request.getfixturevalue("postgres_template"))


@pytest.fixture(scope="module")
def shared_service(shared_url: str) -> Iterator[ServiceProcess]:
    """A service that the tests of a module share; every test has names of its own."""
    with ServiceProcess(shared_url) as process:
        yield process


@pytest.fixture
def start_agent(service: ServiceProcess, sink: Path) -> Iterator[StartAgent]:
    """Start agents of the service; whatever is left of them ends with the test."""
    agents: list[Agent] = []

    def start(*words: str) -> Agent:
        agents.append(Agent(service.url, sink, *words))
        return agents[-1]

    yield start
    for agent in agents:
        agent.end()
