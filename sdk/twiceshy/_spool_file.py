"""One spool file: written by the process that made it, and by nobody else until that one is dead.

A file appears under its name only once its owner holds the lock, and leaves it only under the lock. It stands while
an outcome waits in it. A file without one line that is proven ours is never written, renamed or removed.
"""

import logging
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self
from uuid import UUID

from twiceshy._spool_lock import take
from twiceshy._spool_record import (
    Done,
    Kept,
    Line,
    Refusal,
    Tried,
    Undelivered,
    Waiting,
    apply,
    head,
    now,
    read,
    write,
)

_ENDING: Final = ".jsonl"
_DAMAGED: Final = ".damaged"
_REFUSED: Final = ".refused"
_NAME: Final = re.compile(r".+_\d+_[0-9a-f]+")
_WHOLE_NAME: Final = re.compile(r".+_\d+_[0-9a-f]{8}")
_ODD: Final = re.compile(r"[^A-Za-z0-9.]+")
_log = logging.getLogger("twiceshy")


class SpoolFile:
    """A spool file whose lock this process holds."""

    def __init__(self, path: Path, file: int) -> None:
        self._contents: Final = read(path.read_bytes())
        self.path: Final = path
        self.waiting: Final[dict[UUID, Waiting]] = self._contents.waiting
        self._file = file
        self._length = self._contents.length
        self._is_empty = not os.fstat(file).st_size and _WHOLE_NAME.fullmatch(path.stem) is not None

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Make the file of this process, and the folder where it is missing. Raises OSError."""
        _make(folder)
        host = _ODD.sub("-", socket.gethostname())[:100]
        path = folder / f"{host}_{os.getpid()}_{secrets.token_hex(4)}{_ENDING}"
        unready = path.with_suffix(".new")
        file = os.open(unready, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            take(file)
            os.write(file, write(head()))
            unready.rename(path)
            _sync_folder(folder)
            return cls(path, file)
        except BaseException:
            os.close(file)
            for left in (unready, path):
                with suppress(OSError):
                    left.unlink()
            raise

    @classmethod
    def adopt(cls, path: Path) -> Self | None:
        """Take over the file of a process that is dead. None where it lives, or where somebody else was faster."""
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            if take(file) and os.fstat(file).st_nlink:
                return cls(path, file)
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        return None

    @property
    def is_ours(self) -> bool:
        """Whether it is proven to be a spool file: by a line, or by its name where a power cut left it empty."""
        return self._contents.is_proven or self._is_empty

    @property
    def unread(self) -> str | None:
        """Say what in it cannot be read, and what to do about that. None where everything can."""
        contents = self._contents
        if not self.is_ours:
            return "it holds no whole line of a spool and is left as it is; move it away once you have looked at it"
        if contents.unknown:
            wrote = f"the one that wrote them: {contents.version}" if contents.version else "that one"
            return f"it holds {_lines(contents.unknown, 'unknown')} of a newer version; use {wrote}"
        if contents.damaged:
            return f"it holds {_lines(contents.damaged, 'damaged')}, kept aside once the rest is delivered"
        return None

    @property
    def is_gone(self) -> bool:
        """Whether somebody has removed the file."""
        return os.fstat(self._file).st_nlink == 0

    def keep(self, outcome: Undelivered) -> None:
        """Write an outcome so that it outlasts a power cut. Raises OSError; then the file is as it was before."""
        self._append(Kept(outcome=outcome), is_durable=True)

    def note(self, attempt: UUID, reason: str) -> None:
        """Count a try that was in vain. That it is on disk helps only who lists the spool."""
        with suppress(OSError):
            self._append(Tried(attempt=attempt, at=now(), reason=reason), is_durable=False)

    def settle(self, attempt: UUID) -> None:
        """Let an outcome wait no more. A loss of this word costs one more request, which changes nothing."""
        self.waiting.pop(attempt, None)
        with suppress(OSError):
            self._append(Done(attempt=attempt, at=now()), is_durable=False)

    def refuse(self, attempt: UUID, reason: str) -> Path:
        """Keep an outcome that was refused for good in a file beside, durably, and return which. Raises OSError."""
        path = self.path.with_suffix(_REFUSED)
        line = write(Refusal(outcome=self.waiting[attempt].outcome, at=now(), reason=reason))
        is_new = not path.exists()
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(file).st_size
            whole = size - len(path.read_bytes().rpartition(b"\n")[2])
            os.ftruncate(file, whole)  # what a crash has torn was not settled: it is refused once more
            _write(file, line)
            os.fsync(file)
        finally:
            os.close(file)
        if is_new:
            _sync_folder(path.parent)
        return path

    def remove(self) -> None:
        """Remove the file, in which nothing waits any more, and let go of it. What cannot be read is never removed."""
        try:
            if not self.is_ours or self._contents.unknown:
                _log.debug("%s is left as it is.", self.path)
            elif self._contents.damaged:
                kept = self.path.rename(self.path.with_suffix(_DAMAGED))
                _log.error("Nothing that can be read waits in it any more; the damaged lines are kept in %s.", kept)
            else:
                self.path.unlink()
        except OSError as error:
            _log.warning("%s is empty and cannot be removed: %s", self.path, error)
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Give up the lock. A forked child closes only its own copy: the parent keeps the lock."""
        os.close(self._file)

    def _append(self, line: Line, *, is_durable: bool) -> None:
        text = write(line)
        try:
            os.ftruncate(self._file, self._length)
            os.lseek(self._file, self._length, os.SEEK_SET)
            _write(self._file, text)
            if is_durable:
                os.fsync(self._file)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise
        self._length += len(text)
        apply(line, self.waiting)


def files_in(folder: Path) -> Iterator[Path]:
    """Name the spool files of a folder, the oldest first; none where it is missing. Raises OSError."""
    yield from _named(folder, _ENDING)


def refused_in(folder: Path) -> Iterator[Path]:
    """Name the files of a folder that hold what was refused for good, the oldest first. Raises OSError."""
    yield from _named(folder, _REFUSED)


def maker_of(path: Path) -> str:
    """Name the process that made a file, as its name says."""
    host, _, rest = path.stem.rpartition("_")[0].rpartition("_")
    return f"{host}:{rest}"


def _named(folder: Path, ending: str) -> Iterator[Path]:
    found: list[tuple[int, Path]] = []
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            if path.suffix == ending and _NAME.fullmatch(path.stem):
                with suppress(FileNotFoundError):
                    about = path.stat()
                    if stat.S_ISREG(about.st_mode):
                        found.append((about.st_mtime_ns, path))
    yield from (path for _, path in sorted(found))


def _lines(count: int, kind: str) -> str:
    return f"{count} {kind} line{'' if count == 1 else 's'}"


def _write(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Make a new name outlast a power cut, where the system lets a folder be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
