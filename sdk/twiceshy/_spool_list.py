"""The spool as somebody from outside sees it: nothing is taken, written or sent."""

from datetime import datetime
from pathlib import Path
from uuid import UUID

import msgspec

from twiceshy._spool_file import files_in, maker_of, refused_in
from twiceshy._spool_lock import Owner, owner
from twiceshy._spool_record import Kind, Refusal, Waiting, read


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome that waits in a file, and how it stands with the process that wrote it."""

    file: str
    process: str
    owner: Owner
    key: str
    tool: str
    run: str | None
    attempt: UUID
    fence: int
    kind: Kind
    since: datetime
    tries: int
    reason: str | None
    url: str
    report: msgspec.Raw


class RefusedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome that the service refused for good: it is kept for people, and never sent."""

    file: str
    key: str
    tool: str
    run: str | None
    attempt: UUID
    fence: int
    kind: Kind
    since: datetime
    refused: datetime
    reason: str
    url: str
    report: msgspec.Raw


def look_at_refused(folder: Path) -> list[RefusedEntry]:
    """Return all that was refused for good, the oldest file first. Raises OSError."""
    return [
        _refused(path, refusal) for path in refused_in(folder) for refusal in read(path.read_bytes()).refused.values()
    ]


def look(folder: Path) -> list[Entry]:
    """Return all that waits, the oldest file first, each in the order of writing. Raises OSError."""
    entries: list[Entry] = []
    for path in files_in(folder):
        try:
            lives, content = owner(path), path.read_bytes()
        except FileNotFoundError:  # it was delivered meanwhile
            continue
        entries += (_entry(path, lives, waiting) for waiting in read(content).waiting.values())
    return entries


def _entry(path: Path, lives: Owner, waiting: Waiting) -> Entry:
    outcome = waiting.outcome
    return Entry(
        file=str(path),
        process=maker_of(path),
        owner=lives,
        key=outcome.key,
        tool=outcome.tool,
        run=outcome.run,
        attempt=outcome.attempt,
        fence=outcome.fence,
        kind=outcome.kind,
        since=outcome.since,
        tries=waiting.tries,
        reason=waiting.reason or None,
        url=outcome.url,
        report=outcome.body,
    )


def _refused(path: Path, refusal: Refusal) -> RefusedEntry:
    outcome = refusal.outcome
    return RefusedEntry(
        file=str(path),
        key=outcome.key,
        tool=outcome.tool,
        run=outcome.run,
        attempt=outcome.attempt,
        fence=outcome.fence,
        kind=outcome.kind,
        since=outcome.since,
        refused=refusal.at,
        reason=refusal.reason,
        url=outcome.url,
        report=outcome.body,
    )
