"""Retention as the service does it: by what each tool says, and the process that does it is told to forget."""

from guard.core.effects import SECOND, Key
from guard.ports.store import Store
from guard.service.registry import Registry
from guard.service.retention import Retention
from guard.store.sql.tables import effects, runs
from tests.contract.given import TENANT, key, look, opened
from tests.contract.test_retention_store import aged, done
from twiceshy_contract.tools import ToolDeclaration

DAY = 24 * 3600 * SECOND
BRIEF = ToolDeclaration(retention_seconds=60)


async def pass_by(url: str, days: int) -> None:
    """Let days pass for what has ended."""
    await aged(url, effects, effects.c.ended_at > 0, ended_at=effects.c.ended_at - days * DAY)
    earlier = {name: runs.c[name] - days * DAY for name in ("ended_at", "kept_until")}
    await aged(url, runs, runs.c.ended_at > 0, **earlier)


async def test_each_tool_is_kept_as_long_as_it_says_and_the_process_is_told_to_forget(
    store: Store, database_url: str
) -> None:
    forgotten: list[Key] = []
    retention = Retention(store.retention, Registry(store.tools), lambda _tenant, keys: forgotten.extend(keys))
    await store.tools.declare(TENANT, {"brief": BRIEF})
    run = await opened(store)
    for number, holder, tool in ((1, None, "brief"), (2, run, "brief"), (3, None, "plain"), (4, run, "plain")):
        await done(store, number, holder, tool=tool)
    await store.runs.end(TENANT, run.name, "finished")
    assert not await retention.run_once()
    assert forgotten == []
    gone_after = []
    for days in (1, 1, 1, 26, 1):
        await pass_by(database_url, days)
        await retention.run_once()
        gone_after.append(sorted(int.from_bytes(gone[6:], "big") for gone in forgotten))
    assert gone_after == [[1, 2], [1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4]]
    assert (await look(store, 4)).expired_at is not None
    assert (await opened(store)).expired_at is not None


async def test_a_retention_that_was_shortened_is_obeyed_within_a_day(store: Store, database_url: str) -> None:
    forgotten: list[Key] = []
    retention = Retention(store.retention, Registry(store.tools), lambda _tenant, keys: forgotten.extend(keys))
    run = await opened(store)
    await done(store, 1, run, tool="tool")
    await store.runs.end(TENANT, run.name, "finished")
    await retention.run_once()
    assert await store.retention.due_runs(10) == []
    await store.tools.declare(TENANT, {"tool": BRIEF})
    await pass_by(database_url, 1)
    await Retention(store.retention, Registry(store.tools), lambda _tenant, keys: forgotten.extend(keys)).run_once()
    assert forgotten == [key(1)]
