"""Callers that begin and commit without end, each over one kept connection, and say what went wrong."""

import http.client
import json
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from twiceshy import Guard

_PAUSE_SECONDS = 0.02
"""What leaves the machine room to start what is to be restarted."""


class World:
    """A table with a row for each time that anything was executed."""

    def __init__(self, path: Path) -> None:
        self._table = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._table.execute("CREATE TABLE executions (what TEXT NOT NULL)")
        self._lock = threading.Lock()

    def execute(self, what: str) -> None:
        """Do it, once more or for the first time."""
        with self._lock:
            self._table.execute("INSERT INTO executions VALUES (?)", (what,))

    def twice(self) -> list[str]:
        """Return what was done more than once."""
        found = self._table.execute("SELECT what FROM executions GROUP BY what HAVING count(*) > 1")
        return [what for (what,) in found]

    def count(self) -> int:
        """Return how much was done."""
        return int(self._table.execute("SELECT count(*) FROM executions").fetchone()[0])

    def close(self) -> None:
        """Give the file back."""
        self._table.close()


class Caller(threading.Thread):
    """Begins and commits over a kept connection, which it leaves only when an answer says so.

    Two have each run, so that for each call there is a rival; one of them executes it and the other waits for that.
    Where a port refuses a connection it goes on to the next one, as a balancer would. One that `forgives` asks again
    where a connection is lost or the store is away. What was acknowledged is in `committed`, by key.
    """

    def __init__(self, ports: Sequence[int], run: str, world: World, stop: threading.Event, *, forgives: bool) -> None:
        super().__init__()
        self._ports, self._run, self._world, self._forgives = ports, run, world, forgives
        self._to_stop = stop
        self._connection = http.client.HTTPConnection("127.0.0.1", ports[0], timeout=30)
        self.committed: dict[str, int] = {}
        self.failures: list[str] = []

    def run(self) -> None:
        """Call until that is to stop."""
        number = 0
        try:
            while not self._to_stop.is_set() and not self.failures:
                number += 1
                self._call(number)
                self._to_stop.wait(_PAUSE_SECONDS)
        except Exception as error:  # noqa: BLE001  whatever it is, the test must hear of it
            self.failures.append(repr(error))
        finally:
            self._connection.close()

    def _call(self, number: int) -> None:
        attempt = str(uuid4())
        begin = {"tool": "write", "arguments": {"number": number}, "run": self._run, "attempt": attempt}
        granted = self._ask("/v1/effects", begin | {"wait_seconds": 2})
        if granted is None or granted.get("decision") == "replay":
            return
        if granted.get("type") == "/problems/in-progress":  # the rival takes its time, or the worker is to stop
            if not self._to_stop.is_set():
                self._call(number)
            return
        if granted.get("decision") != "execute":
            self.failures.append(f"begin: {granted}")
            return
        key = str(granted["key"])
        self._world.execute(key)
        commit = {"attempt": attempt, "fence": granted["fence"], "result": number}
        settled = self._ask(f"/v1/effects/{key}/commit", commit)
        if settled is None:
            return
        if settled.get("state") != "succeeded":
            self.failures.append(f"commit: {settled}")
            return
        self.committed[key] = number

    def _ask(self, path: str, body: object) -> dict[str, object] | None:
        """Ask until there is an answer; None where that is to stop before, which only those see that forgive."""
        while not (self._forgives and self._to_stop.is_set()):
            try:
                self._connect()
                self._connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
                answer = self._connection.getresponse()
                said: dict[str, object] = json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                self._connection.close()
                if not self._forgives:
                    raise
                continue
            if answer.status != 503 or not self._forgives:
                return said
        return None

    def _connect(self) -> None:
        """Connect anew where an answer was the last of its connection."""
        while self._connection.sock is None:
            try:
                self._connection.connect()
            except ConnectionRefusedError:
                self._ports = [*self._ports[1:], self._ports[0]]
                self._connection = http.client.HTTPConnection("127.0.0.1", self._ports[0], timeout=30)
                self._to_stop.wait(0.01)


class Callers:
    """So many callers at once, and agents with the SDK beside them; leave it to stop them."""

    def __init__(
        self, ports: Sequence[int], count: int, world: World, *, agents: int = 0, forgives: bool = False
    ) -> None:
        self._to_stop = threading.Event()
        self._world = world
        name = uuid4().hex[:8]
        self._callers = [
            Caller(ports, f"{name}-{number // 2}", world, self._to_stop, forgives=forgives) for number in range(count)
        ]
        self._agents = [
            threading.Thread(target=self._act, args=(ports[number % len(ports)], f"{name}-sdk-{number}"))
            for number in range(agents)
        ]
        self._errors: list[str] = []
        self.acted = 0

    @property
    def failures(self) -> list[str]:
        """What went wrong."""
        return self._errors + [failure for caller in self._callers for failure in caller.failures]

    @property
    def committed(self) -> dict[str, int]:
        """All that was acknowledged."""
        return {key: value for caller in self._callers for key, value in list(caller.committed.items())}

    def wait_for(self, more: int) -> None:
        """Wait until so many more calls are acknowledged, or something has gone wrong."""
        wanted = len(self.committed) + more
        while len(self.committed) < wanted and not self.failures:
            self._to_stop.wait(0.01)

    def _act(self, port: int, run: str) -> None:
        guard = Guard(f"http://127.0.0.1:{port}")

        @guard.tool
        def note(number: int) -> None:
            self._world.execute(f"{run}:{number}")
            self.acted += 1

        number = 0
        try:
            with guard, guard.run(run):
                while not self._to_stop.is_set():
                    number += 1
                    note(number)
                    self._to_stop.wait(_PAUSE_SECONDS)
        except Exception as error:  # noqa: BLE001  whatever it is, the test must hear of it
            self._errors.append(repr(error))

    def __enter__(self) -> Self:
        for thread in (*self._callers, *self._agents):
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._to_stop.set()
        for thread in (*self._callers, *self._agents):
            thread.join()
