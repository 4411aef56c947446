"""The letterbox as the demo sees it: what arrived, what was kept, and which answers never come."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

from guard.demo.http import JsonService
from guard.demo.processes import ChildFailed

LetterFault = Literal["webhook-answer", "mail-recipient", "mail-receipt"]
"""The answer that never comes: to a webhook that was kept, to the naming of a recipient, to mail that was kept."""

_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02


class Letters:
    """The letterbox: its own file, and its service."""

    def __init__(self, url: str, mail_port: int, file: Path) -> None:
        self.hook_url: Final = f"{url}/hook"
        self.mail_port: Final = mail_port
        self._service = JsonService(url)
        self._file = file

    def hold_back(self, fault: LetterFault) -> None:
        """Let the next answer of this kind never come."""
        self._service.post("/faults", {"fault": fault}, dict[str, str])

    def arrived(self, kind: str) -> int:
        """Read from the file how often something was sent here."""
        return self._count("SELECT count(*) FROM arrivals WHERE kind = ?", kind)

    def kept(self, kind: str) -> int:
        """Read from the file how much there is now."""
        return self._count("SELECT count(*) FROM arrivals WHERE kind = ? AND is_kept", kind)

    def see_arrive(self, kind: str, number: int) -> None:
        """Wait until so much of a kind was sent. Raises ChildFailed."""
        wait_until(lambda: self.arrived(kind) >= number, f"{number} {kind}s to arrive")

    def _count(self, question: str, kind: str) -> int:
        with closing(sqlite3.connect(f"{self._file.as_uri()}?mode=ro", uri=True)) as connection:
            return int(connection.execute(question, (kind,)).fetchone()[0])


def wait_until(happens: Callable[[], bool], what: str) -> None:
    """Wait for something that the demo's processes do. Raises ChildFailed."""
    until = time.monotonic() + _SECONDS
    while not happens():
        if time.monotonic() > until:
            raise ChildFailed(f"The demo waited {_SECONDS:.0f} seconds for {what}.")
        time.sleep(_POLL_SECONDS)
