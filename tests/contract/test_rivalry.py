"""Several stores, and several processes, over one database."""

import asyncio
from uuid import UUID

import asyncpg
import pytest
from msgspec.structs import replace

from guard.core.effects import AttemptToken
from guard.ports.steps import Replace, RunClosed, Written
from guard.ports.store import Store
from guard.store.sql.engine import open_store
from tests.contract import rivals
from tests.contract.given import TENANT, finish, insert, look, one, opened, written
from twiceshy_contract.tools import ToolDeclaration


async def test_of_processes_that_begin_the_same_effects_one_wins_each(store: Store, database_url: str) -> None:
    won = await asyncio.to_thread(rivals.compete, database_url, rivals.begin_the_same, 3)
    assert [sum(column) for column in zip(*won, strict=True)] == [1] * 40
    assert (await opened(store)).effects == 40


async def test_of_processes_that_replace_one_version_one_wins(store: Store, database_url: str) -> None:
    await written(store, insert())
    counts = await asyncio.to_thread(rivals.compete, database_url, rivals.replace_the_same, 3)
    effect = await look(store)
    assert effect.version == 1 + sum(counts)
    assert effect.life.tries == 1 + sum(counts)
    assert max(counts) > 0


async def test_of_tasks_that_replace_one_version_one_wins(store: Store) -> None:
    began = (await written(store, insert())).effect
    step = Replace(seen=1, effect=began)
    lanes = store.effects.lanes
    answers = await asyncio.gather(*(store.effects.apply(at % lanes, [step]) for at in range(20)))
    assert sum(isinstance(answer, Written) for (answer,) in answers) == 1


async def test_batches_that_overlap_never_stand_in_each_others_way(store: Store, database_url: str) -> None:
    await asyncio.to_thread(rivals.compete, database_url, rivals.cross_the_others, 4)
    runs = await store.runs.open(TENANT, ["a", "b", "c"])
    assert sum(run.effects for run in runs) == sum(
        run.effects for run in await store.runs.open(TENANT, ["a", "b", "c"])
    )
    if database_url.startswith("postgresql"):
        assert (
            await _query(database_url, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 0
        )
        counted = await _query(database_url, "SELECT count(*) FROM effects")
        assert counted == sum(run.effects for run in runs)


async def test_a_run_that_ends_while_an_effect_begins_has_it_or_refuses_it(store: Store, database_url: str) -> None:
    other = await open_store(database_url)
    try:
        for number in range(25):
            run = await opened(store, f"run-{number}")
            answer, ended = await asyncio.gather(
                one(store, insert(number, run)), other.runs.end(TENANT, run.name, "finished")
            )
            assert ended is not None
            assert ended.state == "finished"
            after = await opened(store, run.name)
            assert after.effects == (1 if isinstance(answer, Written) else 0)
            assert isinstance(answer, Written | RunClosed)
    finally:
        await other.close()


async def test_processes_that_open_the_same_runs_get_the_same(store: Store, database_url: str) -> None:
    first, *rest = await asyncio.to_thread(rivals.compete, database_url, rivals.open_the_same, 3)
    assert all(other == first for other in rest)
    assert len(set(first)) == 20


async def test_processes_that_declare_one_tool_lose_no_version(store: Store, database_url: str) -> None:
    await asyncio.to_thread(rivals.compete, database_url, rivals.declare_by_turns, 3)
    (tool,) = await store.tools.all(TENANT)
    assert tool.version == 30


async def test_a_raised_class_outlives_a_rollback_that_comes_at_the_same_moment(
    store: Store, database_url: str
) -> None:
    first = ToolDeclaration(class_="idempotent", attempts=3, declared_by="code")
    second = ToolDeclaration(class_="idempotent", attempts=4, declared_by="code")
    raised = ToolDeclaration(class_="side_effect")
    other = await open_store(database_url)
    try:
        for number in range(20):
            name = f"tool-{number}"
            for declared in (first, second):
                await store.tools.declare(TENANT, {name: declared})
            await asyncio.gather(
                store.tools.declare(TENANT, {name: raised}), other.tools.declare(TENANT, {name: first})
            )
            assert (await store.tools.held(TENANT, [name]))[name].declaration.class_ == "side_effect"
    finally:
        await other.close()


@pytest.mark.parametrize("backend", ["postgresql"], indirect=False)
async def test_no_plan_of_the_hot_functions_scans_a_table(store: Store, database_url: str) -> None:
    """A plan made while a table is empty must not stay a scan of it, or of its index."""
    await _query(database_url, "VACUUM ANALYZE")
    run = await opened(store)
    for number in range(300, 1_300, 4):
        together = range(number, number + 4)
        await store.effects.apply(0, [insert(at, run) for at in together])
        await store.effects.apply(0, [finish(at) for at in together])
    for number in range(250):
        token = AttemptToken(run.id)
        began = (await written(store, insert(number, run, token))).effect
        lost = replace(began.life.attempts[0], report="unknown")
        second = replace(lost, token=AttemptToken(UUID(bytes=began.intent.key[16:])), fence=2, report="none")
        life = replace(began.life, fence=2, attempts=(lost, second))
        version = (await written(store, Replace(seen=1, effect=replace(began, life=life)))).effect.version
        await one(store, Replace(seen=version, effect=replace(began, life=life)))
        await look(store, number)
    await store.close()
    read = "SELECT sum(seq_tup_read)::int FROM pg_stat_user_tables WHERE relname IN ('effects', 'attempts', 'evidence')"
    await _query(database_url, "SELECT pg_stat_force_next_flush()")
    assert await _query(database_url, read) == 0
    of_indexes = "SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes WHERE relname IN ('effects', 'runs')"
    entries = await _query(database_url, of_indexes)
    assert isinstance(entries, int)
    assert 3_000 < entries < 30_000  # for 3,000 steps; a whole index read for each batch is ten times as much


async def _query(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()
