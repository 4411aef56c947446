"""Processes that the bench starts, each ended by the pid that was started."""

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec

from bench.failure import BenchFailure
from bench.turns import Turn

ROOT: Final = Path(__file__).parent.parent
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 10.0
_LATE_SECONDS: Final = 60.0
_TAIL: Final = 2_000
_TURN: Final = msgspec.json.Decoder(Turn)


class Running:
    """A process that answers in lines."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._name = name
        self._process = process
        self._errors = errors

    def read(self, seconds: float = _START_SECONDS) -> bytes:
        """Return the next line that the process says. Raises BenchFailure."""
        killer = threading.Timer(seconds, self._process.kill)
        killer.start()
        try:
            line = self._process.stdout.readline() if self._process.stdout is not None else b""
        finally:
            killer.cancel()
        if not line:
            raise self.failure(f"said nothing within {seconds:.0f} s, or ended")
        return line

    def write(self, what: object) -> None:
        """Send the process a line of JSON."""
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def failure(self, what: str) -> BenchFailure:
        """Return an error with the last that the process wrote to its standard error."""
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()[-_TAIL:]
        return BenchFailure(f"{self._name} {what}. Its last words:\n{said or '(none)'}")

    def end(self) -> None:
        """End the process: politely, then not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def running(name: str, command: Sequence[str], *, folder: Path = ROOT) -> Iterator[Running]:
    """Start a process and end it."""
    with tempfile.TemporaryFile(prefix="twiceshy-bench-") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={key: value for key, value in os.environ.items() if not key.startswith("TWICESHY_")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        started = Running(name, process, errors)
        try:
            yield started
        finally:
            started.end()


class CallerProcess:
    """A client in a process of its own, which takes turns."""

    def __init__(self, process: Running) -> None:
        self._process = process
        self.facts: dict[str, str] = json.loads(process.read())

    def turn(self, callers: int, seconds: float) -> Turn:
        """Let it call for some seconds."""
        self._process.write({"callers": callers, "seconds": seconds})
        return _TURN.decode(self._process.read(seconds + _LATE_SECONDS))


@contextmanager
def caller_process(name: str, python: str | Path, module: str, *arguments: str) -> Iterator[CallerProcess]:
    """Start a module of the bench as a client."""
    with running(name, [str(python), "-m", module, *arguments]) as process:
        yield CallerProcess(process)
