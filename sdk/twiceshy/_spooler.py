"""One thread a guard sends what waits in its spool, until it is taken or refused for good.

It runs only while something waits. Each file is sent strictly in the order of writing: an outcome that is stuck is
overtaken by none of its file.
"""

import functools
import logging
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import UUID

from twiceshy._lease import Clock
from twiceshy._said import ended
from twiceshy._spool import Spool
from twiceshy._spool_record import Undelivered, now
from twiceshy._spool_send import Refused, Stuck, Taken, refusal, send
from twiceshy._transports.base import Transport

_TIMEOUT_SECONDS: Final = 10.0
_HURRIED_SECONDS: Final = 2.0
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_LONGEST_ASKED_PAUSE: Final = 600.0
_LOOK_EVERY: Final = 60.0
_log = logging.getLogger("twiceshy")


class Spooler:
    """Deliver what waits in the spool of one guard, in whichever process it is used."""

    _pause: float
    _look_at: float

    def __init__(self, spool: Spool, transport: Transport, clock: Clock, chance: Callable[[], float]) -> None:
        self._spool = spool
        self._transport = transport
        self._clock = clock
        self._chance = chance
        self._start_anew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=functools.partial(_start_anew_in_child, weakref.ref(self)))

    @property
    def has_work(self) -> bool:
        """Whether something waits, or may: it is looked for files of dead processes at first, and then every minute."""
        if self._spool.has_waiting:
            return True
        at = self._clock()
        if at < self._look_at:
            return False
        self._look_at = at + _LOOK_EVERY
        return self._spool.has_strangers()

    def keep(self, outcome: Undelivered) -> Path:
        """Write an outcome durably and return where it waits. Raises OSError."""
        return self._spool.keep(outcome)

    def settle(self, attempt: UUID) -> None:
        """Let an outcome wait no more: its caller has brought it to an end."""
        self._spool.settle(attempt)

    def hand_over(self, attempt: UUID) -> None:
        """Take over the sending of an outcome from its caller."""
        self._spool.hand_over(attempt)
        self._start()

    def visit(self) -> None:
        """Send what waits before a call, which may ask for that; in a hurry, and not while it is being sent."""
        if self._busy.acquire(blocking=False):
            try:
                self._send_all(_HURRIED_SECONDS)
            finally:
                self._busy.release()
        self._start()

    def run_once(self) -> float | None:
        """Send what waits. Return the seconds to the next try, or None where nothing is left."""
        with self._busy:
            asked = self._send_all(_TIMEOUT_SECONDS)
        if not self._spool.has_waiting:
            return None
        pause = self._pause * (0.5 + self._chance() / 2)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return max(pause, min(asked, _LONGEST_ASKED_PAUSE))

    def close(self) -> None:
        """Let the thread end, try once more in a hurry, and leave the rest on disk to whoever comes next."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._spool.has_waiting and self._busy.acquire(timeout=_HURRIED_SECONDS):
            try:
                self._send_all(_HURRIED_SECONDS)
            finally:
                self._busy.release()
        self._spool.let_go()

    def start_anew_in_child(self) -> None:
        """Begin empty: in a forked child the parent's locks, thread and outcomes are none of ours."""
        self._start_anew()
        self._spool.leave_to_parent()

    def _start_anew(self) -> None:
        self._changed = threading.Condition()
        self._busy = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._pause = _FIRST_PAUSE
        self._look_at = 0.0

    def _start(self) -> None:
        with self._changed:
            if not self._spool.has_waiting:
                return
            self._is_closed = False
            if self._thread is None:
                self._pause = _FIRST_PAUSE
                self._thread = threading.Thread(target=self._run, name="twiceshy-spool", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while self._has_waited(pause):
            pause = self.run_once() or _FIRST_PAUSE

    def _has_waited(self, pause: float) -> bool:
        """Let time pass before the next try. False, and the thread ends, where nothing waits or the guard is closed."""
        with self._changed:
            if self._spool.has_waiting and not self._changed.wait_for(lambda: self._is_closed, pause):
                return True
            self._thread = None
            return False

    def _send_all(self, timeout_seconds: float) -> float:
        """Adopt and send. Return the longest wait that the service asked for."""
        self._spool.adopt()
        return max((self._send_queue(queue, timeout_seconds) for queue in self._spool.queues()), default=0.0)

    def _send_queue(self, queue: list[Undelivered], timeout_seconds: float) -> float:
        for outcome in queue:
            try:
                sent = send(self._transport, outcome, timeout_seconds)
            except Exception as error:  # noqa: BLE001 - a dead thread would deliver nothing any more
                _log.exception("The outcome of effect %s could not be sent in an unexpected way.", outcome.key)
                sent = Stuck(f"{type(error).__name__}: {error}")
            match sent:
                case Stuck(reason, retry_after):
                    self._spool.note(outcome.attempt, reason)
                    _log.debug("The outcome of effect %s still waits: %s", outcome.key, reason)
                    return retry_after
                case Refused(problem):
                    _log.error("%s", refusal(outcome, problem))
                case Taken(state):
                    waited = (now() - outcome.since).total_seconds()
                    _log.info(
                        "The outcome of %s waited %.0f seconds and is delivered: effect %s is %s.",
                        outcome.tool, waited, outcome.key, state,
                    )  # fmt: skip
            self._spool.settle(outcome.attempt)
        return 0.0


def waits(outcome: Undelivered, path: Path, reason: str) -> None:
    """Say once in the log that an outcome waits."""
    _log.warning(
        "The outcome of %s (effect %s) is not delivered: %s It waits in %s and is sent until the service takes it.",
        outcome.tool, outcome.key, ended(reason), path,
    )  # fmt: skip


def _start_anew_in_child(reference: "weakref.ref[Spooler]") -> None:
    spooler = reference()
    if spooler is not None:
        spooler.start_anew_in_child()
