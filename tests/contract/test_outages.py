"""What a store says while its database is away, held or killed, and that it recovers by itself."""

import asyncio
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.exc import TimeoutError as PoolTimeout

from guard.ports.search import RunFilter
from guard.ports.steps import Found, Written
from guard.ports.store import FileUnavailable, Store, StoreUnavailable
from guard.store.sql.engine import open_store
from guard.store.sql.faults import translated
from guard.store.sql.schema import migrate
from tests.contract.given import TENANT, insert, look, one, opened, written
from tests.servers import PostgresServer


async def test_a_killed_database_is_unavailable_and_found_again(own_postgres_server: PostgresServer) -> None:
    url = own_postgres_server.url()
    await migrate(url)
    store = await open_store(url)
    try:
        run = await opened(store)
        kept = (await written(store, insert(1, run))).effect
        await _kill_in_the_middle(own_postgres_server, store)
        for call in _calls(store):
            with pytest.raises(StoreUnavailable):
                await asyncio.wait_for(call(), 8)
        own_postgres_server.start()
        assert await look(store, 1) == kept
        assert isinstance(await one(store, insert(2)), Written)
        assert await opened(store) == (await store.runs.page(TENANT, RunFilter(limit=1)))[0][0]
        await store.check()
    finally:
        await store.close()


async def test_a_database_that_restarted_between_two_calls_is_not_noticed(own_postgres_server: PostgresServer) -> None:
    url = own_postgres_server.url()
    await migrate(url)
    store = await open_store(url)
    try:
        await written(store, insert(1))
        await opened(store)
        await asyncio.to_thread(own_postgres_server.restart)
        assert isinstance(await one(store, insert(1)), Found)
        await opened(store)
    finally:
        await store.close()


async def test_a_database_that_is_not_there_is_unavailable(own_postgres_server: PostgresServer) -> None:
    own_postgres_server.stop()
    with pytest.raises(StoreUnavailable):
        await open_store(own_postgres_server.url())
    with pytest.raises(StoreUnavailable):
        await migrate(own_postgres_server.url())


async def test_a_lock_held_too_long_by_others_is_unavailable_and_then_forgotten(
    store: Store, database_url: str
) -> None:
    async with _held(database_url):
        with pytest.raises(StoreUnavailable):
            await one(store, insert(1))
    assert isinstance(await one(store, insert(1)), Written)


@pytest.mark.parametrize("backend", ["sqlite"])
async def test_a_file_that_is_moved_away_is_unavailable_until_it_is_brought_back(
    store: Store, database_url: str
) -> None:
    file = _file(database_url)
    await written(store, insert(1))
    run = await opened(store)
    away = _moved(file, file.with_name("away.db"))
    for call in _calls(store):
        with pytest.raises(FileUnavailable, match=r"guard\.db is gone: the record was removed, renamed or replaced"):
            await call()
    shutil.copy(away, file)  # the same bytes, and yet not the file that is written to
    for call in _calls(store):
        with pytest.raises(FileUnavailable, match=r"guard\.db is another file now: .*start the program again"):
            await call()
    _moved(away, file)
    assert isinstance(await one(store, insert(1)), Found)
    assert await opened(store) == run


@pytest.mark.parametrize("backend", ["sqlite"])
async def test_a_file_that_is_removed_takes_no_more_writes(store: Store, database_url: str) -> None:
    await written(store, insert(1))
    _remove(_file(database_url))
    with pytest.raises(FileUnavailable, match="Bring that file back"):
        await one(store, insert(2))


@pytest.mark.parametrize("backend", ["sqlite"])
async def test_a_file_that_others_lock_is_named_with_who_locks_it(store: Store, database_url: str) -> None:
    async with _held_by_another_process(database_url) as holder:
        named = rf" \(process {holder}\)" if _LOCKS_ARE_TOLD else ""
        with pytest.raises(FileUnavailable, match=rf"guard\.db is locked by another program{named}\. Close that"):
            await one(store, insert(1))
    assert isinstance(await one(store, insert(1)), Written)


async def test_a_cancelled_call_leaves_the_lane_usable(store: Store) -> None:
    call = asyncio.create_task(store.effects.apply(0, [insert(1)]))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert isinstance(await one(store, insert(2)), Written)


def test_who_waits_for_a_connection_in_vain_hears_why() -> None:
    said = r"^Too many requests wait for the database: .*nothing was done"
    with pytest.raises(StoreUnavailable, match=said), translated():
        raise PoolTimeout("QueuePool limit of size 4 overflow 4 reached, connection timed out, timeout 2.00")


def _calls(store: Store) -> list[Callable[[], Awaitable[object]]]:
    return [
        lambda: store.effects.apply(0, [insert(1)]),
        lambda: store.effects.apply(store.effects.lanes - 1, [insert(1)]),
        lambda: store.effects.overdue(1),
        lambda: store.runs.open(TENANT, ["new"]),
        lambda: store.tools.all(TENANT),
        store.check,
    ]


async def _kill_in_the_middle(server: PostgresServer, store: Store) -> None:
    """Kill the server while a batch waits in it for a lock."""
    holder = await asyncpg.connect(server.url())
    await holder.execute("BEGIN; LOCK TABLE effects IN ACCESS EXCLUSIVE MODE")
    batch = asyncio.create_task(store.effects.apply(0, [insert(2)]))
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    while not await holder.fetchval(waiting):
        assert not batch.done()
    await asyncio.to_thread(server.kill)
    with pytest.raises(StoreUnavailable):
        await batch
    holder.terminate()


@asynccontextmanager
async def _held(url: str) -> AsyncIterator[None]:
    """Hold a lock that every batch needs."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
        return
    holder = await asyncpg.connect(url)
    await holder.execute("BEGIN; LOCK TABLE effects IN ACCESS EXCLUSIVE MODE")
    try:
        yield
    finally:
        await holder.close()


@asynccontextmanager
async def _held_by_another_process(database_url: str) -> AsyncIterator[int]:
    """Let a process of its own hold the write lock; yield its id."""
    hold = (
        "import sqlite3, sys; held = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "held.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.readline()"
    )
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", hold, database_url.removeprefix("sqlite:///"),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    try:
        yield holder.pid
    finally:
        await holder.communicate(b"go\n")


_LOCKS_ARE_TOLD = Path("/proc/locks").exists()


def _file(database_url: str) -> Path:
    return Path(database_url.removeprefix("sqlite:///"))


def _moved(file: Path, place: Path) -> Path:
    return file.replace(place)


def _remove(file: Path) -> None:
    file.unlink()
