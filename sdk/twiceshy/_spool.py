"""The spool of one guard: outcomes that their service could not be told of yet, in files that outlast the process.

Every outcome that is kept stays on disk until it was taken or refused for good. No outcome is sent to another service
than the one it is for.
"""

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from twiceshy._spool_file import SpoolFile, files_in
from twiceshy._spool_record import Undelivered
from twiceshy.exceptions import SetupError

SPOOL_VARIABLE: Final = "TWICESHY_SPOOL"
DEFAULT_SPOOL: Final = "./twiceshy.spool"
OFF: Final = "off"
_log = logging.getLogger("twiceshy")


def spool_folder(given: str | os.PathLike[str] | msgspec.UnsetType | None = msgspec.UNSET) -> Path | None:
    """Return the folder that was given, else the one of the environment, else the default; None switches it off.

    Raises SetupError where what was given names no folder.
    """
    chosen = os.environ.get(SPOOL_VARIABLE) or DEFAULT_SPOOL if isinstance(given, msgspec.UnsetType) else given
    if chosen is not None and not _names_folder(chosen):
        raise SetupError(f"spool={chosen!r} names no folder. Give a folder, or None to keep nothing.")
    return None if chosen is None or chosen == OFF else Path(chosen).absolute()


def _names_folder(given: object) -> bool:
    return isinstance(given, (str, os.PathLike)) and bool(os.fspath(given))


class Spool:
    """The file of this guard in this process, and the files of dead processes that it has taken over."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder: Final = folder
        self.url: Final = url
        self._passed_over: set[Path] = set()
        self._foreign: set[Path] = set()
        self.start_anew()

    def start_anew(self) -> None:
        """Begin empty: in a forked child the parent's lock and outcomes are none of ours."""
        self._lock = threading.Lock()
        self._own: SpoolFile | None = None
        self._adopted: list[SpoolFile] = []
        self._held: set[UUID] = set()

    def leave_to_parent(self) -> None:
        """Close a forked child's copies of the parent's files, so that the locks end with the parent alone."""
        files = [*self._adopted, *([] if self._own is None else [self._own])]
        self.start_anew()
        for file in files:
            with suppress(OSError):
                file.let_go()

    @property
    def has_waiting(self) -> bool:
        """Whether an outcome waits that nobody else is sending."""
        return bool(self._adopted) or (self._own is not None and len(self._own.waiting) > len(self._held))

    def keep(self, outcome: Undelivered) -> Path:
        """Write an outcome durably and return where. It is its caller's to send until it is handed over."""
        with self._lock:
            file = self._ready_file()
            if outcome.attempt not in file.waiting:
                self._held.add(outcome.attempt)
                try:
                    file.keep(outcome)
                except BaseException:
                    self._held.discard(outcome.attempt)
                    self._tidy(file)
                    raise
            return file.path

    def hand_over(self, attempt: UUID) -> None:
        """Let the spool send an outcome that its caller sends no more."""
        with self._lock:
            self._held.discard(attempt)

    def settle(self, attempt: UUID) -> None:
        """Let an outcome wait no more: it was taken, or refused for good."""
        with self._lock:
            self._held.discard(attempt)
            for file in self._files():
                if attempt in file.waiting:
                    file.settle(attempt)
                    self._tidy(file)

    def refuse(self, attempt: UUID, reason: str) -> Path | None:
        """Let an outcome wait no more that was refused for good; return where it is kept. Raises OSError."""
        path: Path | None = None
        with self._lock:
            for file in self._files():
                if attempt in file.waiting:
                    path = file.refuse(attempt, reason)
        self.settle(attempt)
        return path

    def note(self, attempt: UUID, reason: str) -> None:
        """Count a try that was in vain."""
        with self._lock:
            for file in self._files():
                if attempt in file.waiting:
                    file.note(attempt, reason)

    def queues(self) -> list[list[Undelivered]]:
        """Return what is to be sent: one queue an effect, each in the order of writing.

        An effect that a caller is still reporting on is left out.
        """
        queues: dict[str, list[Undelivered]] = {}
        with self._lock:
            waiting = {attempt: one.outcome for file in self._files() for attempt, one in file.waiting.items()}
            held = {outcome.key for attempt, outcome in waiting.items() if attempt in self._held}
        for outcome in waiting.values():
            if outcome.key not in held and self._is_for_us(outcome):
                queues.setdefault(outcome.key, []).append(outcome)
        return list(queues.values())

    @property
    def has_passed_over(self) -> bool:
        """Whether something in the folder could not be read or taken over."""
        return bool(self._passed_over)

    def has_strangers(self) -> bool:
        """Tell whether there are files that may be of dead processes."""
        return bool(self._strangers())

    def adopt(self) -> None:
        """Take over the files of dead processes that hold outcomes for our service."""
        for path in self._strangers():
            try:
                with self._lock:
                    self._take_over(path)
            except OSError as error:
                self._pass_over(path, f"it cannot be taken over: {error}")

    def let_go(self) -> None:
        """Leave all files to whoever adopts them."""
        with self._lock:
            files, self._own, self._adopted = list(self._files()), None, []
            self._held.clear()
            for file in files:
                file.let_go()

    def _ready_file(self) -> SpoolFile:
        """Return our file; where somebody removed it, a new one that holds all that still waits."""
        gone = self._own
        if gone is not None and not gone.is_gone:
            return gone
        file = SpoolFile.create(self.folder)
        if gone is not None:
            for waiting in gone.waiting.values():
                file.keep(waiting.outcome)
            gone.let_go()
        self._own = file
        return file

    def _take_over(self, path: Path) -> None:
        file = SpoolFile.adopt(path)
        if file is None:
            return
        if file.unread is not None:
            self._pass_over(path, file.unread)
        if not file.is_ours:
            self._foreign.add(path)
            file.let_go()
            return
        if file.waiting and not any(self._is_for_us(waiting.outcome) for waiting in file.waiting.values()):
            file.let_go()
            return
        if file.waiting:
            _log.info("%s is of a dead process; its %d outcomes are sent now.", path, len(file.waiting))
        self._adopted.append(file)
        self._tidy(file)

    def _tidy(self, file: SpoolFile) -> None:
        """Remove a file in which nothing waits; let go of one in which nothing waits for us."""
        if any(self._is_for_us(waiting.outcome) for waiting in file.waiting.values()):
            return
        if file is self._own:
            self._own = None
        else:
            self._adopted.remove(file)
        if file.waiting:
            file.let_go()
        else:
            file.remove()

    def _files(self) -> list[SpoolFile]:
        return [*self._adopted, *([] if self._own is None else [self._own])]

    def _strangers(self) -> list[Path]:
        ours = self._foreign | {file.path for file in self._files()}
        try:
            return [path for path in files_in(self.folder) if path not in ours]
        except OSError as error:
            self._pass_over(self.folder, f"it cannot be read: {error}")
            return []

    def _is_for_us(self, outcome: Undelivered) -> bool:
        return outcome.url == self.url

    def _pass_over(self, path: Path, why: str) -> None:
        """Say once that a file or folder is passed over."""
        if path not in self._passed_over:
            self._passed_over.add(path)
            _log.warning("Undelivered outcomes may wait in %s, and are not all sent: %s.", path, why)
