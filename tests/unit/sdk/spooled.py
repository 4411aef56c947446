"""Outcomes for spools, written by hand."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import msgspec

from tests.unit.sdk.scripted import KEY
from twiceshy._spool_record import Undelivered

URL = "http://guard.test"
SINCE = datetime(2026, 10, 12, 14, 0, tzinfo=UTC)


def undelivered(number: int, *, key: str = KEY, url: str = URL, result: object = 14, tool: str = "pay") -> Undelivered:
    """The commit of the attempt with this number."""
    attempt = UUID(int=number)
    body = {"attempt": str(attempt), "fence": 1, "result": result}
    return Undelivered(
        url=url, key=key, tool=tool, run="booking-42", attempt=attempt, fence=1, verb="commit", kind="succeeded",
        since=SINCE, body=msgspec.Raw(msgspec.json.encode(body)),
    )  # fmt: skip


def failure(number: int, *, data: object = None) -> Undelivered:
    """The rejection by the attempt with this number."""
    attempt = UUID(int=number)
    error = {"type": "Rejected", "message": "no money"} | ({} if data is None else {"data": data})
    body = {"attempt": str(attempt), "fence": 1, "kind": "rejected", "error": error}
    return Undelivered(
        url=URL, key=KEY, tool="pay", run=None, attempt=attempt, fence=1, verb="fail", kind="rejected",
        since=SINCE, body=msgspec.Raw(msgspec.json.encode(body)),
    )  # fmt: skip


def files(folder: Path) -> list[str]:
    """The names in a spool folder; none where it is missing."""
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []
