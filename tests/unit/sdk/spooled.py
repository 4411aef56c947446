"""Outcomes for spools, written by hand."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import msgspec

from tests.unit.sdk.scripted import KEY, Answer, ScriptedService
from twiceshy._spool import Spool
from twiceshy._spool_file import SpoolFile
from twiceshy._spool_record import Undelivered
from twiceshy._spooler import Spooler
from twiceshy._transports.base import NoReply

URL = "http://guard.test"
SILENCE = NoReply(reason="connection refused")
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


class Delivering:
    """A spooler with what it needs, in a folder of its own; time stands still."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service = ScriptedService()
        self.now = 1000.0
        self.spooler = Spooler(Spool(folder, "http://guard.test"), self.service, lambda: self.now, lambda: 1.0)

    def given(self, *outcomes: Undelivered) -> None:
        """Leave outcomes behind as a dead process does."""
        file = SpoolFile.create(self.folder)
        for outcome in outcomes:
            file.keep(outcome)
        file.let_go()

    def answers(self, *answers: Answer) -> None:
        self.service.answers = list(answers)

    @property
    def sent(self) -> list[int]:
        """The numbers of the attempts that were sent, in order."""
        bodies = self.service.bodies("/commit") + self.service.bodies("/fail")
        return [UUID(str(body["attempt"])).int for body in bodies]


def keys(spool: Spool) -> list[list[int]]:
    """The attempts of each queue, by number."""
    return [[outcome.attempt.int for outcome in queue] for queue in spool.queues()]


def of_the_dead(folder: Path, *numbers: int, url: str = "http://guard.test") -> Path:
    """Leave a file behind as a dead process does."""
    file = SpoolFile.create(folder)
    for number in numbers:
        file.keep(undelivered(number, url=url))
    file.let_go()
    return file.path
