"""One thread a guard sends what its recorded runs have written, soon after it was written; the code never waits for it.

It runs only while something is written. While the service is away everything is held, and sent when it is back. What
a run leaves unsent at its end is written into a file: nothing is lost without a word.
"""

import atexit
import functools
import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from twiceshy._recorded_run import Recorded
from twiceshy._recorder_rest import write_rest
from twiceshy._replies import Unanswered, read
from twiceshy._said import ended
from twiceshy._transports.base import Request, Transport
from twiceshy._writer import Append, Writer
from twiceshy_contract.events import AppendAnswer
from twiceshy_contract.problems import Problem

_TIMEOUT_SECONDS: Final = 10.0
HURRIED_SECONDS: Final = 2.0
"""How long what is left may take where the code does not want to wait."""
_IDLE_SECONDS: Final = 5.0
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_ANSWER: Final = msgspec.json.Decoder(AppendAnswer)
_log = logging.getLogger("twiceshy")


class _Turn(msgspec.Struct):
    """When a run's log is sent next, on the monotonic clock, and how long it waits after it was refused."""

    due: float
    pause: float = _FIRST_PAUSE
    is_away: bool = False


class Recorder:
    """Send the logs of one guard's runs, in whichever process it is used."""

    _thread: threading.Thread | None
    _next: float

    def __init__(
        self,
        transport: Transport,
        url: str,
        spool: Path | None,
        chance: Callable[[], float],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._url = url
        self._spool = spool
        self._chance = chance
        self._monotonic = monotonic
        self._runs: dict[str, Recorded] = {}
        self._start_anew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=functools.partial(_start_anew_in_child, weakref.ref(self)))
        atexit.register(_close_at_exit, weakref.ref(self))

    def claim(self, run: str) -> tuple[Recorded, bool]:
        """Enter a run; return it, and whether the caller is the one to open it."""
        with self._changed:
            held = self._runs.get(run)
            if held is None or (held.was_opened and held.writer.is_refused):
                held = self._runs[run] = Recorded(run)
                return held, True
            held.blocks += 1
            return held, False

    def give_up(self, held: Recorded) -> None:
        """Note that a run could not be opened."""
        with self._changed:
            if self._runs.get(held.run) is held:
                del self._runs[held.run]
        held.give_up()

    def leave(self, held: Recorded) -> bool:
        """Leave a run; return whether the block was the last one inside."""
        with self._changed:
            held.blocks -= 1
            return held.blocks == 0

    def deliver(self, held: Recorded, seconds: float) -> None:
        """Send the rest of a run that every block has left; what cannot be sent in this time is written to a file."""
        is_sent = held.writer.flush(seconds)
        with self._changed:
            if held.blocks:
                return
            if self._runs.get(held.run) is held:
                del self._runs[held.run]
        if not is_sent or held.writer.is_refused:
            self._keep_rest(held.writer)

    def retire(self, held: Recorded) -> None:
        """Let a run go that every block has left; the rest of its log is sent in the background."""
        with self._changed:
            if not held.blocks and self._runs.get(held.run) is held:
                del self._runs[held.run]
        held.writer.hurry()

    def writer_of(self, run: str | None) -> Writer | None:
        """Return what writes the log of a run that is recorded here."""
        with self._changed:
            held = None if run is None else self._runs.get(run)
        return held.writer if held is not None and held.was_opened else None

    @property
    def names(self) -> tuple[str, ...]:
        """The runs that are recorded here now."""
        with self._changed:
            return tuple(name for name, held in self._runs.items() if held.blocks)

    def wake(self, writer: Writer, seconds: float) -> None:
        """Send within so many seconds what was written."""
        due = self._monotonic() + seconds
        with self._changed:
            self._is_closed = False
            turn = self._turns.setdefault(writer, _Turn(due))
            turn.due = min(turn.due, due)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="twiceshy-recorder", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter ends, and `close` sends the rest
                    self._thread = None
            elif due < self._next:
                self._next = due
                self._changed.notify_all()

    def run_once(self, timeout_seconds: float = _TIMEOUT_SECONDS, until: float = math.inf) -> None:
        """Send all that waits and is due until an instant. A refusal holds up its own run alone, silence all of them.

        A writer has its turn until nothing of it waits: what is in flight is seen by `close`.
        """
        with self._changed:
            writers = [writer for writer, turn in self._turns.items() if turn.due <= until]
            for writer in writers:
                self._turns[writer].due = math.inf
        for at, writer in enumerate(writers):
            answer = self._sent(writer, timeout_seconds)
            match answer:
                case Unanswered(reason):
                    self._hold_all(writers[at:], reason)
                    return
                case Problem():
                    self._hold(writer, answer)
                case None:
                    self._let_rest(writer)
        self._pause = _FIRST_PAUSE

    def close(self, *, is_end: bool = False) -> None:
        """Let the thread end, and try once more in a hurry to send what waits.

        The rest is written to files: that of runs that every block has left, and at the process's end that of all.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(HURRIED_SECONDS)  # what it sends now may be all that waits
        with self._changed:
            writers = list(self._turns)
        if any(writer.has_waiting for writer in writers) and (thread is None or not thread.is_alive()):
            self.run_once(HURRIED_SECONDS)
        for writer in writers:
            if is_end or not self._is_open(writer):
                self._keep_rest(writer)

    def start_anew_in_child(self) -> None:
        """Begin empty: in a forked child the runs, their logs and the thread are the parent's."""
        for held in self._runs.values():
            if held.was_opened:
                held.session.log.start_anew_in_child()
                held.writer.leave_to_parent()
        self._runs = {}
        self._start_anew()

    def _start_anew(self) -> None:
        self._changed = threading.Condition()
        self._thread = None
        self._turns: dict[Writer, _Turn] = {}
        self._next = math.inf
        self._pause = _FIRST_PAUSE
        self._is_closed = False
        self._is_away = False

    def _run(self) -> None:
        while (now := self._wait_until_due()) is not None:
            self.run_once(until=now)

    def _wait_until_due(self) -> float | None:
        """Wait until something is to be sent, and return when that is. None where there was nothing for a while."""
        with self._changed:
            while not self._is_closed:
                now = self._monotonic()
                self._next = min((turn.due for turn in self._turns.values()), default=math.inf)
                if self._next <= now:
                    return now
                was_woken = self._changed.wait(min(self._next - now, _IDLE_SECONDS))
                if self._next == math.inf and not was_woken:
                    break
            self._thread = None
            return None

    def _sent(self, writer: Writer, timeout_seconds: float) -> Problem | Unanswered | None:
        """Send what waits of one run. None where nothing does any more, or nothing is taken."""
        while (append := writer.next_append()) is not None:
            answer = self._asked(append_request(writer, append, timeout_seconds))
            match answer:
                case AppendAnswer():
                    self._say_back(writer)
                    writer.taken(append, answer.next_seq)
                case Problem():
                    if not writer.hear(answer):
                        return answer
                case Unanswered():
                    return answer
        return None

    def _let_rest(self, writer: Writer) -> None:
        """Note that nothing more can be sent of a run; the last block of one that was refused keeps its rest."""
        with self._changed:
            if not writer.has_waiting:
                self._turns.pop(writer, None)
                return
        if writer.is_refused and not self._is_open(writer):
            self._keep_rest(writer)

    def _hold(self, writer: Writer, problem: Problem) -> None:
        """Let one run wait a while that was refused for now."""
        with self._changed:
            turn = self._turns.setdefault(writer, _Turn(math.inf))
            turn.due = min(turn.due, self._monotonic() + self._paused(turn.pause))
            turn.pause = min(turn.pause * 2, _LONGEST_PAUSE)
            was_away, turn.is_away = turn.is_away, True
        if not was_away:
            said = ended(f"{problem.code}: {problem.detail}")
            _log.warning("What the run %s records is held here, because %s refuses it: %s", writer.run, self._url, said)

    def _hold_all(self, writers: Sequence[Writer], reason: str) -> None:
        """Let all wait a while, because nobody answers; who was not answered is the last one to try again."""
        with self._changed:
            due = self._monotonic() + self._paused(self._pause)
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
            for writer in (*writers[1:], writers[0]):
                turn = self._turns.pop(writer, None) or _Turn(math.inf)
                turn.due = min(turn.due, due)
                self._turns[writer] = turn
            was_away, self._is_away = self._is_away, True
        if not was_away:
            _log.warning("What runs record is held here, because %s does not take it: %s", self._url, ended(reason))

    def _paused(self, seconds: float) -> float:
        return seconds * (0.5 + self._chance() / 2)

    def _asked(self, request: Request) -> AppendAnswer | Problem | Unanswered:
        try:
            return read(self._transport.send(request), _ANSWER)
        except Exception as error:  # noqa: BLE001 - a dead thread would deliver nothing any more
            _log.debug("The log of a run could not be sent.", exc_info=True)
            return Unanswered(f"{type(error).__name__}: {error}")

    def _say_back(self, writer: Writer) -> None:
        with self._changed:
            was_away, self._is_away = self._is_away, False
            turn = self._turns.get(writer)
            was_refused = turn is not None and turn.is_away
            if turn is not None:
                turn.is_away, turn.pause = False, _FIRST_PAUSE
        if was_away:
            _log.info("What runs record is taken again by %s.", self._url)
        if was_refused:
            _log.info("What the run %s records is taken again by %s.", writer.run, self._url)

    def _is_open(self, writer: Writer) -> bool:
        """Say whether a block here is still inside of a writer's run, or about to send the rest of it."""
        with self._changed:
            return any(held.was_opened and held.writer is writer for held in self._runs.values())

    def _keep_rest(self, writer: Writer) -> None:
        with self._changed:
            self._turns.pop(writer, None)
        left = writer.take_left()
        if left:
            write_rest(self._spool, writer.view, left, url=self._url)


def append_request(writer: Writer, append: Append, timeout_seconds: float = _TIMEOUT_SECONDS) -> Request:
    """Return the request that brings events or values to a run's log."""
    path = f"/v1/runs/{quote(writer.run, safe='')}/events"
    return Request(method="POST", path=path, body=append.body, timeout_seconds=timeout_seconds, token=writer.credential)


def _start_anew_in_child(reference: "weakref.ref[Recorder]") -> None:
    recorder = reference()
    if recorder is not None:
        recorder.start_anew_in_child()


def _close_at_exit(reference: "weakref.ref[Recorder]") -> None:
    recorder = reference()
    if recorder is not None:
        recorder.close(is_end=True)
