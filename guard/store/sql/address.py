"""Where a database is: the two kinds of address that the store takes."""

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import msgspec

from guard.store.sql.refusals import AddressRefused, FileRefused

_FORMS: Final = "Give sqlite:///path/to/file.db or postgresql://user:password@host:port/database."


class FileAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A SQLite file."""

    path: Path

    @property
    def shown(self) -> str:
        """The address as it may be printed."""
        return f"sqlite:///{self.path}"

    def uri(self, mode: str) -> str:
        """Return SQLite's own URI of the file, opened read-write (`rw`) or created as well (`rwc`)."""
        return f"file:{quote(str(self.path.absolute()))}?mode={mode}"

    def require_folder(self) -> None:
        """Check that the file could be made and written. Raises FileRefused."""
        folder = self.path.absolute().parent
        if not folder.is_dir():
            raise FileRefused(f"{self.path} cannot be opened: the folder {folder} does not exist. Make it first.")
        if self.path.is_dir():
            raise FileRefused(f"{self.path} is a folder, not a database file. Name a file in it.")
        for place in (folder, self.path):
            if place.exists() and not os.access(place, os.W_OK):
                raise FileRefused(f"{self.path} cannot be written: no right to write {place}. Grant it.")


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A PostgreSQL database; `dsn` is read by asyncpg, with all the parameters it understands."""

    dsn: str

    @property
    def shown(self) -> str:
        """The address as it may be printed: without user, password and parameters."""
        parts = urlsplit(self.dsn)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"


Address = FileAddress | ServerAddress


def parse(url: str) -> Address:
    """Read an address. Raises AddressRefused."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator:
        raise AddressRefused(f"A database address has a scheme. {_FORMS}")
    if scheme in ("postgresql", "postgres", "postgresql+asyncpg"):
        return ServerAddress(dsn=f"postgresql://{rest}")
    if scheme != "sqlite":
        raise AddressRefused(f"There is no store for {scheme}. {_FORMS}")
    path = unquote(rest.removeprefix("/"))
    if not rest.startswith("/") or path in ("", ":memory:") or "?" in rest:
        raise AddressRefused(f"A SQLite address names one file, and nothing else. {_FORMS}")
    return FileAddress(path=Path(path))
