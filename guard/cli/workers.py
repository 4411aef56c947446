"""Several processes on one port: they are watched, what dies is replaced, and SIGHUP restarts them one by one.

All listen at one socket that this process holds open: a connection that the system took is never lost with a worker.
A new one serves before the old one is told to leave. Uvicorn's own supervisor ends the service when one worker cannot
start, which is what happens to one that dies while the database is away; and its workers outlive it when it is killed.
"""

import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import msgspec

from guard.cli.serving import GRACE_SECONDS
from guard.cli.worker import FAILED, LEAVE, LENGTH_BYTES, SERVES, Plan
from guard.logs import logger

START_SECONDS: Final = 60.0
"""How long a worker may take until it serves."""
_SLACK_SECONDS: Final = 10.0
"""How long a worker may take beyond what its last requests may, before it is killed."""
_LIVED_SECONDS: Final = 10.0
"""A worker that served for so long is replaced at once, however many died before."""
_LONGEST_PAUSE: Final = 10.0
_log = logger("guard.workers")


class _Worker:
    """A process, and the channel to it."""

    def __init__(self, plan: Plan, listening: socket.socket) -> None:
        """Start it. Raises OSError where there is no room for a process."""
        self.plan: Final = msgspec.structs.replace(plan, listening=listening.fileno())
        self.number: Final = plan.number
        self.channel, theirs = socket.socketpair()
        with theirs:
            # A group of its own: what a terminal sends to all is for the process that they have in common.
            self.process: Final = subprocess.Popen(
                [sys.executable, "-m", "guard.cli.worker"],
                stdin=theirs.fileno(),
                pass_fds=[listening.fileno()],
                process_group=0,
            )
        self.said = b""
        self.served_since: float | None = None
        self.is_leaving = False
        self.kill_at: float | None = time.monotonic() + START_SECONDS
        written = msgspec.msgpack.encode(self.plan)
        with suppress(OSError):  # it is gone again, which is found out in a moment
            self.channel.sendall(len(written).to_bytes(LENGTH_BYTES) + written)
        self.channel.settimeout(0)

    def hear(self) -> bool:
        """Take what it says; say whether it lives."""
        try:
            heard = self.channel.recv(65_536)
        except BlockingIOError:
            return True
        except OSError:
            heard = b""
        self.said += heard
        return bool(heard)

    @property
    def reason(self) -> str:
        """Why it ended, as far as it can be known."""
        if self.said.startswith(FAILED):
            return self.said.removeprefix(FAILED).decode()
        return f"It ended with exit code {self.process.returncode}."

    def leave(self, *, by: signal.Signals | None = None, within: float) -> None:
        """Let it end in order: by its channel, or by a signal."""
        if not self.is_leaving:
            self.is_leaving = True
            self.kill_at = time.monotonic() + within
        with suppress(OSError):
            if by is None:
                self.channel.send(LEAVE)
            else:
                self.process.send_signal(by)


class _Signals:
    """Signals, to be looked for between two turns; whoever selects on `bell` is woken by each."""

    def __init__(self) -> None:
        self.bell, self._rings = socket.socketpair()
        self.bell.settimeout(0)
        self._rings.settimeout(0)
        self._came: deque[signal.Signals] = deque()

    def take(self) -> list[signal.Signals]:
        """Return those that came since the last time."""
        with suppress(BlockingIOError):
            self.bell.recv(4096)
        taken = list(self._came)
        self._came.clear()
        return taken

    def __enter__(self) -> Self:
        def hear(number: int, _: object) -> None:
            self._came.append(signal.Signals(number))

        heard = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        self._before = {number: signal.signal(number, hear) for number in heard}
        signal.set_wakeup_fd(self._rings.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self.bell.close()
        self._rings.close()


class Workers:
    """The workers of one service, by number. `serves` is called once all serve.

    `failure` says why it never came to that; `was_interrupted`, that it was ended from the keyboard.
    """

    def __init__(self, plan: Plan, listening: socket.socket, count: int, serves: Callable[[], None]) -> None:
        self._plan = plan
        self._listening = listening
        self._serves = serves
        self._at_work: dict[int, _Worker | None] = dict.fromkeys(range(1, count + 1))
        self._deaths = dict.fromkeys(self._at_work, 0)
        self._start_at = dict.fromkeys(self._at_work, 0.0)
        self._all: set[_Worker] = set()
        self._to_renew: deque[int] = deque()
        self._successor: _Worker | None = None
        self._selector = selectors.DefaultSelector()
        self._is_up = False
        self._is_ending = False
        self._within = plan.linger_seconds + GRACE_SECONDS + _SLACK_SECONDS
        self.failure: str | None = None
        self.was_interrupted = False

    def run(self) -> None:
        """Serve until that is to stop."""
        with _Signals() as signals, self._selector:
            self._selector.register(signals.bell, selectors.EVENT_READ)
            while self._all or not self._is_ending:
                self._tend()
                for key, _ in self._selector.select(self._patience()):
                    if isinstance(key.data, _Worker):
                        self._hear(key.data)
                for number in signals.take():
                    self._obey(number)

    def _obey(self, number: signal.Signals) -> None:
        if number == signal.SIGHUP:
            if not self._is_ending:
                _log.info("restart_begins", workers=len(self._at_work))
                self._to_renew = deque(self._at_work)
            return
        self.was_interrupted = number == signal.SIGINT
        # Asked once more, they hear the very signal: that from the keyboard lets them wait for nobody.
        self._end(number if self._is_ending else signal.SIGTERM)

    def _end(self, by: signal.Signals = signal.SIGTERM) -> None:
        self._is_ending = True
        for worker in self._all:
            worker.leave(by=by, within=self._within)

    def _tend(self) -> None:
        """Start what is due, renew what is to be renewed, and kill what takes too long."""
        now = time.monotonic()
        for worker in self._all:
            if worker.kill_at is not None and now >= worker.kill_at:
                _log.error("worker_killed", worker=worker.number, process=worker.process.pid)
                worker.kill_at = None
                worker.process.kill()
        if self._is_ending:
            return
        for number, at_work in self._at_work.items():
            if at_work is None and not self._has_successor(number) and now >= self._start_at[number]:
                self._at_work[number] = self._start(number)
        is_calm = self._is_up and self._successor is None and not any(worker.is_leaving for worker in self._all)
        if is_calm and self._to_renew:
            self._successor = self._start(self._to_renew.popleft())

    def _patience(self) -> float | None:
        """Return how long nothing is due."""
        due = [worker.kill_at for worker in self._all if worker.kill_at is not None]
        if not self._is_ending:
            due += [
                self._start_at[number]
                for number, worker in self._at_work.items()
                if worker is None and not self._has_successor(number)
            ]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _start(self, number: int) -> _Worker | None:
        taken = {worker.plan.meters for worker in self._all}
        meters = next(name for name in map(str, range(len(taken) + 1)) if name not in taken)
        try:
            worker = _Worker(msgspec.structs.replace(self._plan, number=number, meters=meters), self._listening)
        except OSError as error:
            self._failed(number, f"No process could be started: {error.strerror or error}.")
            return None
        self._all.add(worker)
        self._selector.register(worker.channel, selectors.EVENT_READ, worker)
        return worker

    def _has_successor(self, number: int) -> bool:
        return self._successor is not None and self._successor.number == number

    def _hear(self, worker: _Worker) -> None:
        if not worker.hear():
            self._selector.unregister(worker.channel)
            worker.channel.close()
            worker.process.wait()
            self._all.discard(worker)
            self._ended(worker)
        elif worker.said == SERVES and worker.served_since is None:
            worker.served_since = time.monotonic()
            if not worker.is_leaving:
                worker.kill_at = None
                self._came_up(worker)

    def _came_up(self, worker: _Worker) -> None:
        _log.info("worker_serves", worker=worker.number, process=worker.process.pid)
        if worker is self._successor:
            self._successor = None
            before, self._at_work[worker.number] = self._at_work[worker.number], worker
            if before is not None:
                before.leave(within=self._within)
        if not self._is_up and all(one is not None and one.served_since for one in self._at_work.values()):
            self._is_up = True
            self._serves()

    def _ended(self, worker: _Worker) -> None:
        if worker.is_leaving:
            _log.info("worker_left", worker=worker.number, process=worker.process.pid)
        elif worker is self._successor:
            self._successor = None
            self._to_renew.clear()
            _log.error("restart_given_up", worker=worker.number, reason=worker.reason)
        else:
            self._at_work[worker.number] = None
            has_lived = worker.served_since is not None and time.monotonic() - worker.served_since > _LIVED_SECONDS
            self._deaths[worker.number] = 0 if has_lived else self._deaths[worker.number]
            self._failed(worker.number, worker.reason)

    def _failed(self, number: int, reason: str) -> None:
        """Try again, ever less often; but end where not all have served yet."""
        self._deaths[number] += 1
        pause = min(_LONGEST_PAUSE, 0.25 * 2 ** self._deaths[number]) if self._deaths[number] > 1 else 0.0
        self._start_at[number] = time.monotonic() + pause
        if self._is_up:
            _log.error("worker_ended", worker=number, reason=reason, again_in_seconds=pause)
        elif not self._is_ending:
            self.failure = f"Worker {number} could not start. {reason}"
            self._end()
