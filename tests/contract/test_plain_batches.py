"""Many begins and commits that ask for nothing besides: together they come to what each would come to alone."""

import asyncio

import asyncpg
import pytest
from msgspec.structs import replace

from guard.core.effects import Effect, Instant
from guard.ports.steps import Finish, Found, Insert, Replace, RunClosed, Sibling, Step, StepResult, Written
from guard.ports.store import Store
from guard.store.sql.apply_postgresql import arguments_of
from tests.contract import rivals
from tests.contract.given import (
    FIRST,
    RESULT,
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
from tests.contract.plans import rows

_APPLY = "SELECT * FROM apply_steps_v2($1::uuid[], $2::integer[], $3::uuid[], $4::step_v2[])"
_BLOCKED = "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%apply_plain%'"
_KILL = "SELECT count(pg_terminate_backend(pid))::int FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def effects_in(answers: list[StepResult]) -> list[Effect]:
    """Return the effects of steps that were all written."""
    assert all(isinstance(answer, Written) for answer in answers), answers
    return [answer.effect for answer in answers if isinstance(answer, Written)]


async def test_begins_of_several_runs_are_counted_in_each(store: Store) -> None:
    first, second = await opened(store, "first"), await opened(store, "second")
    await written(store, insert(1, first))
    steps: list[Step] = [
        insert(5, first),
        insert(4, second),
        insert(3),
        insert(2, first),
        insert(6, second),
    ]
    made = effects_in(await store.effects.apply(0, steps))
    assert [effect.intent.step for effect in made] == [3, 1, None, 2, 2]
    assert [await look(store, number) for number in (5, 4, 3, 2, 6)] == made
    assert [run.effects for run in await store.runs.open(TENANT, ["first", "second"])] == [3, 2]


async def test_what_is_not_as_assumed_is_said_of_each_and_holds_up_no_other(store: Store) -> None:
    run, over = await opened(store), await opened(store, "over")
    there = (await written(store, insert(1, run))).effect
    await written(store, insert(2, run))
    held = (await written(store, insert(3, run))).effect
    await store.runs.end(TENANT, "over", "finished")
    answers = await store.effects.apply(
        0,
        [
            insert(1, run, SECOND_TOKEN),
            insert(7, over),
            finish(3, SECOND_TOKEN),
            insert(6, run),
            finish(9),
            finish(2),
            insert(5, run),
        ],
    )
    kinds = [Found, RunClosed, Found, Written, Found, Written, Written]
    assert [type(answer) for answer in answers] == kinds
    seen = [getattr(answer, "effect", None) for answer in answers]
    assert (seen[0], seen[2], seen[4]) == (there, held, None)
    assert [effect.intent.step for effect in (await look(store, 5), await look(store, 6))] == [4, 5]
    assert (await look(store, 2)).life.state == "succeeded"
    assert [run.effects for run in await store.runs.open(TENANT, ["booking-42", "over"])] == [5, 0]


async def test_doubt_in_a_run_bars_its_siblings_and_nobody_else(store: Store) -> None:
    run, other = await opened(store), await opened(store, "other")
    named = [
        Insert(
            intent=replace(step.intent, rule="once", business_key=None, identity_digest=number.to_bytes(32, "big")),
            token=FIRST,
            lease=step.lease,
            alone=number != 5,
        )
        for number, step in ((at, insert(at, other if at == 4 else run)) for at in range(1, 7))
    ]
    doubtful = (await written(store, replace(named[0], alone=False))).effect
    doubtful = (await written(store, Replace(seen=1, effect=in_doubt(doubtful, Instant(1))))).effect
    answers = await store.effects.apply(0, [*named[1:]])
    assert [type(answer) for answer in answers] == [Sibling, Sibling, Written, Written, Sibling]
    assert all(answer.effect == doubtful for answer in answers if isinstance(answer, Sibling))
    assert [run.effects for run in await store.runs.open(TENANT, ["booking-42", "other"])] == [2, 1]


async def test_commits_return_what_is_on_record_known_before_or_not(store: Store) -> None:
    run = await opened(store)
    begun = effects_in(await store.effects.apply(0, [insert(number, run) for number in range(1, 6)]))
    renewed = replace(begun[3], resolution="asked", life=replace(begun[3].life, tries=7))
    await written(store, Replace(seen=1, effect=renewed))
    lost = replace(begun[4].life.attempts[0], report="unknown", reported_at=Instant(5))
    latest = replace(lost, token=SECOND_TOKEN, fence=2, report="none", reported_at=None)
    again = replace(begun[4], life=replace(begun[4].life, fence=2, attempts=(lost, latest)))
    again = (await written(store, Replace(seen=1, effect=again))).effect
    steps: list[Step] = [
        replace(finish(1), known=begun[0]),
        finish(2),
        finish(3),
        replace(finish(4), known=begun[3]),
        replace(finish(5, SECOND_TOKEN, 2), known=again),
    ]
    done = effects_in(await store.effects.apply(0, steps))
    assert [await look(store, number) for number in range(1, 6)] == done
    assert [effect.life.state for effect in done] == ["succeeded"] * 5
    assert [effect.outcome for effect in done] == [RESULT] * 5
    assert [effect.version for effect in done] == [2, 2, 2, 3, 3]
    assert (done[3].resolution, done[3].life.tries) == ("asked", 7)
    assert [attempt.token for attempt in done[4].life.attempts] == [FIRST, SECOND_TOKEN]


async def test_a_slot_that_was_kept_meanwhile_is_not_forgotten_by_a_commit(store: Store) -> None:
    begun = effects_in(await store.effects.apply(0, [insert(number) for number in range(1, 5)]))
    await store.effects.keep_slot(begun[0].intent.key, b"s" * 32)
    done = effects_in(await store.effects.apply(0, [replace(finish(at), known=one) for at, one in enumerate(begun, 1)]))
    assert [effect.intent.slot for effect in done] == [b"s" * 32, None, None, None]


async def test_earlier_attempts_are_read_back_where_they_are_not_known(store: Store) -> None:
    begun = effects_in(await store.effects.apply(0, [insert(number) for number in range(1, 5)]))
    lost = replace(begun[3].life.attempts[0], report="unknown", reported_at=Instant(5))
    latest = replace(lost, token=SECOND_TOKEN, fence=2, report="none", reported_at=None)
    again = replace(begun[3], life=replace(begun[3].life, fence=2, attempts=(lost, latest)))
    await written(store, Replace(seen=1, effect=again))
    steps: list[Step] = [finish(1), finish(2), finish(3), finish(4, SECOND_TOKEN, 2)]
    done = effects_in(await store.effects.apply(0, steps))
    assert done[3] == await look(store, 4)
    assert done[3].life.attempts[0] == lost


async def test_processes_that_begin_and_commit_the_same_do_so_once_each(store: Store, database_url: str) -> None:
    begun = await asyncio.to_thread(rivals.compete, database_url, rivals.begin_and_commit_together, 3)
    assert sum(wins for wins, _ in begun) == 400
    assert sum(commits for _, commits in begun) == 400
    runs = await store.runs.open(TENANT, ["a", "b", "c"])
    assert sum(run.effects for run in runs) == 400
    for run in runs:
        steps = await rows(database_url, f"SELECT step FROM effects WHERE run = '{run.name}' ORDER BY step")
        assert [step for (step,) in steps] == list(range(1, run.effects + 1))
    if database_url.startswith("postgresql"):
        assert await rows(
            database_url, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ) == [(0,)]


@pytest.mark.parametrize("backend", ["postgresql"])
@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_a_begin_that_another_transaction_makes_meanwhile_is_waited_for(
    store: Store, database_url: str, ends: str
) -> None:
    run = await opened(store)
    rival = await asyncpg.connect(database_url)
    try:
        transaction = rival.transaction()
        await transaction.start()
        await rival.fetch(_APPLY, *arguments_of([insert(3, None, SECOND_TOKEN)]))
        batch = asyncio.create_task(store.effects.apply(0, [insert(number, run) for number in range(1, 5)]))
        async with asyncio.timeout(10):
            while (await rows(database_url, _BLOCKED)) != [(1,)]:
                assert not batch.done()
        await (transaction.commit() if ends == "commit" else transaction.rollback())
    finally:
        await rival.close()
    answers = await batch
    won = [type(answer) for answer in answers]
    assert won == [Written, Written, Found if ends == "commit" else Written, Written]
    assert (await look(store, 3)).life.attempts[0].token == (SECOND_TOKEN if ends == "commit" else FIRST)
    assert (await opened(store)).effects == (3 if ends == "commit" else 4)


async def test_a_plain_batch_repeated_after_a_lost_reply_changes_nothing(store: Store) -> None:
    run = await opened(store)
    begun = effects_in(await store.effects.apply(0, [insert(number, run) for number in range(1, 4)]))
    batch: list[Step] = [insert(4, run), insert(5, run)]
    batch += [Finish(key=one.intent.key, token=FIRST, fence=one.life.fence, outcome=RESULT, known=one) for one in begun]
    first = effects_in(await store.effects.apply(0, batch))
    again = await store.effects.apply(0, batch)
    assert [answer.effect for answer in again if isinstance(answer, Found)] == first
    assert (await opened(store)).effects == 5


@pytest.mark.parametrize("backend", ["postgresql"])
async def test_commits_of_what_is_over_wait_for_nobody(store: Store, database_url: str) -> None:
    for number in range(1, 5):
        await written(store, insert(number))
    await written(store, finish(1))
    holder = await asyncpg.connect(database_url)
    try:
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("SELECT FROM effects WHERE key = $1 FOR UPDATE", key(1))
        answers = await store.effects.apply(0, [finish(number) for number in range(1, 5)])
        assert [type(answer) for answer in answers] == [Found, Written, Written, Written]
        await transaction.rollback()
    finally:
        await holder.close()


@pytest.mark.parametrize("backend", ["postgresql"])
async def test_what_was_written_is_told_where_the_connection_dies_before_the_rest(
    store: Store, database_url: str
) -> None:
    began = (await written(store, insert(4))).effect
    lost = replace(began.life.attempts[0], report="unknown", reported_at=Instant(5))
    latest = replace(lost, token=SECOND_TOKEN, fence=2, report="none", reported_at=None)
    again = replace(began, life=replace(began.life, fence=2, attempts=(lost, latest)))
    again = (await written(store, Replace(seen=1, effect=again))).effect
    rival = await asyncpg.connect(database_url)
    try:
        transaction = rival.transaction()
        await transaction.start()
        await rival.execute("LOCK TABLE attempts")  # which only the rest reads, for what came before
        batch = asyncio.create_task(store.effects.apply(0, [insert(number) for number in range(1, 5)]))
        async with asyncio.timeout(10):
            while (await rows(database_url, _KILL)) != [(1,)]:
                assert not batch.done()
        await transaction.rollback()
    finally:
        await rival.close()
    answers = await batch
    assert [type(answer) for answer in answers] == [Written, Written, Written, Found]
    assert answers[3] == Found(effect=again, at=answers[3].at)
