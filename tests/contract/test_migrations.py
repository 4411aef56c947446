"""The schema: up and down on both databases, equal to the tables in the code, and refused when it is another one."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from guard.store.sql import schema
from guard.store.sql.engine import open_store
from guard.store.sql.outbox_tables import outbox
from guard.store.sql.refusals import AddressRefused, FileRefused, SchemaOutdated, SchemaTooNew
from tests.contract.given import insert, written

_OF_SQLITE_ALONE = {"holds_claiming"}
"""PostgreSQL has the index of its exclusion constraint in the place of this one."""


async def test_the_schema_goes_up_and_down_and_up_again(empty_database_url: str) -> None:
    assert await schema.migrate(empty_database_url) == "0006_plain_batches"
    assert await schema.migrate(empty_database_url) == "0006_plain_batches"
    await schema.downgrade(empty_database_url)
    assert await _look(empty_database_url, lambda held: sa.inspect(held).get_table_names()) == ["alembic_version"]
    await schema.migrate(empty_database_url)
    store = await open_store(empty_database_url)
    try:
        await written(store, insert())
    finally:
        await store.close()


async def test_the_migrated_schema_is_that_of_the_tables(database_url: str) -> None:
    def is_of_this_database(_thing: object, name: str | None, *_rest: object) -> bool:
        is_partition = (name or "").startswith("outbox_history_") and name != "outbox_history_message"
        return not is_partition and (database_url.startswith("sqlite") or name not in _OF_SQLITE_ALONE)

    def differences(connection: Connection) -> list[object]:
        opts = {"compare_type": True, "compare_server_default": True, "include_object": is_of_this_database}
        context = MigrationContext.configure(connection, opts=opts)
        return list(compare_metadata(context, outbox.metadata))

    assert await _look(database_url, differences) == []


async def test_the_default_tenant_is_there(database_url: str) -> None:
    names = sa.text("SELECT name FROM tenants WHERE id = 1")
    assert await _look(database_url, lambda held: held.execute(names).scalars().all()) == ["default"]


async def test_several_that_migrate_at_once_do_it_once(empty_database_url: str) -> None:
    revisions = await asyncio.gather(*(schema.migrate(empty_database_url) for _ in range(4)))
    assert revisions == ["0006_plain_batches"] * 4


async def test_a_database_without_schema_is_refused(empty_database_url: str, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(SchemaOutdated, match="run `twiceshy migrate"):
        await open_store(empty_database_url)


async def test_a_newer_schema_is_refused(database_url: str) -> None:
    await _look(
        database_url, lambda held: held.execute(sa.text("UPDATE alembic_version SET version_num = '9999_later'"))
    )
    for use in (open_store, schema.migrate):
        with pytest.raises(
            SchemaTooNew, match=r"at 9999_later, which is newer than this version \(0006_plain_batches\)"
        ):
            await use(database_url)


async def test_an_older_schema_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_known", lambda: ["0007_later", "0006_plain_batches"])
    with pytest.raises(
        SchemaOutdated, match=r"is at 0006_plain_batches, this version needs 0007_later: run `twiceshy migrate"
    ):
        await open_store(database_url)


async def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(SchemaOutdated, match=r"missing\.db yet: run `twiceshy migrate"):
        await open_store(f"sqlite:///{tmp_path / 'missing.db'}")
    assert not (tmp_path / "missing.db").exists()


async def test_a_missing_folder_is_refused_by_its_name(tmp_path: Path) -> None:
    for use in (open_store, schema.migrate):
        with pytest.raises(FileRefused, match=r"the folder .*/nowhere does not exist"):
            await use(f"sqlite:///{tmp_path / 'nowhere' / 'guard.db'}")


async def test_a_file_that_is_no_database_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear all, " * 1000, encoding="utf-8")
    for use in (open_store, schema.migrate):
        with pytest.raises(FileRefused, match=r"letter\.txt is not a database"):
            await use(f"sqlite:///{path}")
    with pytest.raises(FileRefused, match="is a folder"):
        await open_store(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize(
    "url",
    ["guard.db", "mysql://host/db", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///a.db?mode=ro", ""],
)
async def test_an_address_that_is_not_understood_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused, match=r"Give sqlite:///path/to/file\.db or postgresql://"):
        await open_store(url)


async def test_an_odd_file_name_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a %25#& ü.db"
    await schema.migrate(f"sqlite:///{str(path).replace('%', '%25')}")
    assert path.is_file()


async def _look(url: str, work: Callable[[Connection], object]) -> object:
    """Do something on a bare connection of the database."""
    if url.startswith("sqlite"):
        with sa.create_engine(url, poolclass=NullPool).begin() as connection:
            return work(connection)
    remote = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"), poolclass=NullPool)
    async with remote.begin() as held:
        return await held.run_sync(work)
