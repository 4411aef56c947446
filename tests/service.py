"""The guard as a process, and the plainest of HTTP clients to talk to it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import msgspec

_SERVES = re.compile(rb"Twiceshy serves http://127\.0\.0\.1:(\d+) ")


class Reply(msgspec.Struct, frozen=True):
    """What the service answered."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def code(self) -> str:
        """The code of a problem."""
        return str(self.body["type"]).removeprefix("/problems/")


class ServiceProcess:
    """`twiceshy serve` on a free port, ended by the pid that was started."""

    def __init__(
        self,
        database_url: str,
        port: int = 0,
        errors: int | None = None,
        options: Sequence[str] = (),
        **environment: str,
    ) -> None:
        self._database_url = database_url
        self._options = options
        self._environment = environment
        self._errors = errors
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process that was started."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it and wait until it says that it serves; a restart takes the port that it had."""
        command = [sys.executable, "-m", "twiceshy", "serve", "--port", str(self.port)]
        command += ["--database", self._database_url, *self._options]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TWICESHY_")}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, env=environment | self._environment
        )
        assert self._process.stdout is not None
        said = _SERVES.match(self._process.stdout.readline())
        if said is None:
            raise RuntimeError(f"the service did not start; it exited with {self.kill()}")
        self.port = int(said[1])
        return self

    def stop(self) -> int:
        """Ask it to stop; return its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Kill it."""
        return self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(how)
        try:
            return process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()
            process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """Send one request; `body` is JSON, or bytes as they are. A header's `_` stands for `-`."""
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {"Content-Type": "application/json"} if body is not None else {}
        return self.raw(method, path, sent, named | {key.replace("_", "-"): value for key, value in headers.items()})

    def raw(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send one request as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        try:
            connection.request(method, path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            text = answer.read()
            is_json = answer.headers.get_content_type().endswith("json")
            return Reply(
                answer.status,
                {key.lower(): value for key, value in answer.getheaders()},
                json.loads(text) if is_json else text.decode(),
            )
        finally:
            connection.close()

    def begin(self, run: str | None, tool: str = "pay", arguments: object = None, **fields: object) -> Reply:
        """Begin, with a new attempt unless one is given."""
        body: dict[str, object] = {"tool": tool, "arguments": {"to": "bob"} if arguments is None else arguments}
        scope = {} if run is None else {"run": run}
        return self.ask("POST", "/v1/effects", body | scope | {"attempt": str(uuid4())} | fields)

    def report(self, verb: str, grant: Reply, **fields: object) -> Reply:
        """Commit, fail or renew under a grant."""
        held = {"attempt": grant.body["attempt"], "fence": grant.body["fence"]}
        return self.ask("POST", f"/v1/effects/{grant.body['key']}/{verb}", held | fields)
