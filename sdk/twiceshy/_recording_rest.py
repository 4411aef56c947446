"""The rest of a run's log in a file: what its writer could not send. It is verified whole before anything is sent."""

import hashlib
from pathlib import Path
from typing import Final, Never

import msgspec

from twiceshy._recording_lines import End, Line, refused
from twiceshy._recording_parts import BlobPart, EventPart, Part
from twiceshy._recording_reading import Lines
from twiceshy._recording_sources import event_decoder
from twiceshy_contract.runs import RunView

_MARK: Final = b'"after"'
_AGAIN: Final = "Keep the file as it was written; it is not edited by hand."


class Rest(msgspec.Struct, frozen=True):
    """The events of a run behind one, and the blobs that were not sent before them, in their order."""

    head: RunView
    after: int
    parts: tuple[Part, ...]

    @property
    def events(self) -> int:
        """The number of the last event."""
        return self.head.events


def rest_in(path: str) -> Rest | None:
    """Read a file that holds a rest; None for any other. Raises RecordingRefused with the line, and why; OSError."""
    with Path(path).open("rb") as file:
        lines = Lines(file, path)
        first = lines.next()
        if first is None or _MARK not in first[:40]:
            return None
        return _Reader(lines).read(first)


class _Reader:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._digest = hashlib.sha256()
        self._count = 0

    def read(self, first: bytes) -> Rest:
        head = self._lines.read(first)
        if isinstance(head.after, msgspec.UnsetType) or isinstance(head.run, msgspec.UnsetType):
            self._refuse("a rest begins with its head, and this is none")
        run, parts = msgspec.json.decode(head.run, type=RunView), list[Part]()
        self._take(first)
        last = head.after
        while (text := self._lines.next()) is not None:
            line = self._lines.read(text)
            if isinstance(line.end, End):
                self._end(line.end, last - head.after, (last, run.events))
                return Rest(run, head.after, tuple(parts))
            parts.append(self._part(line))
            if isinstance(parts[-1], EventPart):
                last = self._numbered(parts[-1].text, last + 1)
            self._take(text)
        raise refused(self._lines.name, self._lines.number, "the file ends here: it is cut off", _AGAIN)

    def _part(self, line: Line) -> Part:
        if isinstance(line.blob, str):
            if hashlib.sha256(line.blob_text).hexdigest() != line.blob:
                self._refuse(f"blob {line.blob} has another digest")
            return BlobPart(line.blob, line.blob_text)
        if hashlib.sha256(line.event_text).hexdigest() != line.sha256:
            self._refuse("this is no event, or it has another digest")
        return EventPart(line.event_text)

    def _numbered(self, text: bytes, wanted: int) -> int:
        try:
            seq = event_decoder.decode(text).seq
        except msgspec.DecodeError as error:
            self._refuse(f"the event cannot be read: {error}")
        if seq != wanted:
            self._refuse(f"this is event {seq} where {wanted} belongs: lines are missing")
        return seq

    def _end(self, end: End, events: int, last: tuple[int, int]) -> None:
        if end.events != events or last[0] != last[1]:
            self._refuse(f"there are {end.events} events, and {events} are here: lines are missing")
        if end.lines != self._count or end.sha256 != self._digest.hexdigest():
            self._refuse("the lines have another digest than when they were written")

    def _take(self, line: bytes) -> None:
        self._digest.update(line)
        self._count += 1

    def _refuse(self, reason: str) -> Never:
        self._lines.refuse(reason, _AGAIN)
