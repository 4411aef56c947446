"""One thread a guard sends what waits in its spool, until it is taken or refused for good.

It runs only while something waits. The outcomes of one effect are sent strictly in the order of writing; one that is
stuck is overtaken by those of other effects, and pauses longer each time. Where nobody answers, all wait.
"""

import functools
import logging
import os
import threading
import weakref
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Final
from uuid import UUID

from twiceshy._lease import Clock
from twiceshy._said import ended
from twiceshy._spool import Spool
from twiceshy._spool_pace import FIRST_PAUSE, LONGEST_ASKED_PAUSE, LONGEST_PAUSE, Pace
from twiceshy._spool_record import Undelivered, now
from twiceshy._spool_send import Refused, Sent, Stuck, Taken, refusal, send
from twiceshy._transports.base import Transport
from twiceshy.exceptions import SetupError

_TIMEOUT_SECONDS: Final = 10.0
_HURRIED_SECONDS: Final = 2.0
_IN_VAIN_IN_A_ROW: Final = 3
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
        """Whether something waits, or may: it is looked for files of dead processes at first, and then every minute.

        Files that were not yet looked at are work for every caller, not for the first alone.
        """
        if self._spool.has_waiting:
            return True
        at = self._clock()
        if at < self._look_at:
            return False
        if self._spool.has_strangers():
            return True
        self._look_at = at + _LOOK_EVERY
        return False

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

    def visit(self, patience_seconds: float) -> Callable[[], None]:
        """Return the work that sends, before a call, what waits and the call may ask for: in a hurry and once for all.

        A call that arrives while others send waits for them, as long as its patience lasts from now on.
        """
        return functools.partial(self._visit, self._clock() + patience_seconds, self._passes)

    def run_once(self) -> float | None:
        """Send what waits. Return the seconds to the next try, or None where nothing is left."""
        with self._busy:
            asked = self._send_all(_TIMEOUT_SECONDS, is_due_only=True)
            to_next = self._pace.seconds_to_next()
        if not self._spool.has_waiting:
            return None
        if asked is None:
            self._pause = FIRST_PAUSE
            return to_next
        pause = self._pause * (0.5 + self._chance() / 2)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return max(pause, min(asked, LONGEST_ASKED_PAUSE))

    def close(self) -> None:
        """Let the thread end, try once more in a hurry, and leave the rest on disk to whoever comes next."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._spool.has_waiting and self._busy.acquire(timeout=_HURRIED_SECONDS):
            try:
                self._send_all(_HURRIED_SECONDS, until=self._clock() + _TIMEOUT_SECONDS)
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
        self._pause = FIRST_PAUSE
        self._look_at = 0.0
        self._pace = Pace(self._clock, self._chance)
        self._passes = 0
        self._covered: set[UUID] = set()

    def _visit(self, until: float, passes: int) -> None:
        if self._busy.acquire(timeout=max(0.0, until - self._clock())):
            try:
                if self._passes == passes or self._has_uncovered():
                    self._send_all(_HURRIED_SECONDS, until=until)
            finally:
                self._busy.release()
        self._start()

    def _start(self) -> None:
        with self._changed:
            if not self._spool.has_waiting:
                return
            self._is_closed = False
            if self._thread is None:
                self._pause = FIRST_PAUSE
                self._thread = threading.Thread(target=self._run, name="twiceshy-spool", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while self._has_waited(pause):
            pause = self.run_once() or FIRST_PAUSE

    def _has_waited(self, pause: float) -> bool:
        """Let time pass before the next try. False, and the thread ends, where nothing waits or the guard is closed."""
        with self._changed:
            if self._spool.has_waiting and not self._changed.wait_for(lambda: self._is_closed, pause):
                return True
            self._thread = None
            return False

    def _send_all(self, timeout_seconds: float, *, until: float = inf, is_due_only: bool = False) -> float | None:
        """Adopt, and send each effect's outcomes in order, until all are held up: then return the wait asked for.

        All are held up where nobody answers, or where one after the other is not taken. Before a call each one that was
        never tried has its turn: it may be what the call asks for. None says that all had theirs or the time was up.
        """
        try:
            self._spool.adopt()
            queues = self._pace.in_turn(self._spool.queues(), is_due_only=is_due_only)
            self._covered = {outcome.attempt for queue in queues for outcome in queue}
            row = 0 if is_due_only else len(queues) - self._pace.count
            return self._in_turn(queues, timeout_seconds, until, _IN_VAIN_IN_A_ROW + row)
        finally:
            self._passes += 1
            self._look_at = self._clock() + _LOOK_EVERY

    def _in_turn(
        self, queues: list[list[Undelivered]], timeout_seconds: float, until: float, vain_in_a_row: int
    ) -> float | None:
        in_vain = 0
        for queue in queues:
            for outcome in queue:
                left = until - self._clock()
                if left <= 0:
                    return None
                stuck = self._tell(outcome, min(timeout_seconds, left))
                if stuck is None:
                    in_vain = 0
                    continue
                in_vain += 1
                if stuck.is_for_all or in_vain == vain_in_a_row:
                    return stuck.retry_after
                break
        return None

    def _tell(self, outcome: Undelivered, timeout_seconds: float) -> Stuck | None:
        """Send an outcome and settle it, or say why it still waits."""
        sent = self._sent(outcome, timeout_seconds)
        match sent:
            case Refused(problem):
                try:
                    path = self._spool.refuse(outcome.attempt, f"{problem.code}: {problem.detail}")
                except OSError as error:
                    sent = Stuck(f"it was refused ({problem.code}), and that cannot be kept: {error}")
                else:
                    _log.error("%s", refusal(outcome, problem, path))
            case Taken(state):
                self._spool.settle(outcome.attempt)
                waited = (now() - outcome.since).total_seconds()
                _log.info(
                    "The outcome of %s waited %.0f seconds and is delivered: effect %s is %s.",
                    outcome.tool, waited, outcome.key, state,
                )  # fmt: skip
            case Stuck():
                pass
        if isinstance(sent, Stuck):
            self._pace.put_back(outcome.key, sent)
            self._spool.note(outcome.attempt, sent.reason)
            _log.debug("The outcome of effect %s still waits: %s", outcome.key, sent.reason)
            return sent
        self._pace.forget(outcome.key)
        return None

    def _sent(self, outcome: Undelivered, timeout_seconds: float) -> Sent:
        try:
            return send(self._transport, outcome, timeout_seconds)
        except SetupError as error:
            _log.warning("The outcome of effect %s still waits: %s", outcome.key, ended(str(error)))
            return Stuck(str(error), is_for_all=True)
        except Exception as error:  # noqa: BLE001 - a dead thread would deliver nothing any more
            _log.exception("The outcome of effect %s could not be sent in an unexpected way.", outcome.key)
            return Stuck(f"{type(error).__name__}: {error}")

    def _has_uncovered(self) -> bool:
        """Tell whether something waits that the last sending did not know of."""
        return any(outcome.attempt not in self._covered for queue in self._spool.queues() for outcome in queue)


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
