"""How a service ends: whoever speaks to it is answered, and hears that the answer is the last one."""

import http.client
import os
import signal
import socket
from pathlib import Path

from guard.cli.worker import Plan
from guard.cli.workers import Workers
from guard.settings import Settings
from tests.service import ServiceProcess


def fresh(service: ServiceProcess) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)


def kept(service: ServiceProcess) -> http.client.HTTPConnection:
    """Open a connection that is kept."""
    connection = fresh(service)
    assert asked(connection, "/health/ready") == (200, None)
    return connection


def asked(connection: http.client.HTTPConnection, path: str) -> tuple[int, str | None]:
    """Return the status of an answer, and what it says of the connection."""
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    return answer.status, answer.getheader("connection")


def until_last(connection: http.client.HTTPConnection) -> None:
    """Ask over a connection without a pause, until an answer says that it is the last one."""
    said = asked(connection, "/health/live")
    while said == (200, None):
        said = asked(connection, "/health/live")
    assert said == (200, "close")
    assert connection.sock is None


def test_a_service_that_lingers_says_that_it_is_not_ready_and_serves(tmp_path: Path) -> None:
    with ServiceProcess(f"sqlite:///{tmp_path}/a.db", options=("--linger-seconds", "300")) as service:
        silent = kept(service)
        os.kill(service.pid, signal.SIGTERM)
        until_last(kept(service))
        assert asked(fresh(service), "/health/ready") == (503, "close")
        assert asked(fresh(service), "/health/live") == (200, "close")
        assert service.begin("late").status == 201
        assert silent.sock.recv(1) == b""  # closed after a moment of quiet
        silent.close()
        os.kill(service.pid, signal.SIGINT)  # asked twice, it lingers no more


def test_a_client_that_writes_while_the_service_ends_is_answered(tmp_path: Path) -> None:
    with ServiceProcess(f"sqlite:///{tmp_path}/a.db") as service:
        connection = kept(service)
        os.kill(service.pid, signal.SIGTERM)
        until_last(connection)


def test_a_worker_that_cannot_start_ends_the_command_and_says_why() -> None:
    settings = Settings(database="postgresql://postgres@127.0.0.1:1/none")
    plan = Plan(settings=settings, allow="", log_level=30, linger_seconds=0)
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        workers = Workers(plan, listening, 2, lambda: said.append("serves"))
        workers.run()
    assert said == []
    assert workers.failure is not None
    assert "could not start" in workers.failure
    assert "cannot be reached" in workers.failure
