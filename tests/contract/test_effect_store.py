"""What every store must do with effects, one step at a time."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.effects import (
    SECOND,
    Attempt,
    AttemptToken,
    Duration,
    Effect,
    Evidence,
    Fence,
    Instant,
    Key,
    Life,
    RunId,
)
from guard.ports.steps import Found, Insert, Look, Replace, RunClosed, Written
from guard.ports.store import EffectFilter, Store
from tests.contract.given import (
    FIRST,
    LEASE,
    RESULT,
    SECOND_TOKEN,
    TENANT,
    THIRD,
    finish,
    found,
    in_doubt,
    insert,
    intent,
    key,
    look,
    nothing,
    one,
    opened,
    written,
)


async def test_a_fresh_insert_holds_the_first_lease(store: Store) -> None:
    run = await opened(store)
    answer = await written(store, insert(1, run))
    at = answer.at
    assert run.started_at <= at < run.started_at + 60 * SECOND
    assert answer.effect == Effect(
        version=1,
        intent=replace(intent(1, run), step=1, began_at=at),
        life=Life(
            state="executing",
            fence=Fence(1),
            attempts=(Attempt(token=FIRST, fence=Fence(1), granted_at=at, deadline=Instant(at + 30 * SECOND)),),
            tries=1,
            epoch_since=at,
        ),
    )
    assert await look(store) == answer.effect


async def test_an_insert_over_an_existing_effect_answers_with_it(store: Store) -> None:
    first = await written(store, insert())
    assert await found(store, insert(token=SECOND_TOKEN)) == first.effect


async def test_an_effect_without_a_run_has_no_step(store: Store) -> None:
    assert (await written(store, insert())).effect.intent.step is None


async def test_a_closed_run_takes_no_new_effect_and_serves_its_record(store: Store) -> None:
    run = await opened(store)
    first = await written(store, insert(1, run))
    await store.runs.end(TENANT, run.name, "finished")
    assert isinstance(await one(store, insert(2, run)), RunClosed)
    assert await found(store, insert(1, run, SECOND_TOKEN)) == first.effect
    assert await nothing(store, 2)


async def test_a_run_that_nobody_opened_takes_no_effect(store: Store) -> None:
    run = await opened(store)
    other = replace(run, id=RunId(UUID(int=run.id.int + 1)))
    assert isinstance(await one(store, insert(1, other)), RunClosed)


async def test_the_effects_of_a_run_are_counted_over_batches(store: Store) -> None:
    run, other = await opened(store), await opened(store, "other")
    batch = [insert(1, run), insert(2, run), insert(7, other), insert(3, run)]
    answers = await store.effects.apply(0, batch)
    assert [a.effect.intent.step for a in answers if isinstance(a, Written)] == [1, 2, 1, 3]
    again = await store.effects.apply(0, [insert(2, run), insert(4, run)])
    assert [type(a) for a in again] == [Found, Written]
    assert (await look(store, 4)).intent.step == 4
    counted = await store.runs.get(TENANT, run.name)
    assert counted is not None
    assert counted.effects == 4


async def test_a_finish_records_success(store: Store) -> None:
    began = await written(store, insert())
    done = await written(store, finish())
    attempt = replace(began.effect.life.attempts[0], report="succeeded", reported_at=done.at)
    life = replace(began.effect.life, state="succeeded", attempts=(attempt,), ended_at=done.at)
    assert done.effect == replace(began.effect, version=2, life=life, outcome=RESULT)
    assert await look(store) == done.effect


@pytest.mark.parametrize(("token", "fence"), [(SECOND_TOKEN, 1), (FIRST, 2), (FIRST, 0)])
async def test_a_finish_with_another_token_or_fence_touches_nothing(
    store: Store, token: AttemptToken, fence: int
) -> None:
    began = await written(store, insert())
    assert await found(store, finish(token=token, fence=fence)) == began.effect
    assert await look(store) == began.effect


async def test_a_finish_of_nothing_finds_nothing(store: Store) -> None:
    answer = await one(store, finish())
    assert isinstance(answer, Found)
    assert answer.effect is None


async def test_a_finish_repeated_finds_the_success(store: Store) -> None:
    await written(store, insert())
    done = await written(store, finish())
    assert await found(store, finish()) == done.effect


async def test_a_finish_in_doubt_is_for_the_rule_once_the_attempt_has_spoken(store: Store) -> None:
    began = await written(store, insert())
    doubted = await written(store, Replace(seen=1, effect=in_doubt(began.effect, began.at)))
    assert await found(store, finish()) == doubted.effect


async def test_a_finish_heals_a_silent_attempt_in_doubt(store: Store) -> None:
    began = (await written(store, insert())).effect
    silent = replace(began, life=replace(began.life, state="in_doubt", closed=True, retry_at=Instant(5)))
    await written(store, Replace(seen=1, effect=silent))
    done = (await written(store, finish())).effect
    assert (done.life.state, done.life.closed, done.life.retry_at, done.version) == ("succeeded", False, None, 3)


async def test_a_replace_writes_what_was_planned(store: Store) -> None:
    run = await opened(store)
    began = (await written(store, insert(1, run))).effect
    planned = replace(
        began,
        intent=replace(
            began.intent, arguments=b'{"title":"y"}', arguments_digest=b"\x09" * 32, tool_version=8, worker="worker-b"
        ),
        life=replace(
            began.life,
            state="failed",
            attempts=(replace(began.life.attempts[0], report="rejected", reported_at=Instant(11), settled=True),),
            tries=4,
            retry_at=Instant(12),
            epoch=5,
            epoch_since=Instant(13),
            closed=True,
            ended_at=Instant(14),
        ),
        outcome=b'{"error":{}}',
        resolution="operator: not applied",
    )
    answer = await written(store, Replace(seen=1, effect=planned))
    assert answer.effect == replace(planned, version=2)
    assert await look(store) == replace(planned, version=2)


async def test_a_replace_over_another_version_touches_nothing(store: Store) -> None:
    began = await written(store, insert())
    doubted = await written(store, Replace(seen=1, effect=in_doubt(began.effect, began.at)))
    proof = Evidence(at=began.at, token=FIRST, kind="success", body=b"{}")
    for seen in (1, 3):
        assert await found(store, Replace(seen=seen, effect=began.effect, evidence=(proof,))) == doubted.effect
    assert await store.effects.evidence(key(1)) == []


async def test_a_replace_of_nothing_makes_the_effect_once(store: Store) -> None:
    run = await opened(store)
    token = Attempt(
        token=FIRST,
        fence=Fence(0),
        granted_at=Instant(1),
        deadline=Instant(1),
        report="released",
        reported_at=Instant(1),
    )
    planned = Effect(version=0, intent=intent(1, run), life=Life(state="pending", attempts=(token,)))
    made = await written(store, Replace(seen=0, effect=planned))
    assert made.effect == replace(planned, version=1, intent=replace(intent(1, run), step=1, began_at=made.at))
    assert await found(store, Replace(seen=0, effect=planned)) == made.effect
    assert await look(store) == made.effect
    assert (await opened(store)).effects == 1


async def test_a_replace_that_needs_an_open_run_grants_nothing_in_a_closed_one(store: Store) -> None:
    run = await opened(store)
    began = (await written(store, insert(1, run))).effect
    await store.runs.end(TENANT, run.name, "cancelled")
    planned = in_doubt(began, Instant(1))
    assert isinstance(await one(store, Replace(seen=1, effect=planned, open_run=planned.intent.run_id)), RunClosed)
    assert await found(store, Replace(seen=7, effect=planned, open_run=planned.intent.run_id)) == began
    fresh = Effect(version=0, intent=intent(2, run), life=Life(state="pending"))
    assert isinstance(await one(store, Replace(seen=0, effect=fresh, open_run=fresh.intent.run_id)), RunClosed)
    await written(store, Replace(seen=1, effect=planned))
    noted = await written(store, Replace(seen=0, effect=fresh))
    assert noted.effect.intent.step == 2


async def test_earlier_attempts_are_kept_in_the_order_of_their_fences(store: Store) -> None:
    began = (await written(store, insert())).effect
    lost = replace(began.life.attempts[0], report="unknown", reported_at=Instant(20))
    never = Attempt(token=THIRD, fence=Fence(0), granted_at=Instant(9), deadline=Instant(9), report="released")
    second = Attempt(token=SECOND_TOKEN, fence=Fence(2), granted_at=Instant(30), deadline=Instant(40))
    life = replace(began.life, fence=Fence(2), attempts=(never, lost, second), tries=2)
    second_version = (await written(store, Replace(seen=1, effect=replace(began, life=life)))).effect
    assert second_version.life.attempts == (never, lost, second)
    assert await look(store) == second_version
    assert await found(store, insert()) == second_version
    settled = replace(life, attempts=(never, replace(lost, settled=True), second))
    await written(store, Replace(seen=2, effect=replace(began, life=settled)))
    done = (await written(store, finish(token=SECOND_TOKEN, fence=2))).effect
    assert [(a.token, a.settled) for a in done.life.attempts] == [(THIRD, False), (FIRST, True), (SECOND_TOKEN, False)]
    assert (await store.effects.page(TENANT, EffectFilter()))[0] == [done]
    only = replace(life, attempts=(second,))
    await written(store, Replace(seen=4, effect=replace(began, life=only)))
    assert (await look(store)).life.attempts == (second,)


async def test_a_lease_may_be_of_any_length(store: Store) -> None:
    answer = await written(store, Insert(intent=intent(), token=FIRST, lease=Duration(3600 * SECOND)))
    assert answer.effect.life.attempts[0].deadline - answer.at == 3_600_000_000
    assert LEASE == 30_000_000


async def test_large_and_odd_bytes_come_back_as_they_were(store: Store) -> None:
    body = bytes(range(256)) * 8192
    odd = replace(intent(), arguments=body, key=Key(b"\x00" * 31 + b"\xff"))
    began = await written(store, Insert(intent=odd, token=FIRST, lease=LEASE))
    assert began.effect.intent.arguments == body
    assert await found(store, Look(key=odd.key)) == began.effect
