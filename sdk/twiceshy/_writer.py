"""One run's log on its way to the service: taken from the code at once, sent later, held until the service has it.

An event goes only behind all before it, and a value that is kept by its content goes with or before the first event
that names it. A writer that the service refused takes no intent any more.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from twiceshy._base_errors import BeginError, EffectRef
from twiceshy._payloads import Kept
from twiceshy._recording_errors import RecordingDiverged, RunTakenOver
from twiceshy._replies import is_passing
from twiceshy._said import ended
from twiceshy.exceptions import GuardUnavailable
from twiceshy_contract.events import MAX_APPEND_BYTES, MAX_EVENTS, Event, Intent
from twiceshy_contract.problems import Problem
from twiceshy_contract.runs import RunView

SOON_SECONDS: Final = 0.25
"""How long a written event waits for others before they are sent."""
SOON_BYTES: Final = 64 * 2**10
"""From so many bytes on what waits is sent at once."""
_REQUEST_BYTES: Final = 4 * 2**20
"""Of one append; a single value may be larger."""
_LARGEST_BYTES: Final = MAX_APPEND_BYTES - 2**16
_MOST_WAITING_BYTES: Final = 64 * 2**20
"""Where so much waits, code that can wait does so; where twice as much does, nothing begins."""
_CARRIED_EVENTS: Final = 200
_CARRIED_BYTES: Final = 256 * 2**10


_encode: Final = msgspec.json.Encoder().encode
_log = logging.getLogger("twiceshy")


class Item(NamedTuple):
    """An event, its text, and the texts by their digests that it is the first to need."""

    event: Event
    text: bytes
    blobs: dict[str, str]
    size: int


class Append(NamedTuple):
    """One request: its body, and the digests of the texts in it where it brings no events."""

    body: bytes
    blobs: tuple[str, ...] = ()


class Writer:
    """The one writer of a run's log in this process: a sink that holds what the service has not acknowledged."""

    def __init__(self, view: RunView, wake: Callable[["Writer", float], None], credential: str | None = None) -> None:
        """Take the run as it was opened, what wakes the sender, and the credential by which a fork is driven."""
        self.view: Final = view
        self.credential: Final = credential
        self.run: Final = view.run
        self.epoch: Final = view.epoch
        self.kept: Final = Kept()
        self._wake = wake
        self._changed = threading.Condition()
        self._items: deque[Item] = deque()
        self._bytes = 0
        self._early: set[str] = set()
        self._error: type[BeginError] | None = None
        self._reason = ""

    def append(self, event: Event) -> None:
        """Take the next event. Raises what the writer was refused with, for an intent; an outcome is let pass."""
        text = _encode(event)
        size = len(text)
        blobs: dict[str, str] = {}
        with self._changed:
            before = self._bytes
            if isinstance(event, Intent):
                if self._error is not None:
                    raise self.refusal(event.name)
                if before > 2 * _MOST_WAITING_BYTES:
                    raise self._overfull(event.name)
            if self.kept.pending:  # only with an event that is held: a text that went with none would never be sent
                blobs, self.kept.pending = self.kept.pending, {}
                size += sum(map(len, blobs.values()))
            if self._error is not None:
                return
            self._items.append(Item(event, text, blobs, size))
            self._bytes = before + size
        if not before:
            self._wake(self, SOON_SECONDS)
        elif before < SOON_BYTES <= before + size:
            self._wake(self, 0.0)

    def make_room(self, seconds: float) -> None:
        """Wait while very much waits to be sent. Raises GuardUnavailable."""
        if self._bytes <= _MOST_WAITING_BYTES:
            return
        self._wake(self, 0.0)
        with self._changed:
            if not self._changed.wait_for(lambda: self._bytes <= _MOST_WAITING_BYTES or self.is_refused, seconds):
                raise self._overfull("the next call")

    @property
    def is_full(self) -> bool:
        """Whether code that can wait should."""
        return self._bytes > _MOST_WAITING_BYTES

    @property
    def has_waiting(self) -> bool:
        """Whether the service has not acknowledged everything."""
        return bool(self._items)

    @property
    def last(self) -> int:
        """The number of the newest event that waits; 0 where none does."""
        with self._changed:
            return self._items[-1].event.seq if self._items else 0

    def waits_below(self, seq: int) -> bool:
        """Say whether an event below a number waits."""
        with self._changed:
            return bool(self._items) and self._items[0].event.seq < seq

    @property
    def is_refused(self) -> bool:
        """Whether the service takes nothing more from this writer."""
        return self._error is not None

    def refusal(self, tool: str) -> BeginError:
        """Return the error that a call hears of a writer that was refused."""
        kind = self._error or RecordingDiverged
        said = (kind.__doc__ or "").partition("\n\n")
        text = f"{tool} did not run: {ended(self._reason)} {' '.join(said[2].split())}"
        return kind(text, effect=EffectRef(tool=tool, run=self.run))

    def carried(self, room: int) -> tuple[Event, ...] | None:
        """Return all that waits, for a begin to carry within so many bytes; None where it must be sent before."""
        with self._changed:
            if len(self._items) > _CARRIED_EVENTS or self._bytes > min(_CARRIED_BYTES, room):
                return None
            if any(item.blobs for item in self._items):
                return None
            return tuple(item.event for item in self._items)

    def next_append(self) -> Append | None:
        """Return the request that is next; None where nothing waits, or nothing is taken any more."""
        with self._changed:
            if self._error is not None or not self._items:
                return None
            items = self._next_items()
        events: list[bytes] = []
        blobs: list[bytes] = []
        size = 0
        for item in items:
            texts = [_member(digest, text) for digest, text in item.blobs.items() if digest not in self._early]
            added = len(item.text) + sum(map(len, texts)) + len(texts) + 1
            if size + added > _REQUEST_BYTES:
                if events:
                    break
                if added > _LARGEST_BYTES:
                    return self._some_of(item)
            events.append(item.text)
            blobs += texts
            size += added
        return Append(self._body(events, blobs))

    def acknowledged(self, next_seq: int) -> None:
        """Note that the service has all events below a number."""
        with self._changed:
            while self._items and self._items[0].event.seq < next_seq:
                item = self._items.popleft()
                self._bytes -= item.size
                if self._early:
                    self._early.difference_update(item.blobs)
            self._changed.notify_all()

    def taken(self, append: Append, next_seq: int) -> None:
        """Note that the service has taken a request."""
        if append.blobs:
            with self._changed:
                self._early.update(append.blobs)
        self.acknowledged(next_seq)

    def hear(self, problem: Problem) -> bool:
        """Take in why a request was refused; return whether that is final, so that it is not to be sent again later.

        That it is who sends it that is refused passes, save for a fork's credential, which is this run's alone.
        """
        if is_passing(problem) and self.credential is None:
            return False
        if problem.code == "blobs-missing" and self._sends_again(problem.paths):
            return False
        self._refuse(RunTakenOver if problem.code == "run-taken-over" else RecordingDiverged, problem.detail)
        return True

    def leave_to_parent(self) -> None:
        """Take nothing more: in a forked child the log is the parent's."""
        self._changed = threading.Condition()
        self._items = deque()
        self._bytes = 0
        self._error = RunTakenOver
        self._reason = f"Run {self.run!r} is recorded by the process that this one was forked from"

    def flush(self, seconds: float) -> bool:
        """Let all that waits be sent now; return whether that was done, or cannot be."""
        if not self._items:
            return True
        self._wake(self, 0.0)
        with self._changed:
            return self._changed.wait_for(lambda: not self._items or self.is_refused, seconds)

    def hurry(self) -> None:
        """Let all that waits be sent now, without waiting for it."""
        if self._items:
            self._wake(self, 0.0)

    def take_left(self) -> list[Item]:
        """Give up what waits, and return it. Where there was any, nothing can follow, and the log takes no more."""
        with self._changed:
            left = list(self._items)
            self._items.clear()
            self._bytes = 0
            if left and self._error is None:
                self._error = RecordingDiverged
                self._reason = f"Event {left[0].event.seq} of run {self.run!r} and what followed it were given up"
            self._changed.notify_all()
            return left

    def _next_items(self) -> list[Item]:
        """Return what waits first, no more than one request takes; one that is larger alone may be the only one."""
        items: list[Item] = []
        size = 0
        for item in islice(self._items, MAX_EVENTS):
            if items and size + item.size > _REQUEST_BYTES:
                break
            items.append(item)
            size += item.size
        return items

    def _some_of(self, item: Item) -> Append:
        """Return a request with some of the texts that one event needs, because they do not fit into one."""
        members: list[bytes] = []
        digests: list[str] = []
        size = 0
        for digest, text in item.blobs.items():
            if digest in self._early:
                continue
            member = _member(digest, text)
            size += len(member) + 1
            if members and size > _REQUEST_BYTES:
                break
            members.append(member)
            digests.append(digest)
        return Append(self._body([], members), tuple(digests))

    def _body(self, events: list[bytes], blobs: list[bytes]) -> bytes:
        return b'{"epoch":%d,"events":[%b],"blobs":{%b}}' % (self.epoch, b",".join(events), b",".join(blobs))

    def _sends_again(self, digests: tuple[str, ...]) -> bool:
        """Send texts once more that went before their event; say whether all that are missing are held here."""
        with self._changed:
            held = {digest for item in self._items for digest in item.blobs}
            went = self._early.intersection(digests)
            self._early -= went
            return bool(went) and held.issuperset(digests)

    def _refuse(self, error: type[BeginError], reason: str) -> None:
        with self._changed:
            if self._error is None:
                self._error, self._reason = error, reason
                _log.error("The run %s is recorded no more in this process: %s", self.run, ended(reason))
            self._changed.notify_all()

    def _overfull(self, tool: str) -> GuardUnavailable:
        return GuardUnavailable(
            f"{tool} did not run: {self._bytes} bytes of the log of run {self.run!r} wait to be taken by the guard's "
            "service, and more are not held. See why it gives no answer, or is slow; then call again.",
            effect=EffectRef(tool=tool, run=self.run),
        )


def _member(digest: str, text: str) -> bytes:
    return b'"%b":%b' % (digest.encode(), _encode(text))
