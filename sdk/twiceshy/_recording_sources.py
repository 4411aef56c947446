"""Where a recording's events and blobs lie: in memory, or in a file that is read at their places."""

import hashlib
import threading
from array import array
from collections.abc import Mapping, Sequence
from typing import BinaryIO, Final, Protocol

import msgspec

from twiceshy._recording_lines import Line, line_decoder, refused
from twiceshy.exceptions import RecordingRefused
from twiceshy_contract.events import Event

event_decoder: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Event)
_CACHED: Final = 64
_CACHED_BYTES: Final = 2**16
"""Only blobs up to this size stay in memory: the messages of a conversation, which every call names again."""


class Source(Protocol):
    """The log of one run."""

    def __len__(self) -> int:
        """Return how many events there are."""
        ...

    def event(self, index: int) -> Event:
        """Return the event at an index from 0."""
        ...

    def event_text(self, index: int) -> bytes:
        """Return the event's text as it was recorded."""
        ...

    def blob(self, digest: str) -> bytes:
        """Return a blob's text. Raises KeyError."""
        ...

    def holds(self, digest: str) -> bool:
        """Say whether a blob is here."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class MemorySource:
    """A log in memory."""

    def __init__(self, events: Sequence[Event], blobs: Mapping[str, str | bytes]) -> None:
        self._events = events
        self._blobs = blobs

    def __len__(self) -> int:
        return len(self._events)

    def event(self, index: int) -> Event:
        """Return the event at an index from 0."""
        return self._events[index]

    def event_text(self, index: int) -> bytes:
        """Write the event."""
        return msgspec.json.encode(self._events[index])

    def blob(self, digest: str) -> bytes:
        """Return a blob's text. Raises KeyError."""
        text = self._blobs[digest]
        return text.encode() if isinstance(text, str) else text

    def holds(self, digest: str) -> bool:
        """Say whether a blob is here."""
        return digest in self._blobs

    def close(self) -> None:
        """Do nothing: there is no file."""


class Overlay(MemorySource):
    """A log in memory whose blobs may be those of another one, which stays open for it."""

    def __init__(self, events: Sequence[Event], blobs: Mapping[str, str | bytes], under: Source) -> None:
        super().__init__(events, blobs)
        self._under = under

    def blob(self, digest: str) -> bytes:
        """Return a blob's text. Raises KeyError."""
        return super().blob(digest) if super().holds(digest) else self._under.blob(digest)

    def holds(self, digest: str) -> bool:
        """Say whether a blob is here."""
        return super().holds(digest) or self._under.holds(digest)


class SharedFile:
    """A file that several recordings read; the last that lets go closes it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._holders = 0

    def hold(self) -> None:
        """Count one holder more."""
        with self._lock:
            self._holders += 1

    def let_go(self) -> None:
        """Count one holder less."""
        with self._lock:
            self._holders -= 1
            if self._holders <= 0:
                self._file.close()

    def read(self, offset: int, length: int) -> bytes:
        """Read a part."""
        with self._lock:
            self._file.seek(offset)
            return self._file.read(length)


class Index:
    """In which line each event and each blob of one run lies: a few numbers for each, never a payload."""

    def __init__(self) -> None:
        self._events = array("Q")
        self._blobs: dict[bytes, int] = {}
        self._blob_places = array("Q")

    def __len__(self) -> int:
        return len(self._events) // 2

    def add_event(self, offset: int, length: int) -> None:
        """Note the line of the next event."""
        self._events.extend((offset, length))

    def add_blob(self, digest: str, offset: int, length: int) -> None:
        """Note the line of a blob."""
        self._blobs[bytes.fromhex(digest)] = len(self._blob_places) // 2
        self._blob_places.extend((offset, length))

    def event(self, index: int) -> tuple[int, int]:
        """Return offset and length of an event's line."""
        return self._events[2 * index], self._events[2 * index + 1]

    def blob(self, digest: str) -> tuple[int, int]:
        """Return offset and length of a blob's line. Raises KeyError."""
        try:
            key = bytes.fromhex(digest)
        except ValueError as error:
            raise KeyError(digest) from error
        place = self._blobs.get(key)
        if place is None:
            raise KeyError(digest)
        return self._blob_places[2 * place], self._blob_places[2 * place + 1]


class FileSource:
    """A log in a file that was verified when its index was made."""

    def __init__(self, file: SharedFile, index: Index, name: str) -> None:
        file.hold()
        self._file = file
        self._index = index
        self._name = name
        self._cache: dict[str, bytes] = {}
        self._is_open = True

    def __len__(self) -> int:
        return len(self._index)

    def event(self, index: int) -> Event:
        """Read the event at an index from 0."""
        text = self.event_text(index)
        try:
            return event_decoder.decode(text)
        except msgspec.DecodeError as error:
            raise self._changed() from error

    def event_text(self, index: int) -> bytes:
        """Read the event's text as it was recorded."""
        line = self._line(*self._index.event(index))
        text = line.event_text
        if hashlib.sha256(text).hexdigest() != line.sha256:
            raise self._changed()
        return text

    def blob(self, digest: str) -> bytes:
        """Read a blob's text. Raises KeyError."""
        cached = self._cache.get(digest)
        if cached is not None:
            return cached
        text = self._line(*self._index.blob(digest)).blob_text
        if hashlib.sha256(text).hexdigest() != digest:
            raise self._changed()
        if len(text) <= _CACHED_BYTES:
            while len(self._cache) >= _CACHED:
                self._cache.pop(next(iter(self._cache)), None)
            self._cache[digest] = text
        return text

    def holds(self, digest: str) -> bool:
        """Say whether a blob is here."""
        try:
            self._index.blob(digest)
        except KeyError:
            return False
        return True

    def close(self) -> None:
        """Let go of the file."""
        if self._is_open:
            self._is_open = False
            self._file.let_go()

    def _line(self, offset: int, length: int) -> Line:
        try:
            return line_decoder.decode(self._file.read(offset, length))
        except msgspec.DecodeError as error:
            raise self._changed() from error

    def _changed(self) -> RecordingRefused:
        return refused(self._name, None, "it was changed since it was opened", "Load it again.")
