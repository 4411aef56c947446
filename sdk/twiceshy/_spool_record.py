"""What a spool file holds: one line a record, each with the checksum that proves it whole.

A line is the CRC-32 of its JSON in eight hex digits, a blank, the JSON, a line feed. An outcome waits from its `kept`
line to its `done` line. Only what follows the last line feed was torn by a crash; nothing else is ever passed over in
silence. A `head` line says who writes the lines after it: a version that writes kinds of lines which an earlier one
does not know puts one before them.
"""

import zlib
from datetime import UTC, datetime
from importlib import metadata
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from twiceshy.exceptions import EffectRef

Verb = Literal["commit", "fail"]
Kind = Literal["succeeded", "not_applied", "rejected", "unknown"]


class Undelivered(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt has to tell its service: the request that tells it, and what it is about. Never the token."""

    url: str
    key: str
    tool: str
    run: str | None
    attempt: UUID
    fence: int
    verb: Verb
    kind: Kind
    since: datetime
    body: msgspec.Raw

    @property
    def path(self) -> str:
        """Where the request goes."""
        return f"/v1/effects/{self.key}/{self.verb}"

    @property
    def reference(self) -> EffectRef:
        """Name the effect."""
        return EffectRef(tool=self.tool, key=self.key, run=self.run, attempt=self.attempt, fence=self.fence)


class Head(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="head"):
    """This version of Twiceshy writes the lines that follow."""

    version: str


class Kept(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="kept"):
    """An outcome waits."""

    outcome: Undelivered


class Tried(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="tried"):
    """It was sent once more, in vain."""

    attempt: UUID
    at: datetime
    reason: str


class Done(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="done"):
    """It waits no more: it was taken, or refused for good."""

    attempt: UUID
    at: datetime


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="refused"):
    """The service refused it for good. It stands in a file of its own, and is never sent."""

    outcome: Undelivered
    at: datetime
    reason: str


Line: TypeAlias = Head | Kept | Tried | Done | Refusal


class Waiting(msgspec.Struct, kw_only=True):
    """An outcome that waits, how often it was sent in vain since it was kept, and why the last time."""

    outcome: Undelivered
    tries: int = 0
    reason: str = ""


class Contents(msgspec.Struct, kw_only=True):
    """What a spool file says, in the order of writing, up to its last line feed, and how many lines say nothing to us.

    `unknown` counts lines that are proven and that this version cannot read, `damaged` those that prove nothing.
    """

    waiting: dict[UUID, Waiting] = {}
    refused: dict[UUID, Refusal] = {}
    version: str | None = None
    length: int = 0
    damaged: int = 0
    unknown: int = 0
    is_proven: bool = False


_LINE: Final[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(Line)


def now() -> datetime:
    """Return the time for people; nothing is decided by it."""
    return datetime.now(UTC)


def head() -> Head:
    """Name this version."""
    try:
        return Head(version=metadata.version("twiceshy"))
    except metadata.PackageNotFoundError:
        return Head(version="unknown")


def write(line: Line) -> bytes:
    """Write one line."""
    text = msgspec.json.encode(line)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read(content: bytes) -> Contents:
    """Read a file. What is after its last line feed was torn; whole lines that say nothing to us are counted."""
    *lines, torn = content.split(b"\n")
    contents = Contents(length=len(content) - len(torn))
    for text in lines:
        body = _proven(text)
        if body is None:
            contents.damaged += 1
            continue
        contents.is_proven = True
        line = _known(body)
        match line:
            case None:
                contents.unknown += 1
            case Head(version=version):
                contents.version = version
            case Refusal(outcome=outcome):
                contents.refused[outcome.attempt] = line
            case _:
                apply(line, contents.waiting)
    return contents


def apply(line: Line, waiting: dict[UUID, Waiting]) -> None:
    """Let a line change what waits."""
    match line:
        case Kept(outcome=outcome):
            waiting[outcome.attempt] = Waiting(outcome=outcome)
        case Tried(attempt=attempt, reason=reason) if attempt in waiting:
            waiting[attempt].tries += 1
            waiting[attempt].reason = reason
        case Done(attempt=attempt):
            waiting.pop(attempt, None)
        case Tried() | Head() | Refusal():
            pass


def _proven(text: bytes) -> bytes | None:
    checksum, _, body = text.partition(b" ")
    return body if checksum == b"%08x" % zlib.crc32(body) else None


def _known(body: bytes) -> Line | None:
    try:
        return _LINE.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
