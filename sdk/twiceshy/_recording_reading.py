"""Read a file of recordings once, and believe nothing of it: every digest, number and name is verified.

What comes out is where things lie, so that a file of any size takes little memory.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import BinaryIO, Final, Never, cast

import msgspec

from twiceshy._payload_reading import node_of
from twiceshy._recording_lines import MAX_LINE_BYTES, VERSION, End, Line, PartNumber, line_decoder, refused
from twiceshy._recording_sources import Index
from twiceshy._wording import in_words
from twiceshy_contract.events import MAX_BLOB_BYTES, Delivery, Event, Intent
from twiceshy_contract.payloads import Reference, may_name, references, references_of_event
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import RunView
from twiceshy_contract.strict_json import ENVELOPE_DEPTH, MAX_DEPTH, decode

AGAIN: Final = "Export the run again; a recording is not edited by hand."
_WHOLE: Final = "Fetch it again whole, or export the run again."
_DEPTH: Final = MAX_DEPTH + ENVELOPE_DEPTH
_NO_LIST: Final = "no list"
_UNKNOWN: Final = re.compile(
    r"(?:Object contains unknown field `(?P<field>[^`]*)`|Invalid (?:enum )?value '(?P<word>[^']*)')"
    r"(?: - at `\$\.?(?P<place>[^`]*)`)?"
)
_CHANGED: Final = "this line was changed since it was recorded"


class Verified(msgspec.Struct, frozen=True):
    """One run of a file: its head, where its events and blobs lie, and which of those exported together it is."""

    head: RunView
    index: Index
    part: PartNumber = (1, 1)


class Lines:
    """The lines of a file with their numbers and places."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self.name = name
        self.number = 0
        self.offset = 0
        self.length = 0

    def next(self) -> bytes | None:
        """Return the next line as it is; None at the end of the file."""
        self.offset += self.length
        line = self._file.readline(MAX_LINE_BYTES + 1)
        if not line:
            self.length = 0
            return None
        self.length = len(line)
        self.number += 1
        if len(line) > MAX_LINE_BYTES:
            self.refuse(f"the line is longer than {MAX_LINE_BYTES} bytes")
        return line

    def read(self, line: bytes) -> Line:
        """Read a line."""
        if not line.endswith(b"\n"):
            self.refuse("the file ends within this line: it is cut off", _WHOLE)
        if line.endswith(b"\r\n"):
            self.refuse(
                "its line ends are those of another system",
                "Keep the file as it is: in git, `*.jsonl -text` in .gitattributes does so.",
            )
        try:
            return line_decoder.decode(line)
        except msgspec.ValidationError as error:
            self.refuse(f"this is no line of a recording: {_misread(error)}")
        except (msgspec.DecodeError, RecursionError) as error:
            self.refuse(f"this is not JSON: {error}")

    def refuse(self, reason: str, remedy: str = AGAIN) -> Never:
        """Refuse the line that was read last."""
        raise refused(self.name, self.number, reason, remedy)


def _misread(error: msgspec.ValidationError) -> str:
    """Say what of a line is not known, as another version or a slip of the pen has it; else what is wrong with it."""
    found = _UNKNOWN.fullmatch(str(error))
    if found is None:
        return in_words(error)
    place = found["place"] or ""
    if found["word"] is not None:
        return f"unknown {place.rpartition('.')[2] or 'value'} '{found['word']}'"
    return f"unknown field '{found['field']}'" + (f" in {place}" if place else "")


def verified(file: BinaryIO, name: str) -> Iterator[Verified]:
    """Read the runs of a file. Raises RecordingRefused with the line, and why."""
    lines = Lines(file, name)
    last, of = 1, 1
    while (line := lines.next()) is not None:
        run = _Run(lines, (1, None) if last == of else (last + 1, of)).read(line)
        last, of = run.part
        yield run
    if last != of:
        reason = f"the file ends behind run {last} of the {of} that were exported together: it is cut off"
        raise refused(name, lines.number, reason, _WHOLE)


class _Run:
    """One run while it is read. `_kept` says of each blob after which other one it goes on as a list.

    `due` is which run of those exported together has to come, and of how many, where that is known.
    """

    def __init__(self, lines: Lines, due: tuple[int, int | None]) -> None:
        self._lines = lines
        self._due = due
        self._part: PartNumber = (1, 1)
        self._index = Index()
        self._kept: dict[bytes, bytes | str | None] = {}
        self._whole: set[bytes] = set()
        self._open: set[int] = set()
        self._digest = hashlib.sha256()
        self._count = 0
        self._entries = 0

    def read(self, first: bytes) -> Verified:
        head = self._head(self._lines.read(first))
        self._take(first)
        while (text := self._lines.next()) is not None:
            line = self._lines.read(text)
            if isinstance(line.end, End):
                self._require_alone(line, 1)
                self._end(line.end, head)
                return Verified(head, self._index, self._part)
            self._entry(line)
            self._take(text)
        reason = f"the file ends within the run {head.run}: it is cut off"
        raise refused(self._lines.name, self._lines.number, reason, _WHOLE)

    def _take(self, line: bytes) -> None:
        self._digest.update(line)
        self._count += 1

    def _head(self, line: Line) -> RunView:
        if isinstance(line.recording, msgspec.UnsetType) or isinstance(line.run, msgspec.UnsetType):
            self._lines.refuse("a run begins with its head here, and this is none")
        if line.recording != VERSION:
            self._lines.refuse(
                f"this is version {line.recording} of the format, and {VERSION} is known",
                "Upgrade twiceshy, or export the run again with this version.",
            )
        if not isinstance(line.after, msgspec.UnsetType):
            self._lines.refuse(
                f"this is the rest of a run behind its event {line.after}, and no recording by itself",
                "`twiceshy runs import FILE` appends it to that run.",
            )
        self._part = self._numbered(line)
        try:
            decode(bytes(line.run), max_depth=_DEPTH)
            return msgspec.json.decode(line.run, type=RunView)
        except Refusal as refusal:
            self._lines.refuse(f"the run's head is not JSON {refusal}")
        except msgspec.ValidationError as error:
            self._lines.refuse(f"the run's head cannot be read: {_misread(error)}")

    def _numbered(self, line: Line) -> PartNumber:
        """Return which of the runs exported together this one is. Refuses where others of them are missing before."""
        said = not isinstance(line.part, msgspec.UnsetType)
        self._require_alone(line, 3 if said else 2)
        part = line.part if isinstance(line.part, tuple) else (1, 1)
        (due, of), (number, count) = self._due, part
        if number > count:
            self._lines.refuse(f"there is no run {number} of {count}")
        if number != due or (of is not None and count != of):
            missing = f"run {due}" if of is None else f"run {due} of {of}"
            what = f"this is run {number} of {count}" if said else "this run was exported alone"
            self._lines.refuse(f"{what} where {missing} of those exported together belongs: lines are missing", _WHOLE)
        return part

    def _entry(self, line: Line) -> None:
        if isinstance(line.blob, str):
            if line.value is msgspec.UNSET and line.text is msgspec.UNSET:
                self._lines.refuse("a blob has a value")
            self._require_alone(line, 2)
            self._blob(line.blob, line)
        elif isinstance(line.event, msgspec.Raw):
            self._require_alone(line, 2)
            self._event(line)
        elif isinstance(line.recording, int):
            self._lines.refuse("another run begins before the end of the one before: lines are missing")
        else:
            self._lines.refuse("this is neither a blob nor an event nor an end")

    def _blob(self, digest: str, line: Line) -> None:
        text = line.blob_text
        if hashlib.sha256(text).hexdigest() != digest:
            self._lines.refuse(f"blob {digest} has another digest: {_CHANGED}")
        key = bytes.fromhex(digest)
        if key in self._kept:
            self._lines.refuse(f"blob {digest} stands here twice")
        if len(text) > MAX_BLOB_BYTES:
            self._lines.refuse(f"a blob has at most {MAX_BLOB_BYTES} bytes")
        try:
            value = decode(text, max_depth=_DEPTH)
            named = references(value) if may_name(text) else []
        except Refusal as refusal:
            self._lines.refuse(f"blob {digest} is not JSON {refusal}")
        self._require_known(named)
        node = node_of(text) if b'"items"' in text else None
        self._kept[key] = _NO_LIST if node is None else None if node.after is None else bytes.fromhex(node.after)
        self._index.add_blob(digest, self._lines.offset, self._lines.length)

    def _event(self, line: Line) -> None:
        text = line.event_text
        if hashlib.sha256(text).hexdigest() != line.sha256:
            self._lines.refuse(f"the event has another digest: {_CHANGED}")
        try:
            event = cast("Event", msgspec.convert(decode(text, max_depth=_DEPTH), Event))
            named = references_of_event(event)
        except Refusal as refusal:
            self._lines.refuse(f"the event is not JSON {refusal}")
        except msgspec.ValidationError as error:
            self._lines.refuse(f"the event cannot be read: {_misread(error)}")
        if event.seq != self._entries + 1:
            self._lines.refuse(f"this is event {event.seq} where {self._entries + 1} belongs: lines are missing")
        self._entries = event.seq
        self._enter(event)
        self._require_known(named)
        self._index.add_event(self._lines.offset, self._lines.length)

    def _enter(self, event: Event) -> None:
        match event:
            case Intent():
                self._open.add(event.seq)
            case Delivery():
                if event.intent not in self._open:
                    self._lines.refuse(
                        f"event {event.seq} delivers the outcome of event {event.intent}, which is no intent before "
                        "it, or one whose outcome was delivered already"
                    )
                self._open.remove(event.intent)

    def _end(self, end: End, head: RunView) -> None:
        if end.events != self._entries or head.events != self._entries:
            told = end.events if end.events != self._entries else head.events
            self._lines.refuse(f"the run has {told} events, and {self._entries} are here: lines are missing")
        if end.lines != self._count or end.sha256 != self._digest.hexdigest():
            self._lines.refuse(f"the run {head.run} was changed since it was recorded: its lines have another digest")
        self._require_known([] if head.about is None else references(head.about.input))

    def _require_known(self, named: list[Reference]) -> None:
        for reference in named:
            self._require(reference)

    def _require(self, reference: Reference) -> None:
        """Refuse a name of what is not here; a list is followed to its beginning, or to where one was before."""
        key: bytes | str | None = bytes.fromhex(reference.digest)
        if not reference.is_list:
            if key not in self._kept:
                self._lines.refuse(f"blob {reference.digest} is named here and is not in the file before")
            return
        way = set[bytes]()
        while isinstance(key, bytes) and key not in self._whole and key not in way:
            if key not in self._kept:
                self._lines.refuse(f"blob {key.hex()} is named here and is not in the file before")
            way.add(key)
            key = self._kept[key]
        if key == _NO_LIST:
            self._lines.refuse(f"blob {reference.digest} is named as a list here and holds none")
        self._whole |= way

    def _require_alone(self, line: Line, members: int) -> None:
        if line.members != members:
            self._lines.refuse("this line says more than one thing")
