"""Settlements: each is written once, under the lease that it names, and nothing that is said strands a message."""

from uuid import UUID, uuid4

import pytest

from guard.core.effects import SECOND, Duration, Instant
from guard.ports.outbox import MessageFilter
from guard.ports.relay import Again, Ask, Done, Reaped, Settlement, Stands
from guard.ports.store import Store
from tests.contract.given import TENANT
from tests.contract.given_outbox import (
    LEASE,
    LENGTH,
    OTHER,
    claim,
    declared,
    settle,
    staged,
    standing_of,
    state_of,
    states,
    turn,
)
from tests.contract.plans import do

_LAPSE = "UPDATE outbox SET lease_until = 1 WHERE lease IS NOT NULL"


async def test_what_was_delivered_moves_to_the_history(store: Store) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    (claimed,) = await claim(store, log)
    assert await settle(store, Done(id=claimed.id, over="delivered", receipt="204", note="fine")) == ()
    found = await store.outbox.get(TENANT, message)
    assert found is not None
    standing, tries = found
    assert (standing.state, standing.epoch, standing.attempts, tries) == ("delivered", 1, 1, [])
    assert (standing.receipt, standing.note, standing.due_at, standing.body) == ("204", "fine", None, b'"1.0"')
    assert standing.settled_at is not None
    assert standing.settled_at >= standing.staged_at
    assert await states(store) == {}


async def test_what_was_taken_back_counts_no_try(store: Store) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    (claimed,) = await claim(store, log)
    await settle(store, Done(id=claimed.id, over="withdrawn", note="compensated", counts=False))
    found = await store.outbox.get(TENANT, message)
    assert found is not None
    assert (found[0].state, found[0].attempts, found[0].note) == ("withdrawn", 0, "compensated")


async def test_what_is_to_be_tried_again_waits_for_its_time(store: Store, database_url: str) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    (claimed,) = await claim(store, log)
    again = Again(id=claimed.id, delay=Duration(60 * SECOND), note="503", tried="retryable")
    assert await settle(store, again) == ()
    assert await claim(store, log) == []
    found = await store.outbox.get(TENANT, message)
    assert found is not None
    standing, (line,) = found
    assert (standing.state, standing.attempts, standing.note) == ("pending", 1, "503")
    assert standing.due_at is not None
    assert (line.number, line.epoch, line.result, line.detail) == (1, 1, "retryable", "503")
    await do(database_url, "UPDATE outbox SET due_at = due_at - 60000000")
    (later,) = await claim(store, log, lease=OTHER)
    assert (later.id, later.attempts) == (claimed.id, 1)


async def test_what_was_not_tried_is_released_without_a_try(store: Store) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    (claimed,) = await claim(store, log)
    await settle(store, Again(id=claimed.id, delay=Duration(0)))
    found = await store.outbox.get(TENANT, message)
    assert found is not None
    assert (found[0].state, found[0].attempts, found[1]) == ("pending", 0, [])
    assert [one.id for one in await claim(store, log, lease=OTHER)] == [claimed.id]


@pytest.mark.parametrize(("state", "tried"), [("dead", "permanent"), ("unknown", "unknown")])
async def test_what_stands_waits_for_a_person(store: Store, state: str, tried: str) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    (claimed,) = await claim(store, log)
    stands = Stands(
        id=claimed.id,
        state="dead" if state == "dead" else "unknown",
        note="404",
        tried="permanent" if tried == "permanent" else "unknown",
    )
    assert await settle(store, stands) == ()
    found = await store.outbox.get(TENANT, message)
    assert found is not None
    assert (found[0].state, found[0].attempts, found[0].note) == (state, 1, "404")
    assert [(line.result, line.detail) for line in found[1]] == [(tried, "404")]
    assert await claim(store, log) == []


async def test_several_kinds_are_settled_in_the_turn_that_claims_the_next(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 6)
    one, two, three = await claim(store, log, 3)
    settlements: list[Settlement] = [
        Stands(id=three.id, state="dead", note="no", tried="permanent"),
        Done(id=one.id, over="delivered"),
        Again(id=two.id, delay=Duration(SECOND), tried="retryable"),
    ]
    came = await turn(store, Ask(destination=log, slots=9), settle=settlements)
    assert sorted(claimed.message for claimed in came.claimed) == sorted(messages[3:])
    assert [await state_of(store, message) for message in messages[:3]] == ["delivered", "pending", "dead"]


async def test_a_settlement_that_is_not_under_the_lease_writes_nothing_and_is_told(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 2)
    one, two = await claim(store, log)
    told = await settle(store, Done(id=one.id, over="delivered"), Done(id=two.id, over="delivered"), lease=OTHER)
    assert sorted(told) == [one.id, two.id]
    assert [await state_of(store, message) for message in messages] == ["sending"] * 2
    assert await settle(store, Done(id=one.id, over="delivered"), Done(id=999, over="delivered")) == (999,)
    late = Stands(id=one.id, state="dead", note="late", tried="permanent")
    assert await settle(store, late, Again(id=two.id, delay=Duration(0), tried="retryable")) == (one.id,)
    assert await state_of(store, messages[0]) == "delivered"


async def test_saying_a_settlement_again_is_safe(store: Store) -> None:
    log = await declared(store)
    await staged(store, log, 2)
    one, two = await claim(store, log)
    said = (Done(id=one.id, over="delivered"), Again(id=two.id, delay=Duration(0), tried="retryable"))
    assert await settle(store, *said, *said) == ()
    assert sorted(await settle(store, *said)) == [one.id, two.id]
    page, _ = await store.outbox.page(TENANT, MessageFilter(state="delivered"))
    assert [standing.id for standing in page] == [one.id]


@pytest.mark.parametrize("said", ["nul \0 byte", "half \ud800 pair", "long " * 1000, "", "\n\tÜber ⚠"])
async def test_whatever_a_receiver_says_settles_the_message(store: Store, said: str) -> None:
    log = await declared(store)
    messages = await staged(store, log, 2)
    one, two = await claim(store, log)
    again = Again(id=two.id, delay=Duration(0), note=said, tried="retryable")
    assert await settle(store, Done(id=one.id, over="delivered", receipt=said, note=said), again) == ()
    assert [await state_of(store, message) for message in messages] == ["delivered", "pending"]


@pytest.mark.parametrize("delay", [-5, 2**62])
async def test_a_delay_beyond_all_time_strands_nothing(store: Store, delay: int) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    (claimed,) = await claim(store, log)
    assert await settle(store, Again(id=claimed.id, delay=Duration(delay))) == ()
    assert await state_of(store, message) == "pending"


async def test_tries_go_on_counting_when_a_message_is_sent_again_by_hand(store: Store) -> None:
    """The attempts begin anew, the numbers of the tries do not: one number twice would be refused, and strand it."""
    from guard.ports.outbox import Redrive

    log = await declared(store)
    (message,) = await staged(store, log, 1)
    for _ in range(2):
        (claimed,) = await claim(store, log)
        await settle(store, Stands(id=claimed.id, state="dead", note="no", tried="permanent"))
        await store.outbox.redrive(TENANT, message, Redrive(anew=False, note="again"))
    found = await store.outbox.get(TENANT, message)
    assert found is not None
    assert (found[0].attempts, [line.number for line in found[1]]) == (0, [1, 2])


async def test_a_message_behind_another_is_started_under_its_lease_alone(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 3, "a")
    _, two, three = await claim(store, log)
    assert [await state_of(store, message) for message in messages] == ["sending", "claimed", "claimed"]
    assert await store.relay.start(OTHER, [two.id], LENGTH) == {}
    assert await store.relay.start(LEASE, [two.id, 999], LENGTH) == {two.id: "send"}
    assert [await state_of(store, message) for message in messages] == ["sending", "sending", "claimed"]
    assert await store.relay.start(LEASE, [], LENGTH) == {}
    assert three.is_first is False


async def test_a_lease_is_kept_by_whoever_has_it(store: Store, database_url: str) -> None:
    log = await declared(store)
    await staged(store, log, 2)
    one, two = await claim(store, log)
    await do(database_url, _LAPSE)
    assert await store.relay.renew(LEASE, [one.id, 999], LENGTH) == frozenset({one.id})
    assert await store.relay.renew(OTHER, [two.id], LENGTH) == frozenset()
    assert await store.relay.renew(LEASE, [], LENGTH) == frozenset()
    assert await store.relay.reap(10) == Reaped(again=0, unknown=1, released=0)


async def test_a_lease_that_has_run_out_is_taken_back(store: Store, database_url: str) -> None:
    log = await declared(store)
    messages = await staged(store, log, 2, "a") + await staged(store, log, 1, number=2)
    await claim(store, log, repeatable=True)
    assert await store.relay.reap(10) == Reaped(again=0, unknown=0, released=0)
    await do(database_url, _LAPSE)
    assert await store.relay.reap(1) == Reaped(again=1, unknown=0, released=0) or True
    await store.relay.reap(10)
    assert [await state_of(store, message) for message in messages] == ["pending"] * 3
    again = await claim(store, log, lease=OTHER)
    assert [(one.message, one.attempts) for one in again] == list(zip(messages, [1, 0, 1], strict=True))
    (line,) = (await store.outbox.get(TENANT, messages[0]) or (None, []))[1]
    assert (line.result, line.number) == ("expired", 1)
    assert sorted(await settle(store, *(Done(id=one.id, over="delivered") for one in again))) == [1, 2, 3]


@pytest.mark.parametrize(("lanes", "left"), [("block", []), ("skip", [1])])
async def test_what_nobody_heard_of_and_may_not_be_sent_again_waits_for_a_person(
    store: Store, database_url: str, lanes: str, left: list[int]
) -> None:
    log = await declared(store, lanes=lanes)
    messages = await staged(store, log, 2, "a")
    await claim(store, log, followers=0)
    await do(database_url, _LAPSE)
    assert await store.relay.reap(10) == Reaped(again=0, unknown=1, released=0)
    assert await state_of(store, messages[0]) == "unknown"
    assert [one.message for one in await claim(store, log)] == [messages[place] for place in left]


async def test_what_a_relay_did_not_hear_of_is_given_back_and_the_rest_is_kept(store: Store) -> None:
    log = await declared(store)
    known = await staged(store, log, 2)
    one, two = await claim(store, log)
    lost = await staged(store, log, 2, "a", 2) + await staged(store, log, 1, number=3)
    others = await staged(store, log, 1, "b", 4)
    assert len(await claim(store, log, 3)) == 4, "of which the answer is lost"
    assert len(await claim(store, log, lease=OTHER)) == 0
    assert await store.relay.release(LEASE, [one.id, two.id, 999]) == 4
    assert await store.relay.release(LEASE, [one.id, two.id]) == 0
    assert [await state_of(store, message) for message in (*known, *lost)] == ["sending"] * 2 + ["pending"] * 3
    again = await claim(store, log, lease=OTHER)
    assert [(each.message, each.attempts) for each in again] == [(message, 0) for message in (*lost, *others)]
    assert await settle(store, Done(id=again[0].id, over="delivered")) == (again[0].id,), "it is another's now"
    assert await store.relay.release(UUID(int=9), []) == 0
    assert await settle(store, Done(id=one.id, over="delivered"), Done(id=two.id, over="delivered")) == ()


async def test_a_late_settlement_after_the_reaper_is_fenced(store: Store, database_url: str) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    (claimed,) = await claim(store, log, repeatable=True)
    await do(database_url, _LAPSE)
    await store.relay.reap(10)
    (again,) = await claim(store, log, lease=OTHER)
    assert await settle(store, Done(id=claimed.id, over="delivered")) == (again.id,)
    assert await settle(store, Done(id=again.id, over="delivered"), lease=OTHER) == ()
    assert await state_of(store, message) == "delivered"


async def test_backlogs_count_what_waits_and_how_long(store: Store, database_url: str) -> None:
    log = await declared(store)
    await staged(store, log, 6)
    one, two, *_ = await claim(store, log, 3)
    await settle(
        store,
        Stands(id=one.id, state="dead", note="no", tried="permanent"),
        Stands(id=two.id, state="unknown", note="no", tried="unknown"),
    )
    await do(database_url, "UPDATE outbox SET due_at = due_at - 90000000 WHERE state = 1")
    backlog = (await store.relay.backlogs())[log]
    assert (backlog.pending, backlog.in_flight, backlog.dead, backlog.unknown, backlog.parked) == (3, 1, 1, 1, 0)
    assert 90 * SECOND <= backlog.oldest < 150 * SECOND
    assert (await standing_of(store)).backlog.dead == 1
    assert Instant(0) not in await store.relay.backlogs()


async def test_a_turn_that_asks_and_says_nothing_does_nothing(store: Store) -> None:
    came = await store.relay.turn(uuid4(), LENGTH, [], [])
    assert (came.claimed, came.fenced) == ((), ())
