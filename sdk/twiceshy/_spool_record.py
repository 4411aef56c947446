"""What a spool file holds: one line a record, each with the checksum that proves it whole.

A line is the CRC-32 of its JSON in eight hex digits, a blank, the JSON, a line feed. An outcome waits from its `kept`
line to its `done` line. A line that was torn by a crash is not a record; nothing else is ever passed over in silence.
"""

import zlib
from datetime import UTC, datetime
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


Line: TypeAlias = Kept | Tried | Done


class Waiting(msgspec.Struct, kw_only=True):
    """An outcome that waits, how often it was sent in vain since it was kept, and why the last time."""

    outcome: Undelivered
    tries: int = 0
    reason: str = ""


class Contents(msgspec.Struct, kw_only=True):
    """What a spool file says: what waits, in the order of writing, how far it is whole, and how much is not."""

    waiting: dict[UUID, Waiting]
    length: int
    damaged: int


_LINE: Final[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(Line)


def now() -> datetime:
    """Return the time for people; nothing is decided by it."""
    return datetime.now(UTC)


def write(line: Line) -> bytes:
    """Write one line."""
    text = msgspec.json.encode(line)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read(content: bytes) -> Contents:
    """Read a file. What is after its last whole line was torn; whole lines that prove nothing are counted."""
    contents = Contents(waiting={}, length=0, damaged=0)
    unproven = at = 0
    for text in content.splitlines(keepends=True):
        at += len(text)
        line = _proven(text)
        if line is None:
            unproven += 1
            continue
        contents.damaged += unproven
        contents.length, unproven = at, 0
        apply(line, contents.waiting)
    contents.damaged += max(0, unproven - 1)
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
        case Tried():
            pass


def _proven(text: bytes) -> Line | None:
    checksum, _, body = text.rstrip(b"\n").partition(b" ")
    if not text.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body):
        return None
    try:
        return _LINE.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
