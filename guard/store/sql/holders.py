"""Who holds a lock on a file, as far as the system tells."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LOCKS: Final = Path("/proc/locks")


def holders(path: Path) -> list[int]:
    """Return the other processes that hold a lock on a SQLite file or on what belongs to it; none where nobody tells.

    Where some hold it for writing these are meant: whoever has the file open holds a lock for reading. Linux only,
    and read from the system's list: to open and close the file itself would drop our own locks.
    """
    places = {place for suffix in ("", "-shm") if (place := _place(Path(f"{path}{suffix}"))) is not None}
    found = {(process, kind) for process, kind, place in _locks() if place in places and process > 0}
    others = {(process, kind) for process, kind in found if process != os.getpid()}
    writing = {process for process, kind in others if kind == "WRITE"}
    return sorted(writing or {process for process, _ in others})


def _place(path: Path) -> tuple[int, int, int] | None:
    """Return where a file is: the major and minor number of its device, and its inode."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev >> 8 & 0xFFF, found.st_dev & 0xFF | found.st_dev >> 12 & 0xFFF00, found.st_ino


def _locks() -> Iterator[tuple[int, str, tuple[int, int, int]]]:
    try:
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        if "->" not in words and len(words) == 8:
            major, minor, inode = words[5].split(":")
            yield int(words[4]), words[3], (int(major, 16), int(minor, 16), int(inode))
