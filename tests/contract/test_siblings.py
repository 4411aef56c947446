"""A sibling in doubt: another effect of the tool, named by its arguments, of which nobody knows what became."""

from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from msgspec.structs import replace

from guard.core.effects import AttemptToken, Duration, Effect, Intent, Life
from guard.core.runs import Run
from guard.ports.steps import Found, Insert, Replace, Sibling, StepResult, Written
from guard.ports.store import Store
from guard.store.sql import verbs_sqlite
from tests.contract.given import LEASE, in_doubt, intent, one, opened, written
from tests.contract.plans import do, plans


def call(number: int, run: Run, **changes: Any) -> Intent:
    """Return what a caller means to do that its arguments name; each number has arguments of its own."""
    digest = number.to_bytes(32, "big")
    named = replace(intent(number, run), rule="once", caller_step=None, business_key=None, identity_digest=digest)
    return replace(named, **changes)


def begin(said: Intent, *, lease: Duration = LEASE, alone: bool = True) -> Insert:
    return Insert(intent=said, token=AttemptToken(uuid4()), lease=lease, alone=alone)


async def doubtful(store: Store, said: Intent, *, closed: bool = False) -> Effect:
    """Make an effect of which nobody knows what became."""
    began = await written(store, begin(said, alone=False))
    effect = in_doubt(began.effect, began.at)
    planned = replace(effect, life=replace(effect.life, closed=closed))
    return (await written(store, Replace(seen=1, effect=planned))).effect


async def test_a_call_in_other_words_is_refused_while_one_of_its_tool_is_in_doubt(store: Store) -> None:
    run = await opened(store)
    doubt = await doubtful(store, call(1, run))
    answer = await one(store, begin(call(2, run)))
    assert isinstance(answer, Sibling)
    assert answer.effect == doubt
    assert isinstance(await one(store, begin(call(2, run), alone=False)), Written)


async def test_a_lease_that_has_run_out_unseen_is_doubt(store: Store) -> None:
    run = await opened(store)
    silent = (await written(store, begin(call(1, run), lease=Duration(-1), alone=False))).effect
    answer = await one(store, begin(call(2, run)))
    assert isinstance(answer, Sibling)
    assert answer.effect == silent


async def test_what_is_no_sibling_in_doubt_stands_in_nobodys_way(store: Store) -> None:
    run, other = await opened(store), await opened(store, "other")
    await doubtful(store, call(1, other))
    await doubtful(store, call(2, run), closed=True)
    await doubtful(store, call(3, run, tool="another_tool"))
    await doubtful(store, call(4, run, rule="step", caller_step="4"))
    await doubtful(store, call(5, run, rule="business_key", business_key="order-5"))
    await written(store, begin(call(6, run), alone=False))
    assert isinstance(await one(store, begin(call(7, run))), Written)


async def test_the_same_arguments_once_more_are_no_other_words(store: Store) -> None:
    run = await opened(store)
    await doubtful(store, call(1, run))
    again = call(2, run, identity_digest=(1).to_bytes(32, "big"), occurrence=3)
    assert isinstance(await one(store, begin(again)), Written)


async def test_an_effect_that_is_there_is_shown_whatever_is_in_doubt(store: Store) -> None:
    run = await opened(store)
    there = (await written(store, begin(call(2, run), alone=False))).effect
    await doubtful(store, call(1, run))
    answer = await one(store, begin(call(2, run)))
    assert isinstance(answer, Found)
    assert answer.effect == there


async def test_an_effect_that_was_never_begun_is_not_granted_beside_doubt(store: Store) -> None:
    run = await opened(store)
    planned = Effect(version=0, intent=call(2, run), life=Life(state="pending"))
    waiting = (await written(store, Replace(seen=0, effect=planned))).effect
    doubt = await doubtful(store, call(1, run))

    async def replaced(seen: int, effect: Effect) -> StepResult:
        return await one(store, Replace(seen=seen, effect=effect, open_run=run.id, alone=True))

    for seen, effect in ((1, waiting), (0, replace(planned, intent=call(3, run)))):
        answer = await replaced(seen, effect)
        assert isinstance(answer, Sibling)
        assert answer.effect == doubt
    moved = await replaced(7, waiting)
    assert isinstance(moved, Found)
    assert moved.effect == waiting
    assert isinstance(await one(store, Replace(seen=1, effect=waiting, open_run=run.id)), Written)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=False)
async def test_siblings_are_looked_for_by_the_partial_indexes(store: Store, database_url: str) -> None:
    run = await opened(store)
    await written(store, begin(call(1, run), lease=Duration(-1), alone=False))
    for number in range(3, 60):
        assert isinstance(await one(store, begin(call(number, run))), Sibling)
    await doubtful(store, call(2, run))
    for number in range(60, 120):
        assert isinstance(await one(store, begin(call(number, run))), Sibling)
    await store.close()
    assert await _value(database_url, "SELECT pg_stat_force_next_flush()") is not None
    scans = "SELECT idx_scan::int FROM pg_stat_user_indexes WHERE indexrelname = '{}'"
    assert await _value(database_url, scans.format("effects_unsettled")) >= 60
    assert await _value(database_url, scans.format("effects_lease")) >= 57
    assert await _value(database_url, scans.format("effects_run")) == 0
    read = "SELECT seq_tup_read::int FROM pg_stat_user_tables WHERE relname = 'effects'"
    assert await _value(database_url, read) == 0


@pytest.mark.parametrize("backend", ["sqlite"], indirect=False)
async def test_on_sqlite_siblings_are_looked_for_by_the_partial_indexes_too(store: Store, database_url: str) -> None:
    await store.close()
    await do(database_url, "ANALYZE")
    asked = verbs_sqlite._FIND_SIBLING.replace("?5", "x'00'").replace("?6", "x'ff'").replace("?4", "1")
    asked = asked.replace("?1", "x'01'").replace("?2", "'t'").replace("?3", "x'02'").strip()
    (plan,) = await plans(database_url, lambda connection: connection.exec_driver_sql(asked))
    assert "USING INDEX effects_unsettled (state=? AND key>? AND key<?)" in plan
    assert "USING INDEX effects_lease (lease_expires_at<?)" in plan
    assert "SCAN effects" not in plan


@pytest.mark.parametrize("backend", ["sqlite"], indirect=False)
async def test_on_sqlite_one_look_for_any_doubt_serves_a_whole_batch(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await opened(store)
    looks: list[str] = []

    def counted(name: str) -> None:
        real = getattr(verbs_sqlite, name)

        def look(*asked: object) -> object:
            looks.append(name)
            return real(*asked)

        monkeypatch.setattr(verbs_sqlite, name, look)

    counted("has_doubt")
    counted("find_sibling")
    await store.effects.apply(0, [begin(call(number, run)) for number in (1, 2, 3)])
    assert looks == ["has_doubt"]
    await doubtful(store, call(4, run))
    await store.effects.apply(0, [begin(call(number, run)) for number in (5, 6)])
    assert looks == ["has_doubt", "has_doubt", "find_sibling", "find_sibling"]
    await store.close()
    asked = verbs_sqlite._HAS_DOUBT.replace("?", "1").strip()
    (plan,) = await plans(database_url, lambda connection: connection.exec_driver_sql(asked))
    assert "INDEX effects_unsettled (state=?" in plan
    assert "INDEX effects_lease (lease_expires_at<?)" in plan
    assert "SCAN effects" not in plan


async def _value(url: str, statement: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        value = await connection.fetchval(statement)
        return 0 if value is None or value == "" else int(value) if isinstance(value, int) else 1
    finally:
        await connection.close()
