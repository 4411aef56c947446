"""What a database says of itself: version, schema, time, and whether a power cut may rob it of what it promised."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant
from guard.ports.description import Description
from guard.store.sql.schema import revision_of

_PROMISES: Final = ("fsync", "full_page_writes", "synchronous_commit")
_SYNCHRONOUS: Final[Mapping[int, str]] = {0: "off", 1: "normal", 2: "full", 3: "extra"}


def describe(connection: Connection, at: Instant, needed: str) -> Description:
    """Describe the database of a connection that writes: on SQLite durability is the connection's own."""
    revision = revision_of(connection)
    if connection.dialect.name == "postgresql":
        durability = _promises_of_server(connection)
        return Description(
            kind="postgresql", version=_version_of_server(connection), revision=revision, needed=needed, now=at,
            durability=durability, is_durable=all(value != "off" for value in durability.values()),
        )  # fmt: skip
    durability = _promises_of_file(connection)
    return Description(
        kind="sqlite", version=_version_of_library(connection), revision=revision, needed=needed, now=at,
        durability=durability, is_durable=durability["synchronous"] in ("full", "extra"),
        free_bytes=shutil.disk_usage(_file(connection).parent).free,
    )  # fmt: skip


def _version_of_server(connection: Connection) -> str:
    """Select the server's version."""
    return str(connection.execute(sa.select(sa.func.current_setting("server_version"))).scalar_one())


def _promises_of_server(connection: Connection) -> dict[str, str]:
    """Select the settings that make a commit survive a power cut."""
    settings = sa.select(*(sa.func.current_setting(name).label(name) for name in _PROMISES))
    return {name: str(value) for name, value in connection.execute(settings).mappings().one().items()}


def _version_of_library(connection: Connection) -> str:
    """Select the version of SQLite."""
    return str(connection.execute(sa.select(sa.func.sqlite_version())).scalar_one())


def _promises_of_file(connection: Connection) -> dict[str, str]:
    """Read the settings that make a commit survive a power cut."""
    journal_mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
    synchronous = connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
    return {"journal_mode": str(journal_mode), "synchronous": _SYNCHRONOUS[synchronous]}


def _file(connection: Connection) -> Path:
    """Read where the database file is."""
    (main,) = (row for row in connection.exec_driver_sql("PRAGMA database_list") if row[1] == "main")
    return Path(main[2])
