"""The lines of a file of recordings, and how one is refused.

A run is a head, then in order its blobs, each before what names it, and its events, then an end with a digest of all
lines before it. Several runs follow each other; the heads of those that were exported together say which of how many
each is, as `"part":[1,2]`, so that a file that ends between two of them is not taken for the whole. A text is written
into its line as it is, so that its digest is over what was recorded to the byte. A head that says `"after":6` is that
of a rest: the events behind the sixth, and the blobs that were not sent before them.
"""

import hashlib
from typing import Annotated, Final

import msgspec

from twiceshy.exceptions import RecordingRefused
from twiceshy_contract.events import MAX_APPEND_BYTES, Digest
from twiceshy_contract.runs import RunView

VERSION: Final = 1
MAX_LINE_BYTES: Final = MAX_APPEND_BYTES + 2**16
"""No event and no blob is larger, not even escaped."""
Ordinal = Annotated[int, msgspec.Meta(ge=1)]
PartNumber = tuple[Ordinal, Ordinal]
"""Which run it is, of how many that were exported together."""


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands at the end of a run: its events and the lines before this one, and the digest of those lines."""

    events: Annotated[int, msgspec.Meta(ge=0)]
    lines: Annotated[int, msgspec.Meta(ge=1)]
    sha256: Digest


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Any line: the head of a run, a blob, an event, or an end.

    A blob's text stands under `value`, and where it cannot stand in a line as it is, as a string under `text`.
    """

    recording: int | msgspec.UnsetType = msgspec.UNSET
    part: PartNumber | msgspec.UnsetType = msgspec.UNSET
    after: Ordinal | msgspec.UnsetType = msgspec.UNSET
    run: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    blob: Digest | msgspec.UnsetType = msgspec.UNSET
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET
    event: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    sha256: Digest | msgspec.UnsetType = msgspec.UNSET
    end: End | msgspec.UnsetType = msgspec.UNSET

    @property
    def members(self) -> int:
        """How many members the line has."""
        return sum(getattr(self, name) is not msgspec.UNSET for name in self.__struct_fields__)

    @property
    def blob_text(self) -> bytes:
        """The text of a blob, as it was recorded."""
        return bytes(self.value) if isinstance(self.value, msgspec.Raw) else str(self.text).encode()

    @property
    def event_text(self) -> bytes:
        """The text of an event, as it was recorded."""
        return b"" if isinstance(self.event, msgspec.UnsetType) else bytes(self.event)


line_decoder: Final = msgspec.json.Decoder(Line)


def head_line(head: RunView, part: PartNumber | None = None, *, after: int = 0) -> bytes:
    """Write the head of a run, or of its rest. A credential is told to who makes a fork, and to nobody else."""
    told = msgspec.json.encode(msgspec.structs.replace(head, credential=msgspec.UNSET))
    place = b"" if part is None or part[1] == 1 else b'"part":[%d,%d],' % part
    behind = b'"after":%d,' % after if after else b""
    return b'{"recording":%d,%b%b"run":%b}\n' % (VERSION, place, behind, told)


def blob_line(digest: str, text: bytes) -> bytes:
    """Write a blob."""
    stands_in_line = b"\n" not in text and text == text.strip()
    said = b'"value":' + text if stands_in_line else b'"text":' + msgspec.json.encode(text.decode())
    return b'{"blob":"%b",%b}\n' % (digest.encode(), said)


def event_line(text: bytes) -> bytes:
    """Write an event."""
    return b'{"event":%b,"sha256":"%b"}\n' % (text, hashlib.sha256(text).hexdigest().encode())


def end_line(events: int, lines: int, digest: str) -> bytes:
    """Write the end of a run."""
    return b'{"end":%b}\n' % msgspec.json.encode(End(events, lines, digest))


def refused(file: str, line: int | None, reason: str, remedy: str) -> RecordingRefused:
    """Return the error for a file that cannot be taken: where, why, and what to do."""
    place = file if line is None else f"{file}, line {line}"
    return RecordingRefused(f"{place}: {reason}. {remedy}", file=file, line=line, reason=reason)
