"""`serve --workers`: several processes are one service, whichever of them dies, and end with what started them."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from guard.store.sql.schema import migrate
from tests.acceptance.calling import Callers, World
from tests.acceptance.workers import TWO, assert_readable, is_gone, wait_until, worker_at, workers_of
from tests.conftest import fresh_database
from tests.servers import PostgresServer
from tests.service import ServiceProcess


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """A database that the tests share."""
    yield from fresh_database(postgres_server, postgres_template)


@pytest.fixture(scope="module")
def service(url: str) -> Iterator[ServiceProcess]:
    """Two workers that the tests share."""
    with ServiceProcess(url, options=TWO, errors=subprocess.DEVNULL) as process:
        yield process


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Where effects show."""
    made = World(tmp_path / "world.db")
    yield made
    made.close()


def connected(service: ServiceProcess, number: int) -> dict[int, http.client.HTTPConnection]:
    """Open connections until as many workers have one; return one of each."""
    found: dict[int, http.client.HTTPConnection] = {}
    while len(found) < number:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        connection.request("GET", "/health/live")
        connection.getresponse().read()
        assert connection.sock is not None
        worker = worker_at(service, connection.sock)
        if found.setdefault(worker, connection) is not connection:
            connection.close()
    return found


def asked(connection: http.client.HTTPConnection, path: str, body: object) -> dict[str, object]:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer: dict[str, object] = json.loads(connection.getresponse().read())
    return answer


def test_what_one_worker_granted_another_one_commits(service: ServiceProcess) -> None:
    one, other = connected(service, 2).values()
    attempt = str(uuid4())
    begin = {"tool": "pay", "arguments": {"to": "bob"}, "run": "across", "attempt": attempt}
    granted = asked(one, "/v1/effects", begin)
    report = {"attempt": attempt, "fence": granted["fence"], "result": 7}
    assert asked(other, f"/v1/effects/{granted['key']}/commit", report)["state"] == "succeeded"
    assert asked(one, "/v1/effects", begin | {"attempt": str(uuid4())})["outcome"] == {"result": 7}
    one.close()
    other.close()


def test_connections_are_shared_out_among_the_workers(service: ServiceProcess) -> None:
    """Each is taken by one that has the fewest, as far as powers of two tell."""
    connections = []
    for _ in range(24):
        connections.append(http.client.HTTPConnection("127.0.0.1", service.port, timeout=30))
        connections[-1].request("GET", "/health/live")
        connections[-1].getresponse().read()
    taken_by = [worker_at(service, connection.sock) for connection in connections if connection.sock is not None]
    assert min(taken_by.count(worker) for worker in workers_of(service)) >= 4
    for connection in connections:
        connection.close()


def test_a_worker_that_is_killed_is_replaced_and_the_meters_and_all_that_was_acknowledged_are_kept(
    service: ServiceProcess, world: World
) -> None:
    with Callers([service.port], 4, world, forgives=True) as callers:
        for _ in range(2):
            callers.wait_for(30)
            victim = min(workers_of(service))
            os.kill(victim, signal.SIGKILL)
            wait_until(partial(is_replaced, service, victim))
        callers.wait_for(30)
    assert callers.failures == []
    assert world.twice() == []
    assert_readable(service, callers.committed)
    counted = {executed(service) for _ in range(6)}
    assert len(counted) == 1
    assert counted.pop() >= world.count()


def is_replaced(service: ServiceProcess, victim: int) -> bool:
    return len(workers_of(service) - {victim}) == 2


def executed(service: ServiceProcess) -> float:
    """Return how many grants the workers say that they gave, all together."""
    lines = service.ask("GET", "/metrics").body.splitlines()
    wanted = 'twiceshy_decisions_total{decision="execute",tool="(undeclared)"} '
    return next(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))


def test_workers_end_with_the_process_that_started_them(service: ServiceProcess) -> None:
    """The last of those that share the service, which is no more after it."""
    workers = workers_of(service)
    assert len(workers) == 2
    service.kill()
    wait_until(lambda: all(map(is_gone, workers)))
    with socket.create_server(("127.0.0.1", service.port)):
        pass  # nobody holds the port


def test_a_database_that_restarts_takes_nothing_back_even_while_a_worker_dies(
    own_postgres_server: PostgresServer, world: World
) -> None:
    url = own_postgres_server.url()
    asyncio.run(migrate(url))
    with ServiceProcess(url, options=TWO, errors=subprocess.DEVNULL) as service:
        with Callers([service.port], 4, world, forgives=True) as callers:
            callers.wait_for(50)
            own_postgres_server.kill()
            victim = min(workers_of(service))
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda: is_gone(victim))
            own_postgres_server.start()
            callers.wait_for(50)
            wait_until(lambda: len(workers_of(service)) == 2)
        assert callers.failures == []
        assert world.twice() == []
        assert_readable(service, callers.committed)


def test_the_keyboard_ends_all_of_them_in_order(url: str) -> None:
    """Ctrl-C goes to every process of a terminal's group at once."""
    command = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--database", url, *TWO]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"Twiceshy serves http://127.0.0.1:")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stdout.read() == b""
        said = process.stderr.read()
    assert said.endswith(b"Stopped.\n")
    assert b"Traceback" not in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--database", "sqlite:///never.db"), ("one writer", "--database")),
        (("--database", "postgresql://postgres@127.0.0.1:1/none", "--with-relay"), ("twiceshy relay",)),
        (("--database", "postgresql://postgres@127.0.0.1:1/none"), ("reached",)),
    ],
)
def test_what_several_workers_cannot_do_is_said(options: tuple[str, ...], words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--workers", "2", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode in (1, 2)
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr
