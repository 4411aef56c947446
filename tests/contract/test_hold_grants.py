"""A lease that demands a hold is granted only while it is held, whoever takes it over at the same moment."""

import asyncio
from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.effects import SECOND, Attempt, AttemptToken, Duration, Effect, Fence, Instant, Life, Report
from guard.core.holds import Rival
from guard.ports.holds import HoldFilter, Occupied, Placed
from guard.ports.steps import Found, HoldGone, Insert, Replace, Written
from guard.ports.store import Store
from guard.store.sql.engine import open_store
from tests.contract.given import FIRST, TENANT, finish, insert, intent, key, look, nothing, one, opened, written
from tests.contract.given_holds import changed, committed, occupied, placed, state_of, wish

HOLD = UUID(int=1)


def begin(number: int = 1, hold: UUID = HOLD) -> Insert:
    """Return the step that begins an effect under its hold."""
    return replace(insert(number), hold=hold)


def pending(number: int = 1) -> Effect:
    """Return an effect that waits and was never granted a lease."""
    return Effect(version=0, intent=intent(number), life=Life(state="pending"))


def granted(effect: Effect) -> Effect:
    """Return the effect under its first lease."""
    attempt = Attempt(token=FIRST, fence=Fence(1), granted_at=Instant(5), deadline=Instant(2**52))
    return replace(effect, life=Life(state="executing", fence=Fence(1), attempts=(attempt,), tries=1))


def told(effect: Effect, report: Report, state: str) -> Effect:
    """Return the effect after its attempt has reported."""
    at = Instant(effect.intent.began_at + 10 * SECOND)
    attempt = replace(effect.life.attempts[-1], report=report, reported_at=at)
    ended_at = at if state == "failed" else None
    return replace(effect, life=replace(effect.life, state=state, attempts=(attempt,), ended_at=ended_at))


async def test_an_effect_begins_under_its_hold(store: Store) -> None:
    await placed(store, wish(1, key=key(1)))
    await written(store, begin())
    assert await state_of(store, 1) == "held"


async def test_an_effect_does_not_begin_without_the_hold_it_demands(store: Store) -> None:
    assert isinstance(await one(store, begin()), HoldGone)
    await placed(store, wish(1, key=key(1)))
    await placed(store, wish(2, priority=1))
    assert isinstance(await one(store, begin()), HoldGone)
    assert await nothing(store, 1)
    await placed(store, wish(3, 30, 60))
    await committed(store, 3)
    assert isinstance(await one(store, begin(hold=UUID(int=3))), HoldGone)


async def test_an_effect_that_is_there_is_shown_whatever_became_of_the_hold(store: Store) -> None:
    await written(store, insert())
    assert isinstance(await one(store, begin()), Found)
    stale = Replace(seen=7, effect=await look(store), hold=HOLD)
    assert isinstance(await one(store, stale), Found)


async def test_a_waiting_effect_is_granted_its_lease_under_its_hold_only(store: Store) -> None:
    made = (await written(store, Replace(seen=0, effect=pending()))).effect
    grant = Replace(seen=made.version, effect=granted(made), hold=HOLD)
    assert isinstance(await one(store, grant), HoldGone)
    assert (await look(store)).life.state == "pending"
    await placed(store, wish(1, key=key(1)))
    assert (await written(store, grant)).effect.life.state == "executing"


async def test_a_new_effect_that_is_written_whole_demands_its_hold_too(store: Store) -> None:
    new = Replace(seen=0, effect=granted(pending()), hold=HOLD)
    assert isinstance(await one(store, new), HoldGone)
    assert await nothing(store, 1)
    await placed(store, wish(1, key=key(1)))
    await written(store, new)


async def test_a_run_shares_its_batch_with_grants_that_demand_holds(store: Store) -> None:
    run = await opened(store)
    await placed(store, wish(1, key=key(1)))
    steps = [replace(insert(number, run), hold=HOLD if number != 2 else UUID(int=9)) for number in (1, 2, 3)]
    answers = await store.effects.apply(0, steps)
    assert [type(answer) for answer in answers] == [Written, HoldGone, Written]
    assert (await opened(store)).effects == 2


async def test_success_commits_the_hold_and_a_refusal_frees_it(store: Store) -> None:
    await placed(store, wish(1, key=key(1)))
    await written(store, begin())
    await written(store, finish())
    answer = await occupied(store, wish(2, priority=9))
    assert (answer.by.hold.id, answer.by.hold.state) == (HOLD, "committed")
    await placed(store, wish(3, 30, 60, key=key(3)))
    began = (await written(store, begin(3, UUID(int=3)))).effect
    await written(store, Replace(seen=1, effect=told(began, "rejected", "failed")))
    await placed(store, wish(4, 30, 60))
    assert await state_of(store, 3) == "released"


async def test_listings_and_reads_show_what_the_effect_means(store: Store) -> None:
    for number in (1, 2, 3):
        await placed(store, wish(number, 30 * number, 30 * number + 30, key=key(number)))
        await written(store, begin(number, UUID(int=number)))
    await written(store, finish(1))
    await written(store, Replace(seen=1, effect=told(await look(store, 2), "not_applied", "pending")))
    page = await store.holds.page(TENANT, HoldFilter(resource="room-1"))
    assert [hold.state for hold in page.holds] == ["committed", "released", "held"]
    page = await store.holds.page(TENANT, HoldFilter(key=key(1)))
    assert [(hold.id.int, hold.run) for hold in page.holds] == [(1, "booking-42")]


async def test_a_hold_whose_effect_is_under_way_is_asked_for_and_lost_when_nothing_was_applied(store: Store) -> None:
    await placed(store, wish(1, key=key(1)))
    began = (await written(store, begin())).effect
    answer = await occupied(store, wish(2, priority=5))
    assert (answer.by.hold.id, answer.retry_after) == (HOLD, 1 * SECOND)
    asked = await store.holds.of_effect(key(1))
    assert asked is not None
    assert (asked.state, asked.rival) == ("held", Rival(id=UUID(int=2), holder="agent-2", priority=5))
    await written(store, Replace(seen=1, effect=told(began, "not_applied", "pending")))
    await placed(store, wish(2, priority=5))
    assert await state_of(store, 1) == "lost"
    again = await occupied(store, replace(wish(11, key=key(1)), holder="agent-1"))
    assert again.lost is not None
    assert (again.lost.id, again.by.hold.id) == (HOLD, UUID(int=2))


async def test_the_time_of_a_hold_that_gave_way_is_kept_for_who_asked_until_that_one_came(store: Store) -> None:
    await placed(store, wish(1, key=key(1)))
    began = (await written(store, begin())).effect
    await occupied(store, wish(2, priority=5))
    await written(store, Replace(seen=1, effect=told(began, "not_applied", "pending")))
    for quick in (wish(3, priority=4), replace(wish(4, key=key(1)), holder="agent-1")):
        kept = (await occupied(store, quick)).by.hold
        assert (kept.id, kept.holder, kept.priority) == (UUID(int=2), "agent-2", 5)
    await placed(store, wish(5, priority=5))
    await changed(store, "release", 5)
    lost = await store.holds.get(TENANT, HOLD)
    assert lost is not None
    assert lost.hold.rival == Rival(id=UUID(int=5), holder="agent-5", priority=5)
    await placed(store, wish(6))


async def test_doubt_keeps_the_hold(store: Store) -> None:
    await placed(store, wish(1, key=key(1), lasts=Duration(0)))
    began = (await written(store, insert())).effect
    await written(store, Replace(seen=1, effect=told(began, "unknown", "in_doubt")))
    await occupied(store, wish(2, priority=5))
    assert await store.holds.sweep(10) == 1
    assert await store.holds.sweep(10) == 0
    assert await state_of(store, 1) == "held"
    assert (await changed(store, "release", 1)).result.hold.state == "held"


async def test_a_hold_whose_effect_waits_is_taken_at_once(store: Store) -> None:
    await placed(store, wish(1, key=key(1), lasts=None))
    await written(store, Replace(seen=0, effect=pending()))
    taker = await placed(store, wish(2, priority=1))
    assert [hold.id for hold in taker.taken] == [HOLD]


async def test_an_effect_has_one_hold_which_moves_with_its_arguments(store: Store) -> None:
    first = await placed(store, wish(1, key=key(1)))
    again = await placed(store, wish(2, key=key(1), priority=4))
    assert (again.is_new, again.hold.id, again.hold.priority) == (False, HOLD, 4)
    assert (again.hold.expires_at or 0) >= (first.hold.expires_at or 0)
    moved = await placed(store, wish(3, 15, 45, key=key(1)))
    assert (moved.is_new, moved.hold.id) == (True, UUID(int=3))
    assert await state_of(store, 1) == "released"
    await placed(store, wish(4, 0, 15))


async def given_up(store: Store) -> Effect:
    """Return an effect whose hold was released because its attempt said that nothing was applied."""
    await placed(store, wish(1, key=key(1)))
    began = (await written(store, begin())).effect
    effect = (await written(store, Replace(seen=1, effect=told(began, "not_applied", "pending")))).effect
    await store.holds.settle(key(1))
    assert await state_of(store, 1) == "released"
    return effect


async def succeed(store: Store, effect: Effect) -> None:
    """Let proof arrive that the effect was applied all the same."""
    life = replace(effect.life, state="succeeded", ended_at=Instant(2**52))
    await written(store, Replace(seen=effect.version, effect=replace(effect, life=life)))
    await store.holds.settle(key(1))


async def test_proof_that_comes_late_claims_the_time_again_if_it_is_free(store: Store) -> None:
    effect = await given_up(store)
    await succeed(store, effect)
    assert await state_of(store, 1) == "committed"
    await occupied(store, wish(2, priority=9))


async def test_proof_that_comes_late_takes_nothing_from_anybody(store: Store) -> None:
    effect = await given_up(store)
    await placed(store, wish(2))
    await succeed(store, effect)
    assert [await state_of(store, number) for number in (1, 2)] == ["released", "held"]


async def test_an_effect_without_a_hold_has_nothing_to_settle(store: Store) -> None:
    await store.holds.settle(key(1))
    assert await store.holds.of_effect(key(1)) is None


async def test_what_was_taken_back_gives_its_time_back(store: Store) -> None:
    await placed(store, wish(1, key=key(1)))
    await written(store, begin())
    await store.holds.give_back(key(1))
    assert await state_of(store, 1) == "held"
    await written(store, finish())
    await store.holds.settle(key(1))
    await store.holds.give_back(key(1))
    assert await state_of(store, 1) == "released"


@pytest.mark.parametrize("turn", range(3))
async def test_a_take_over_and_a_grant_at_the_same_moment_agree(store: Store, database_url: str, turn: int) -> None:
    """Either the taker sees the lease and waits, or the grant sees that its hold is gone: never both."""
    other = await open_store(database_url)
    try:
        for number in range(turn * 20 + 1, turn * 20 + 21):
            room = f"room-{number}"
            hold = (await placed(store, replace(wish(number, key=key(number)), resource=room))).hold
            grant, take = await asyncio.gather(
                one(store, replace(insert(number, token=AttemptToken(UUID(int=number))), hold=hold.id)),
                other.holds.place(replace(wish(1000 + number, priority=5), resource=room)),
            )
            is_granted, is_taken = isinstance(grant, Written), isinstance(take, Placed)
            assert is_granted != is_taken, (grant, take)
            assert isinstance(grant, Written | HoldGone)
            assert isinstance(take, Placed | Occupied)
    finally:
        await other.close()


async def test_of_stores_that_want_one_time_at_the_same_instant_one_gets_it(store: Store, database_url: str) -> None:
    others = [await open_store(database_url) for _ in range(3)]
    try:
        for turn in range(10):
            wishes = [replace(wish(turn * 100 + n, n, n + 30), resource=f"room-{turn}") for n in range(1, 13)]
            stores = [store, *others]
            asked = (stores[n % 4].holds.place(each) for n, each in enumerate(wishes))
            answers = await asyncio.gather(*asked)
            assert sum(isinstance(answer, Placed) for answer in answers) == 1
    finally:
        for each in others:
            await each.close()
