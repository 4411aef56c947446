"""The processes of `serve --workers`, seen from outside."""

import http.client
import json
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path

from tests.service import ServiceProcess

TWO = ("--workers", "2", "--log", "problems")
"""The options of a service with two workers."""


def workers_of(service: ServiceProcess) -> set[int]:
    """Return the processes that serve, by what they were started with."""
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
    return {int(child) for child in children if b"guard.cli.worker" in _read(Path(f"/proc/{child}/cmdline"))}


def worker_at(service: ServiceProcess, connection: socket.socket) -> int:
    """Return the worker that has the other end of a connection, once it was taken."""
    while True:  # the system's list is not of one moment: while others come and go, one may be missing
        inodes = _inodes_to(connection.getsockname()[1])
        for worker in workers_of(service):
            if inodes & _sockets_of(worker):
                return worker


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for what must come."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Say whether a process is no more."""
    return _read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()[:1] in ([], [b"Z"])


def assert_readable(service: ServiceProcess, committed: Mapping[str, int]) -> None:
    """Every outcome that was acknowledged is the record."""
    assert committed
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    with closing(connection):
        for key, number in committed.items():
            connection.request("GET", f"/v1/effects/{key}")
            shown = json.loads(connection.getresponse().read())
            assert (shown["state"], shown["outcome"]["result"]) == ("succeeded", number)


def assert_nothing_is_left(service: ServiceProcess) -> None:
    """No lease is left over, and nobody doubts what became of one."""
    for state in ("executing", "in_doubt"):
        assert service.ask("GET", f"/v1/effects?state={state}").body["items"] == []


def _inodes_to(port: int) -> set[str]:
    """Return the sockets that are connected to a port of this machine."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{line[9]}]" for line in lines if line[2].endswith(f":{port:04X}")}


def _sockets_of(pid: int) -> set[str]:
    found = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(path.readlink()))
    return found


def _read(path: Path) -> bytes:
    """Read what a process says of itself; nothing where it is gone."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
