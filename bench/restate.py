"""Restate: its server from npm and its service in Python, each a process, on free ports of the loopback."""

import contextlib
import http.client
import json
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench.failure import BenchFailure
from bench.peers.install import Say, restate_python, restate_server
from bench.processes import Running, running
from bench.servers import durable, free_ports

CALL_PATH: Final = "/Bench/call"
_START_SECONDS: Final = 60.0
_MUST: Final = {"bifrost.default-provider": "replicated", "log-server.rocksdb-disable-wal-fsync": "false"}
_CONFIG: Final = """
node-name = "bench"
base-dir = {folder}
bind-ip = "127.0.0.1"
bind-port = {node}
listen-mode = "tcp"
disable-telemetry = true
log-filter = "error"

[ingress]
bind-port = {ingress}

[admin]
bind-port = {admin}
"""


class Restate(msgspec.Struct, frozen=True, kw_only=True):
    """A running Restate: the port of its ingress, and what it says of its durability."""

    port: int
    facts: dict[str, str]


@contextmanager
def restate(say: Say) -> Iterator[Restate]:
    """Start Restate's server, with defaults but for addresses and telemetry, and its service; make them known."""
    program, python = restate_server(say), restate_python(say)
    ingress, admin, node, service = free_ports(4)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twiceshy-restate-")))
        config = folder / "restate.toml"
        data = json.dumps(str(folder / "data"))
        config.write_text(_CONFIG.format(folder=data, node=node, ingress=ingress, admin=admin), encoding="utf-8")
        facts = _durability([str(program), "--config-file", str(config), "--dump-config"])
        command = [str(program), "--no-logo", "--config-file", str(config)]
        server = stack.enter_context(running("Restate's server", command, folder=folder))
        worker = [str(python), "-m", "bench.peers.restate_service", str(service)]
        python_side = stack.enter_context(running("Restate's service in Python", worker))
        _wait_until(server, admin, "GET", "/health")
        _wait_until(python_side, service, "GET", "/health")
        deployment = json.dumps({"uri": f"http://127.0.0.1:{service}"})
        _wait_until(server, admin, "POST", "/deployments", deployment)
        _wait_until(server, ingress, "POST", CALL_PATH, "0")
        yield Restate(port=ingress, facts=facts)


def _durability(command: Sequence[str]) -> dict[str, str]:
    """Read back from the server's own word whether it syncs its logs. Raises NotDurable."""
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_START_SECONDS)
    config = tomllib.loads(dumped.stdout)
    found = {name: str(_setting(config, name)).lower() for name in _MUST}
    durable("Restate", found, _MUST)
    return found


def _setting(config: object, name: str) -> object:
    for part in name.split("."):
        config = config.get(part) if isinstance(config, dict) else None
    return config


def _wait_until(process: Running, port: int, method: str, path: str, body: str | None = None) -> None:
    """Ask again until the answer is a success; the process must live. Raises BenchFailure."""
    deadline = time.monotonic() + _START_SECONDS
    said = "nothing"
    while time.monotonic() < deadline:
        if process.has_ended:
            raise process.failure("has ended")
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, said = _ask(port, method, path, body)
            if 200 <= status < 300:
                return
        time.sleep(0.05)
    raise BenchFailure(f"Restate did not take {method} {path} within {_START_SECONDS:.0f} s; it answered: {said}")


def _ask(port: int, method: str, path: str, body: str | None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, f"{answer.status} {answer.read().decode(errors='replace')[:500]}"
    finally:
        connection.close()
