"""The child processes of the demo: each is ended by the id that was started, whatever happens."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, Self

_POLITE_SECONDS: Final = 3.0
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ChildFailed(Exception):
    """A child process did not do what it was started for."""


class Child:
    """One process, spoken to line by line."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name: Final = name
        self._process = process
        self._log = log
        self._unread = b""

    def line(self, seconds: float) -> str:
        """Return the next line that it prints. Raises ChildFailed if it ends before, or the seconds do."""
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            if self._process.stdout is None:
                raise self._failed("has no output")
            output = self._process.stdout.fileno()
            selector.register(output, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise self._failed(f"said nothing for {seconds:.0f} seconds")
                read = os.read(output, 65536)
                if not read:
                    raise self._failed("ended too early")
                self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def say(self, line: str) -> None:
        """Write a line to its input. Raises ChildFailed where it is gone."""
        if self._process.stdin is None:
            raise self._failed("has no input")
        try:
            self._process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError as error:
            raise self._failed("ended too early") from error

    def wait(self, seconds: float) -> None:
        """Wait for its end. Raises ChildFailed if it ends badly, or not in time."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise self._failed(f"did not end within {seconds:.0f} seconds") from error
        if code != 0:
            raise self._failed(f"ended with exit code {code}")

    def rest(self, seconds: float) -> tuple[int, list[str]]:
        """Wait for its end, and return its exit code and the lines that it still printed. Raises ChildFailed."""
        try:
            printed, _ = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise self._failed(f"did not end within {seconds:.0f} seconds") from error
        return self._process.returncode, (self._unread + printed).decode().splitlines()

    def kill(self) -> None:
        """Send SIGKILL and wait until it is dead."""
        self._process.kill()
        self._process.wait()

    def ask_to_end(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def see_ended(self) -> None:
        """Wait for its end, and kill it if it does not come."""
        try:
            self._process.wait(_POLITE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _failed(self, how: str) -> ChildFailed:
        said = self._log.read_text(errors="replace").strip().splitlines()
        last = f" The last thing it said: {said[-1]}" if said else ""
        return ChildFailed(f"{self.name} {how}.{last}")


class Children:
    """All processes of one demo. They get neither the terminal's signals nor its own settings of Twiceshy."""

    def __init__(self, folder: Path) -> None:
        """`folder` is where they run and complain."""
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("TWICESHY_")}
        self._folder = folder
        self._started: list[Child] = []

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Child:
        """Start a process. Raises ChildFailed where the command cannot be run."""
        log = self._folder / f"{len(self._started):02}.log"
        with uninterrupted(), log.open("wb") as complaints:
            try:
                process = subprocess.Popen(  # noqa: S603 - the commands are this package's own
                    command,
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    cwd=self._folder,
                    env=self._environment | dict(environment or {}),
                    start_new_session=True,
                )
            except OSError as error:
                raise ChildFailed(f"{name} cannot be started: {error}.") from error
            child = Child(name, process, log)
            self._started.append(child)
        return child

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with uninterrupted():
            for child in reversed(self._started):
                child.ask_to_end()
            for child in self._started:
                child.see_ended()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let each signal that asks for an end raise KeyboardInterrupt, so that nothing is left behind."""
    with _handled_by(signal.default_int_handler):
        yield


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back signals that ask for an end, for a moment in which one would leave something behind."""
    held: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        held.append(number)

    with _handled_by(hold):
        yield
    if held:
        signal.raise_signal(held[0])


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    is_detached = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # by nohup: then a hangup is no wish to end
    wanted = [number for number in _SIGNALS if not (is_detached and number is signal.SIGHUP)]
    before = {number: signal.signal(number, handler) for number in wanted}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous or signal.SIG_DFL)
