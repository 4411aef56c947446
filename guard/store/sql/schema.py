"""The schema's version: bring it up, take it down, and refuse a database whose schema is not the one of this code.

One migration runs at a time: it holds a lock of the database, and is one transaction.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

import guard
from guard.store.sql.address import Address, FileAddress, ServerAddress, parse
from guard.store.sql.database import Database
from guard.store.sql.faults import translated
from guard.store.sql.opening import refusal_of
from guard.store.sql.postgresql import connector
from guard.store.sql.refusals import SchemaOutdated, SchemaTooNew
from guard.store.sql.sqlite import writer_engine
from guard.store.sql.workers import Workers

_LOCK: Final = 7_492_305_811_204_663
"""Any number that no other program takes as an advisory lock."""
_LOCK_SECONDS: Final = 2.0
_VERSIONS: Final = sa.table("alembic_version", sa.column("version_num", sa.Text))


async def migrate(url: str) -> str:
    """Bring the database's schema to this code's version, making a SQLite file that is missing; return the version.

    Raises DatabaseRefused where it cannot be used, and StoreUnavailable.
    """

    def upgrade(connection: Connection, config: Config) -> None:
        _require_known(connection, address)
        command.upgrade(config, "head")

    address = parse(url)
    await _alter(address, upgrade)
    return head()


async def downgrade(url: str, revision: str = "base") -> None:
    """Take the database's schema down to a revision; with `base`, remove all of it and all that it holds."""
    await _alter(parse(url), lambda _, config: command.downgrade(config, revision))


async def require_current(database: Database, address: Address) -> None:
    """Check that the schema is this code's. Raises SchemaOutdated and SchemaTooNew."""
    held = await database.read_at_once(revision_of)
    if held == head():
        return
    if held is None:
        raise SchemaOutdated(f"{address.shown} has no schema yet: run `twiceshy migrate --database URL` once.")
    if held in _known():
        raise SchemaOutdated(
            f"The schema of {address.shown} is at {held}, this version needs {head()}: "
            "run `twiceshy migrate --database URL`."
        )
    raise _too_new(held, address)


async def require_file(address: FileAddress) -> None:
    """Check that the SQLite file is there and is a database.

    Raises FileRefused, FileLocked and, where it is missing, SchemaOutdated.
    """
    await _by_worker(lambda: _require_usable(address))
    if not address.path.exists():
        raise SchemaOutdated(f"There is no database {address.path} yet: run `twiceshy migrate --database URL` once.")


def head() -> str:
    """Return the newest revision that this code knows."""
    return next(iter(_known()))


def folder() -> Path:
    """Return where the migrations are: inside the installed package, else at the top of the repository."""
    package = Path(guard.__file__).parent
    shipped = package / "migrations"
    return shipped if shipped.is_dir() else package.parent / "migrations"


def _known() -> list[str]:
    return [script.revision for script in ScriptDirectory(str(folder())).walk_revisions()]


def _require_known(connection: Connection, address: Address) -> None:
    held = revision_of(connection)
    if held is not None and held not in _known():
        raise _too_new(held, address)


def _too_new(held: str, address: Address) -> SchemaTooNew:
    return SchemaTooNew(
        f"The schema of {address.shown} is at {held}, which is newer than this version ({head()}): "
        "upgrade with `pip install --upgrade twiceshy-server`."
    )


def revision_of(connection: Connection) -> str | None:
    """Select the revision of the schema."""
    if not sa.inspect(connection).has_table(_VERSIONS.name):
        return None
    return connection.execute(sa.select(_VERSIONS.c.version_num)).scalar()


async def _alter(address: Address, change: Callable[[Connection, Config], None]) -> None:
    def work(connection: Connection) -> None:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(folder()).replace("%", "%%"))
        change(connection, config)

    if isinstance(address, FileAddress):
        await _by_worker(lambda: _alter_file(address, work))
    else:
        await _alter_server(address, work)


async def _by_worker(work: Callable[[], None]) -> None:
    """Open a file only where a fork is waited for."""
    worker = Workers(1, "twiceshy-schema")
    try:
        await worker.do(work)
    finally:
        await worker.close()


def _alter_file(address: FileAddress, work: Callable[[Connection], None]) -> None:
    _require_usable(address)
    engine = writer_engine(address, "rwc")
    with translated(), engine.begin() as connection:
        work(connection)


def _require_usable(address: FileAddress) -> None:
    """Check that the file could be written and, where it exists, is a database. Raises FileRefused, FileLocked."""
    address.require_folder()
    if not address.path.exists():
        return
    try:
        with closing(sqlite3.connect(address.uri("rw"), uri=True, timeout=_LOCK_SECONDS)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        raise refusal_of(error, address) from error


async def _alter_server(address: ServerAddress, work: Callable[[Connection], None]) -> None:
    engine = create_async_engine("postgresql+asyncpg://", async_creator=connector(address, {}), poolclass=NullPool)
    with translated():
        async with engine.begin() as connection:
            await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            await connection.run_sync(work)
