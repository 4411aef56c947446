"""The file that a database was opened as: the same one must still be at its path, or nothing is promised any more.

A file that was removed or renamed goes on living, nameless, for whoever has it open. What is written to it then is
lost with the process, and the next one that opens the path knows nothing of it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from guard.ports.store import FileUnavailable, StoreUnavailable
from guard.store.sql.address import FileAddress
from guard.store.sql.faults import translated
from guard.store.sql.opening import refusal_of


class File:
    """One file at one path, known from its first use on."""

    def __init__(self, address: FileAddress) -> None:
        self._address: Final = address
        self._path: Final = str(address.path.absolute())
        self._known: tuple[int, int] | None = None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Check that it is still the file, and say what hinders its use for people. Raises the port's errors."""
        self._check()
        try:
            with translated():
                yield
        except StoreUnavailable as error:
            raise FileUnavailable(str(refusal_of(error, self._address))) from error.__cause__

    def _check(self) -> None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - before every batch
        except FileNotFoundError as error:
            raise FileUnavailable(self._gone("is gone")) from error
        except OSError as error:
            raise FileUnavailable(str(refusal_of(error, self._address))) from error
        place = (found.st_dev, found.st_ino)
        if self._known is None:
            self._known = place
        elif self._known != place:
            raise FileUnavailable(self._gone("is another file now"))

    def _gone(self, what: str) -> str:
        if self._known is None:
            return f"{self._path} {what}. Bring it back, or name the file that is meant."
        return (
            f"{self._path} {what}: the record was removed, renamed or replaced while it was in use. Nothing is done "
            "without it, for it knows what was done before. Bring that file back, with its -wal; or start the program "
            "again to go on with what is there now."
        )
