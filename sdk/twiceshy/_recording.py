"""One run's log as a thing to hold: a recording that is read lazily, and replayed.

Its events are decoded when they are asked for and its payloads are read from the file at their places, so that a
recording of any size takes little memory.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self, overload

import msgspec

from twiceshy._environment import Environment
from twiceshy._payload_reading import read_payload
from twiceshy._recording_download import fetched
from twiceshy._recording_files import written
from twiceshy._recording_loading import RecordingFile, load, name_of
from twiceshy._recording_parts import Part, parts
from twiceshy._recording_sources import MemorySource, Overlay, Source
from twiceshy._recording_writing import numbered, write_recording
from twiceshy.exceptions import RecordingRefused
from twiceshy_contract.events import Delivery, Event, Intent
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.runs import RunView


class Events(Sequence[Event]):
    """The events of a recording in their order, each decoded when it is asked for."""

    __slots__ = ("_source",)

    def __init__(self, source: Source) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    @overload
    def __getitem__(self, index: int, /) -> Event: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Event]: ...
    def __getitem__(self, index: int | slice, /) -> Event | list[Event]:
        places = range(len(self._source))[index]
        return self._source.event(places) if isinstance(places, int) else [self._source.event(at) for at in places]

    def __iter__(self) -> Iterator[Event]:
        return map(self._source.event, range(len(self._source)))


class Recording:
    """One run's log, with its payloads. It is read where it lies, so close it, or use it in a `with` block."""

    def __init__(self, head: RunView, source: Source, *, origin: str) -> None:
        self._head = head
        self._source = source
        self._events = Events(source)
        self._origin = origin

    @classmethod
    def from_events(
        cls, head: RunView, events: Sequence[Event], blobs: Mapping[str, str | bytes] | None = None
    ) -> Self:
        """Make a recording of events in memory; `blobs` are the texts that they name, by their digests."""
        return cls(head, MemorySource(events, blobs or {}), origin="in memory")

    @classmethod
    def load(cls, file: RecordingFile) -> Self:
        """Load the one run of a file. Raises RecordingRefused with the line of what is wrong in it.

        The file is verified whole. It may be compressed by gzip or zstd, and it may be an execution log.
        """
        recordings = cls.load_all(file)
        if len(recordings) != 1:
            for recording in recordings:
                recording.close()
            raise RecordingRefused(
                f"{name_of(file)} holds {len(recordings)} runs. Load them with Recording.load_all.",
                file=name_of(file),
                reason=f"it holds {len(recordings)} runs",
            )
        return recordings[0]

    @classmethod
    def load_all(cls, file: RecordingFile) -> list[Self]:
        """Load all runs of a file, as `load` does."""
        origin = name_of(file)
        return [cls(loaded.head, loaded.source, origin=origin) for loaded in load(file)]

    @staticmethod
    def of(guard: "HasRecordings", run: str) -> "Recording":
        """Fetch a run's log from the guard's service, as `guard.recording(run)` does."""
        return guard.recording(run)

    @classmethod
    def fetch(cls, environment: Environment, run: str) -> Self:
        """Fetch a run's log from a service into a temporary file."""
        loaded = fetched(environment, run)
        return cls(loaded.head, loaded.source, origin="of the service")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording into a file, compressed where its name ends with `.gz` or `.zst`."""
        with written(path) as file:
            write_recording(file, numbered(self._head, len(self)), self.parts())

    def parts(self, after: int = 0) -> Iterator[Part]:
        """Return the log behind an event as parts: blobs, each before what names it, and events."""
        texts = map(self._source.event_text, range(after, len(self)))
        return parts(self._head, texts, _Blobs(self._blob))

    @property
    def head(self) -> RunView:
        """The run, as the service told it when it was recorded."""
        return self._head

    @property
    def run(self) -> str:
        """The run's name."""
        return self._head.run

    @property
    def events(self) -> Sequence[Event]:
        """The events in their order; that with number n is at index n - 1."""
        return self._events

    def __len__(self) -> int:
        return len(self._source)

    def arguments(self, intent: Intent) -> dict[str, JsonValue]:
        """Return a call's arguments whole, in tagged form; none where it has none."""
        if intent.arguments is msgspec.UNSET:
            return {}
        value = self.whole(intent.arguments)
        if not isinstance(value, dict):
            raise RecordingRefused(
                f"Event {intent.seq} of run {self.run} ({self._origin}) has arguments that are no object."
            )
        return value

    def value(self, delivery: Delivery) -> JsonValue:
        """Return an outcome's value whole, in tagged form; None where it has none."""
        return None if delivery.value is msgspec.UNSET else self.whole(delivery.value)

    def whole(self, payload: object) -> JsonValue:
        """Return a payload of this recording whole, in tagged form, such as `head.about.input`."""
        try:
            return read_payload(payload, self._blob)
        except Refusal as error:
            raise RecordingRefused(
                f"A payload of the recording of run {self.run} ({self._origin}) cannot be read: {error.reason}. "
                "Export the run again."
            ) from error

    def _blob(self, digest: str) -> bytes:
        try:
            return self._source.blob(digest)
        except KeyError as error:
            raise RecordingRefused(
                f"The recording of run {self.run} ({self._origin}) lacks blob {digest}. Export the run again."
            ) from error

    def holds(self, digest: str) -> bool:
        """Say whether a blob of this digest is in the recording."""
        return self._source.holds(digest)

    def overlaid(self, events: Sequence[Event], blobs: Mapping[str, str | bytes]) -> "Recording":
        """Make a recording of other events, whose payloads are in `blobs` or in this one."""
        return Recording(self._head, Overlay(events, blobs, self._source), origin=f"a replay of {self._origin}")

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Recording of run {self.run}: {len(self)} events, {self._origin}>"


class HasRecordings(Protocol):
    """A guard."""

    def recording(self, run: str) -> Recording:
        """Fetch a run's log from the service."""
        ...


class _Blobs:
    """The blobs of a recording, one at a time."""

    def __init__(self, blob: Callable[[str], bytes]) -> None:
        self._blob = blob

    def read(self, digests: Sequence[str]) -> dict[str, bytes]:
        """Read the first."""
        return {digests[0]: self._blob(digests[0])}
