"""Retention: what was kept long enough becomes a tombstone; what is not final never does. Time is moved by SQL."""

from typing import Any
from uuid import UUID

import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy import Connection

from guard.core.effects import SECOND, Duration, Effect, Evidence, Fence, Instant
from guard.core.forks import Fork
from guard.core.runs import Run
from guard.ports.retention import Oldest
from guard.ports.steps import Replace
from guard.ports.store import EffectFilter, Store
from guard.store.sql.policy_tables import approvals, holds, loops, saga_steps, sagas
from guard.store.sql.retention import (
    select_alone,
    select_due,
    select_ended_holds,
    select_of_run,
    select_oldest,
    select_past_holds,
)
from guard.store.sql.tables import effects, runs
from tests.contract.given import (
    FIRST,
    SECOND_TOKEN,
    TENANT,
    finish,
    in_doubt,
    insert,
    key,
    look,
    opened,
    written,
)
from tests.contract.given_holds import changed, committed, placed, wish
from tests.contract.plans import plans

HOUR = Duration(3600 * SECOND)
DAY = Duration(24 * HOUR)
TOOL = insert().intent.tool
EARLIER = {"ended_at": Instant(1), "kept_until": Instant(1)}


async def aged(url: str, table: sa.Table, where: sa.ColumnElement[bool], **values: Any) -> None:
    """Write other times into rows, as if they had been written then."""
    await plans(url, lambda connection: connection.execute(sa.update(table).where(where).values(**values)))


async def done(store: Store, number: int, run: Run | None = None, *, tool: str = TOOL) -> Effect:
    step = insert(number, run)
    await written(store, replace(step, intent=replace(step.intent, tool=tool)))
    return (await written(store, finish(number))).effect


async def ended(store: Store, url: str, name: str = "booking-42") -> Run:
    """End a run, long ago."""
    run = await store.runs.end(TENANT, name, "finished")
    assert run is not None
    await aged(url, runs, runs.c.id == run.id, **EARLIER)
    return run


async def test_of_an_expired_effect_a_tombstone_stays(store: Store, database_url: str) -> None:
    began = await written(store, insert(1))
    lost = replace(began.effect.life.attempts[0], report="unknown", reported_at=began.at)
    second = replace(lost, token=SECOND_TOKEN, fence=Fence(2), report="succeeded")
    life = replace(
        began.effect.life, state="succeeded", fence=Fence(2), attempts=(lost, second), ended_at=began.at, tries=2
    )
    proof = Evidence(at=began.at, token=FIRST, kind="success", body=b'{"secret":1}')
    full = replace(began.effect, life=life, outcome=b'{"secret":2}', edited=b'{"secret":3}', resolution="by hand")
    kept = (await written(store, Replace(seen=1, effect=full, evidence=(proof,)))).effect
    await aged(database_url, effects, effects.c.key == key(1), ended_at=5)
    assert await store.retention.expire_alone(TENANT, TOOL, HOUR, 10) == [key(1)]
    tombstone = await look(store)
    assert tombstone.expired_at is not None
    assert tombstone == replace(
        kept,
        version=3,
        intent=replace(kept.intent, arguments=b"{}", worker=None),
        life=replace(life, attempts=(second,), ended_at=Instant(5)),
        outcome=None,
        edited=None,
        resolution=None,
        expired_at=tombstone.expired_at,
    )
    assert await store.effects.evidence(key(1)) == []
    assert (await store.effects.page(TENANT, EffectFilter()))[0] == [tombstone]
    assert await store.retention.expire_alone(TENANT, TOOL, HOUR, 10) == []


async def test_what_ended_later_is_of_another_tool_or_has_a_run_is_kept(store: Store, database_url: str) -> None:
    run = await opened(store)
    for number in (1, 2, 3, 4):
        await done(store, number, run if number == 4 else None, tool="other" if number == 3 else TOOL)
    await aged(database_url, effects, effects.c.key != key(2), ended_at=5)
    assert await store.retention.expire_alone(TENANT, TOOL, HOUR, 10) == [key(1)]
    assert [(await look(store, number)).expired_at for number in (2, 3, 4)] == [None, None, None]


async def test_what_is_not_final_never_expires(store: Store, database_url: str) -> None:
    run = await opened(store)
    for number, holder in enumerate((run, run, None, None), 1):
        began = await written(store, insert(number, holder))
        if number % 2:
            await written(store, Replace(seen=1, effect=in_doubt(began.effect, began.at)))
    pending = replace(await look(store, 2), life=replace((await look(store, 2)).life, state="pending"))
    await written(store, Replace(seen=1, effect=pending))
    await ended(store, database_url)
    await aged(database_url, effects, effects.c.key != b"", began_at=1, granted_at=1, lease_expires_at=1)
    assert await store.retention.oldest_alone(None) is None
    assert await store.retention.expire_alone(TENANT, TOOL, HOUR, 10) == []
    assert await store.retention.expire_of_run(run.id, {TOOL: HOUR}, DAY, 10) == []
    assert [(await look(store, number)).expired_at for number in (1, 2, 3, 4)] == [None] * 4
    assert (await opened(store)).expired_at is None


async def test_batches_take_the_oldest_first_and_no_more_than_their_limit(store: Store, database_url: str) -> None:
    for number in (1, 2, 3):
        await done(store, number)
        await aged(database_url, effects, effects.c.key == key(number), ended_at=10 - number)
    assert await store.retention.expire_alone(TENANT, TOOL, HOUR, 2) == [key(3), key(2)]
    assert await store.retention.expire_alone(TENANT, TOOL, HOUR, 2) == [key(1)]


async def test_each_tool_with_effects_alone_is_found_by_its_oldest(store: Store, database_url: str) -> None:
    for number, tool in enumerate(("b", "a", "b", "c"), 1):
        await done(store, number, tool=tool)
    await aged(database_url, effects, effects.c.key == key(3), ended_at=7)
    found = [await store.retention.oldest_alone(None)]
    while found[-1] is not None:
        found.append(await store.retention.oldest_alone(found[-1]))
    oldest = [one for one in found if isinstance(one, Oldest)]
    assert [one.tool for one in oldest] == ["a", "b", "c"]
    assert oldest[1].ended_at == 7
    assert oldest[1].at > 7


async def test_a_run_is_due_when_it_has_ended_and_expires_tool_by_tool(store: Store, database_url: str) -> None:
    run = await opened(store)
    await done(store, 1, run)
    await done(store, 2, run, tool="kept_longer")
    assert await store.retention.due_runs(10) == []
    assert await store.retention.expire_of_run(run.id, {TOOL: HOUR}, DAY, 10) == []
    ended_run = await store.runs.end(TENANT, run.name, "finished")
    assert ended_run is not None
    (due,) = await store.retention.due_runs(10)
    assert (due.id, due.tenant, sorted(due.tools)) == (run.id, TENANT, sorted([TOOL, "kept_longer"]))
    await aged(database_url, runs, runs.c.id == run.id, ended_at=runs.c.ended_at - HOUR)
    kept = {TOOL: HOUR, "kept_longer": Duration(3 * HOUR)}
    assert await store.retention.expire_of_run(run.id, kept, DAY, 10) == [key(1)]
    assert (await look(store, 2)).expired_at is None
    assert await store.retention.due_runs(10) == []
    assert await _column(database_url, runs.c.kept_until - runs.c.ended_at) == 3 * HOUR
    assert (await opened(store)).expired_at is None
    await aged(database_url, runs, runs.c.id == run.id, **EARLIER)
    assert await store.retention.expire_of_run(run.id, kept, DAY, 10) == [key(2)]
    assert (await opened(store)).expired_at is not None
    assert await store.retention.empty(run.id, 10) is False
    assert await store.retention.due_runs(10) == []


async def test_a_run_that_keeps_something_is_looked_at_again_within_the_time_that_is_given(
    store: Store, database_url: str
) -> None:
    run = await opened(store)
    await done(store, 1, run)
    await store.runs.end(TENANT, run.name, "failed")
    assert await store.retention.expire_of_run(run.id, {TOOL: Duration(90 * DAY)}, HOUR, 10) == []
    wait = await _column(database_url, runs.c.kept_until - runs.c.ended_at)
    assert HOUR <= wait < 2 * HOUR


async def test_a_large_run_expires_in_batches(store: Store, database_url: str) -> None:
    run = await opened(store)
    for number in (1, 2, 3):
        await done(store, number, run)
    await ended(store, database_url)
    gone = [await store.retention.expire_of_run(run.id, {TOOL: HOUR}, DAY, 2) for _ in range(3)]
    assert gone == [[key(1), key(2)], [key(3)], []]
    assert (await opened(store)).expired_at is not None


async def test_what_stands_beside_an_effect_goes_with_it(store: Store, database_url: str) -> None:
    run = await opened(store)
    await done(store, 1, run)
    assert await store.loops.admit(run.id, b"\x01" * 32, FIRST, 3)
    await _insert(database_url, approvals, _approval(run))
    await ended(store, database_url)
    await store.retention.expire_of_run(run.id, {TOOL: HOUR}, DAY, 10)
    assert await store.retention.empty(run.id, 10) is False
    assert await _column(database_url, approvals.c.arguments) == b"{}"
    assert await _column(database_url, approvals.c.edited) is None
    assert await _column(database_url, approvals.c.evidence) is None
    assert await _column(database_url, approvals.c.digest) == b"\x01" * 32
    assert await _column(database_url, sa.select(sa.func.count()).select_from(loops).scalar_subquery()) == 0


async def test_an_effect_of_a_saga_is_kept_until_the_saga_is_over(store: Store, database_url: str) -> None:
    run = await opened(store)
    await done(store, 1, run)
    saga = {"id": run.id, "tenant": 1, "name": "trip", "run": run.name, "state": 1, "started_at": 1}
    step = {"saga": run.id, "key": key(1), "number": 1, "tool": TOOL, "compensation": b"{}", "state": 1}
    await _insert(database_url, sagas, saga)
    await _insert(database_url, saga_steps, step | {"enlisted_at": 1})
    await ended(store, database_url)
    assert await store.retention.expire_of_run(run.id, {TOOL: HOUR}, DAY, 10) == []
    assert (await opened(store)).expired_at is None
    await aged(database_url, sagas, sagas.c.id == run.id, ended_at=5)
    assert await store.retention.expire_of_run(run.id, {TOOL: HOUR}, DAY, 10) == [key(1)]
    assert await _column(database_url, saga_steps.c.compensation) is None


async def test_holds_that_ended_long_ago_go_in_batches_and_what_claims_anything_stays(
    store: Store, database_url: str
) -> None:
    for number in (1, 2, 3, 4, 5, 6):
        await placed(store, wish(number, resource=f"room-{number}"))
    for number in (1, 2, 6):
        await changed(store, "release", number)
    await committed(store, 3)
    await committed(store, 4)
    await aged(database_url, holds, holds.c.id.in_([UUID(int=1), UUID(int=2)]), ended_at=holds.c.ended_at - 2 * HOUR)
    await aged(database_url, holds, holds.c.id == UUID(int=3), starts_at=1, ends_at=2)
    await aged(database_url, holds, holds.c.id == UUID(int=4), ends_at=2**52)
    assert await store.retention.forget_holds(HOUR, 1) == 2
    assert await store.retention.forget_holds(HOUR, 1) == 1
    assert await store.retention.forget_holds(HOUR, 1) == 0
    left = [number for number in range(1, 7) if await store.holds.get(TENANT, UUID(int=number)) is not None]
    assert left == [4, 5, 6]


async def test_a_hold_that_was_given_up_stays_while_its_effect_may_have_succeeded(
    store: Store, database_url: str
) -> None:
    await placed(store, wish(1, key=key(1)))
    began = await written(store, insert(1))
    await written(store, Replace(seen=1, effect=in_doubt(began.effect, began.at)))
    await aged(database_url, holds, holds.c.key == key(1), state=3, ended_at=1)
    assert await store.retention.forget_holds(HOUR, 10) == 0
    await aged(database_url, effects, effects.c.key == key(1), state=5)
    assert await store.retention.forget_holds(HOUR, 10) == 1


async def test_what_a_fork_was_given_goes_with_it_in_batches(store: Store, database_url: str) -> None:
    run = await opened(store)
    for number in (1, 2, 3):
        await done(store, number, run)
    fork = await store.runs.fork(TENANT, "fork", Fork(parent=run.name, parent_id=run.id, at=0))
    for number in (1, 2, 3):
        assert await store.forks.give(fork.id, key(10 + number), key(number), FIRST) is not None
    assert await store.forks.let_run(fork.id, TOOL, key(14), None)
    over = await store.runs.end(TENANT, "fork", "finished")
    assert over is not None
    assert await store.retention.expire_of_run(fork.id, {}, HOUR, 2) == []
    assert (await opened(store, "fork")).expired_at is None
    assert await store.retention.due_runs(10) == []
    await aged(database_url, runs, runs.c.id == fork.id, **EARLIER)
    assert [due.id for due in await store.retention.due_runs(10)] == [fork.id]
    assert await store.retention.empty(fork.id, 2) is False
    assert await store.forks.given(fork.id, key(11)) is not None
    assert await store.retention.expire_of_run(fork.id, {}, HOUR, 2) == []
    assert (await opened(store, "fork")).expired_at is not None
    for is_more in (True, False):
        assert [due.id for due in await store.retention.due_runs(10)] == [fork.id]
        assert await store.retention.empty(fork.id, 2) is is_more
    assert await store.retention.due_runs(10) == []
    assert [await store.forks.given(fork.id, key(10 + number)) for number in (1, 2, 3)] == [None, None, None]
    assert await store.forks.let(fork.id, TOOL) == []


async def test_all_of_it_is_found_by_index(store: Store, database_url: str) -> None:
    run = await opened(store)
    for number in range(1, 60):
        await done(store, number, run if number % 2 else None)
    await store.close()

    def work(connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        select_oldest(connection, Oldest(tenant=TENANT, tool="a", ended_at=Instant(1), at=Instant(1)))
        select_alone(connection, TENANT, TOOL, Instant(2), 10)
        select_due(connection, 10)
        select_of_run(connection, run.id, [TOOL], 10)
        select_ended_holds(connection, Instant(2), 10)
        select_past_holds(connection, Instant(2), 10)

    found = await plans(database_url, work)
    by = ("effects_kept", "effects_kept", "runs_kept", "effects_run", "holds_ended", "holds_over")
    for plan, index in zip(found, by, strict=True):
        assert index in plan, plan


def _approval(run: Run) -> dict[str, Any]:
    return {
        "id": run.id, "tenant": 1, "key": key(1), "round": 1, "tool": TOOL, "tool_version": 1, "run": run.name,
        "digest": b"\x01" * 32, "arguments": b'{"secret":1}', "edited": b'{"secret":2}', "evidence": b'{"secret":3}',
        "summary": "secret", "quorum": 1, "four_eyes": True, "state": 2, "asked_at": 1,
    }  # fmt: skip


async def _insert(url: str, table: sa.Table, row: dict[str, Any]) -> None:
    """Insert a row; what it says nothing of and must not be null is anything."""
    wanted = [column for column in table.columns if not column.nullable and column.name not in row]
    filled = {column.name: _ANYTHING[column.type.python_type] for column in wanted}
    await plans(url, lambda connection: connection.execute(sa.insert(table).values(**filled, **row)))


_ANYTHING = {int: 1, str: "x", bytes: b"x", bool: False}


async def _column(url: str, column: sa.ColumnElement[Any] | sa.ScalarSelect[Any]) -> Any:
    """Return a column's value in the only row."""
    seen: list[Any] = []
    await plans(url, lambda connection: seen.append(connection.execute(sa.select(column)).scalar_one()))
    return seen[0]
