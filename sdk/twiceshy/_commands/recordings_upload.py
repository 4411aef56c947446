"""Send one recording to a service: what it has of the run is compared, and the rest is appended in batches."""

from collections.abc import Callable
from typing import Final, Never, TypeVar

import click
import msgspec

from twiceshy._commands.parameters import in_path
from twiceshy._commands.recordings import asking
from twiceshy._commands.service import Refused, Service
from twiceshy._recording import Recording
from twiceshy._recording_download import events_of
from twiceshy._recording_parts import BlobPart, EventPart
from twiceshy._recording_sources import event_decoder
from twiceshy._transports.base import Request
from twiceshy_contract.events import MAX_EVENTS, AppendAnswer, Event, Intent
from twiceshy_contract.redaction import marks, redacted
from twiceshy_contract.runs import FinishRunRequest, OpenRunRequest, RunFacts, RunView

T = TypeVar("T")
BATCH_BYTES: Final = 2**21
SECONDS: Final = 60.0


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one recording; `left_out` is its parent where that is not known to the service."""

    run: str
    events: int
    added: int
    left_out: str | None = None


class AppendOfTexts(msgspec.Struct, frozen=True):
    """An AppendRequest with the texts of its events as they are."""

    epoch: int
    events: list[msgspec.Raw]
    blobs: dict[str, str]


class Upload:
    """One recording on its way to a service, as the run `name`."""

    def __init__(self, service: Service, recording: Recording, name: str) -> None:
        self._service = service
        self._recording = recording
        self._name = name
        self._blobs: dict[str, str] = {}
        self._events: list[msgspec.Raw] = []
        self._size = 0
        self._there = 0

    def run(self, advance: Callable[[], None]) -> Imported:
        """Send what is missing."""
        whole, head = len(self._recording), self._recording.head
        known = self._found(self._name)
        had = 0 if known is None else known.events
        if known is not None:
            self._require_same(known, advance)
            if had > whole or (had == whole and _says_all(known, head)):
                return Imported(run=self._name, events=whole, added=0)
        left_out = head.parent if head.parent is not None and self._found(head.parent) is None else None
        asked = OpenRunRequest(
            run=self._name,
            record=had < whole,
            about=head.about,
            parent=None if left_out is not None else head.parent,
        )
        opened = self._ask("/v1/runs", asked, RunView)
        if had < whole:
            self._append(opened, advance)
        self._end(opened)
        return Imported(run=self._name, events=whole, added=whole - had, left_out=left_out)

    def _require_same(self, known: RunView, advance: Callable[[], None]) -> None:
        """Refuse a run of the name that is another."""
        if known.effects and not known.events and len(self._recording):
            self._refuse("it has effects here and was not recorded")
        if known.state != "open" and known.events < len(self._recording):
            self._refuse(f"it is {known.state} here with {known.events} events, and takes no more")
        common = msgspec.structs.replace(known, events=min(known.events, len(self._recording)))
        for index, text in enumerate(events_of(asking(self._service), common)):
            if not _is_same(event_decoder.decode(text), self._recording.events[index]):
                self._refuse(f"its event {index + 1} here is another")
            advance()

    def _append(self, opened: RunView, advance: Callable[[], None]) -> None:
        """Append what comes behind the log's head, with the blobs that it names."""
        self._there = opened.events
        try:
            for part in self._recording.parts(after=opened.events):
                match part:
                    case BlobPart(digest, text):
                        self._make_room(len(text), opened.epoch)
                        self._blobs[digest] = text.decode()
                    case EventPart(text):
                        self._make_room(len(text), opened.epoch)
                        self._events.append(msgspec.Raw(text))
                        advance()
            self._flush(opened.epoch)
        except click.ClickException as error:
            raise click.ClickException(
                f"{error.message} Of run {self._name} {self._there} of {len(self._recording)} events are there; the "
                "same import again goes on."
            ) from error

    def _make_room(self, size: int, epoch: int) -> None:
        if (self._size and self._size + size > BATCH_BYTES) or len(self._events) == MAX_EVENTS:
            self._flush(epoch)
        self._size += size

    def _flush(self, epoch: int) -> None:
        if self._blobs or self._events:
            answer = self._ask(f"{self._path}/events", AppendOfTexts(epoch, self._events, self._blobs), AppendAnswer)
            self._there = answer.next_seq - 1
        self._blobs, self._events, self._size = {}, [], 0

    def _end(self, opened: RunView) -> None:
        """Say what became known of the run, and end it as it had ended."""
        head = self._recording.head
        if head.facts:
            self._ask(f"{self._path}/facts", RunFacts(facts=head.facts), RunView)
        if head.state != "open" and opened.state == "open":
            self._ask(f"{self._path}/finish", FinishRunRequest(as_=head.state), RunView)

    @property
    def _path(self) -> str:
        return f"/v1/runs/{in_path(self._name)}"

    def _found(self, name: str) -> RunView | None:
        try:
            return self._service.ask(Request(method="GET", path=f"/v1/runs/{in_path(name)}"), RunView)[0]
        except Refused as refused:
            if refused.code == "not-found":
                return None
            raise

    def _ask(self, path: str, body: msgspec.Struct, kind: type[T]) -> T:
        request = Request(method="POST", path=path, body=msgspec.json.encode(body), timeout_seconds=SECONDS)
        return self._service.ask(request, kind)[0]

    def _refuse(self, reason: str) -> Never:
        raise click.ClickException(
            f"There is a run {self._name} already, and it is not this recording: {reason}. Import it under another "
            f"name: --as NAME."
        )


def _is_same(there: Event, here: Event) -> bool:
    """Say whether a service has an event, of which it may have redacted more."""
    if there == here or not (isinstance(there, Intent) and isinstance(here, Intent)):
        return there == here
    if not (isinstance(there.arguments, dict) and isinstance(here.arguments, dict)):
        return False
    kept = redacted(here.arguments, marks(there.arguments))
    return kept != here.arguments and msgspec.structs.replace(here, arguments=kept, digest=there.digest) == there


def _says_all(known: RunView, head: RunView) -> bool:
    """Say whether a run has ended as the recording had, and everything that was known of that is known of it."""
    return (head.state == "open" or known.state != "open") and head.facts.keys() <= known.facts.keys()
