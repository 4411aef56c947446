"""A replay's own log: in memory, without what the recording that it replays holds already."""

import hashlib
from collections.abc import Sequence
from typing import Final

from twiceshy._payloads import Kept
from twiceshy._recording import Recording
from twiceshy_contract.events import Event


class OwnLog:
    """Takes down what a replay does."""

    def __init__(self, recording: Recording) -> None:
        self.kept: Final[Kept] = _Beside(recording)
        self._recording = recording
        self._events: list[Event] = []

    def append(self, event: Event) -> None:
        """Take the next event."""
        self._events.append(event)

    @property
    def events(self) -> Sequence[Event]:
        """The events up to now."""
        return self._events

    def recording(self) -> Recording:
        """Return what was taken down as a recording; it reads what it shares from the one that was replayed."""
        return self._recording.overlaid(self._events, self.kept.pending)


class _Beside(Kept):
    """Keeps what a recording does not hold."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self._recording = recording

    def put(self, text: bytes) -> str:
        """Keep a text that is new; return its digest."""
        digest = hashlib.sha256(text).hexdigest()
        return digest if self._recording.holds(digest) else super().put(text)
