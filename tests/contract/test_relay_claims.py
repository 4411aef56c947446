"""Claims: what is due and may be sent goes to exactly one lease, whoever asks, and whatever was committed late."""

from uuid import UUID

import pytest

from guard.core.effects import SECOND, Duration
from guard.ports.outbox import Redrive
from guard.ports.relay import Ask, Done, Heard
from guard.ports.store import Store
from tests.contract.given import TENANT, insert, key, written
from tests.contract.given_outbox import (
    LEASE,
    LENGTH,
    OTHER,
    claim,
    declared,
    row,
    settle,
    stage,
    staged,
    standing_of,
    state_of,
    turn,
)
from tests.contract.plans import do


async def test_what_is_due_is_claimed_once_oldest_first(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 5)
    first = await claim(store, log, 2)
    assert [(claimed.message, claimed.is_first, claimed.verdict) for claimed in first] == [
        (messages[0], True, "send"),
        (messages[1], True, "send"),
    ]
    rest = await claim(store, log, lease=OTHER)
    assert [claimed.message for claimed in rest] == messages[2:]
    assert await claim(store, log) == []
    assert [await state_of(store, message) for message in messages] == ["sending"] * 5


async def test_a_claimed_message_is_told_whole(store: Store) -> None:
    log = await declared(store)
    (message,) = await stage(store, 1, row(1, log, recipient="a@example.org", content_type="text/plain"))
    (claimed,) = await claim(store, log)
    assert (claimed.message, claimed.epoch, claimed.tenant, claimed.destination) == (message, 1, TENANT, log)
    assert (claimed.name, claimed.lane, claimed.type) == ("log", None, "order.created")
    assert (claimed.recipient, claimed.content_type) == ("a@example.org", "text/plain")
    assert (claimed.headers, claimed.body, claimed.run, claimed.attempts) == (b'{"a":"b"}', b'"1.0"', None, 0)


async def test_what_is_held_back_is_claimed_when_its_time_has_come(store: Store, database_url: str) -> None:
    log = await declared(store)
    (message,) = await stage(store, 1, row(1, log, delay=Duration(3600 * SECOND)))
    assert await claim(store, log) == []
    await do(database_url, "UPDATE outbox SET due_at = due_at - 3600000000")
    assert [claimed.message for claimed in await claim(store, log)] == [message]


async def test_each_ask_is_given_messages_of_its_own_destination(store: Store) -> None:
    one, two = await declared(store, "one"), await declared(store, "two")
    await stage(store, 1, row(1, one), row(1, two, place=1), row(1, two, place=2))
    came = await turn(store, Ask(destination=two, slots=1), Ask(destination=one, slots=5), Ask(destination=99, slots=5))
    assert sorted(claimed.destination for claimed in came.claimed) == [one, two]
    assert (await turn(store, Ask(destination=two, slots=0))).claimed == ()


async def test_what_was_committed_late_or_out_of_order_is_delivered_too(store: Store, database_url: str) -> None:
    """A claim goes by state: an older id, or an earlier time, that shows up behind what was claimed is claimed."""
    log = await declared(store)
    late = await staged(store, log, 1, number=1)
    await do(database_url, "UPDATE outbox SET due_at = due_at + 86400000000")
    soon = await staged(store, log, 3, number=2)
    assert [claimed.message for claimed in await claim(store, log)] == soon
    await do(database_url, "UPDATE outbox SET due_at = due_at - 86400000000 * 2 WHERE state = 1")
    seen: list[UUID] = []
    while not seen:  # within the time between two sweeps
        seen = [claimed.message for claimed in await claim(store, log)]
    assert seen == late


async def test_those_that_may_have_something_to_send_are_found_without_asking_all(
    store: Store, database_url: str
) -> None:
    free, laned, idle, later, done = [await declared(store, name) for name in ("a", "b", "c", "d", "e")]
    assert await store.relay.due() == frozenset()
    await staged(store, free, 3, None, 1)
    await staged(store, laned, 2, "a", 2)
    await staged(store, laned, 2, "b", 3)
    await staged(store, done, 1, None, 4)
    await stage(store, 5, row(5, later, delay=Duration(3600 * SECOND)))
    await stage(store, 6, row(6, later, parked="no such destination", destination_id=None))
    await settle(store, *(Done(id=one.id, over="delivered") for one in await claim(store, done)))
    assert await store.relay.due() == {free, laned}
    await do(database_url, f"UPDATE outbox SET due_at = 1 WHERE destination_id = {later}")
    assert await store.relay.due() == {free, laned, later}
    await claim(store, free)
    assert await store.relay.due() == {laned, later}
    assert idle not in await store.relay.due()


@pytest.mark.parametrize("state", ["paused", "disabled", "removed"])
async def test_a_destination_that_is_not_active_is_given_nothing(store: Store, state: str) -> None:
    log = await declared(store)
    await staged(store, log, 1)
    if state == "disabled":
        await store.relay.report([Heard(destination=log, is_gone=True, note="410 Gone")])
    else:
        await store.destinations.put(TENANT, "log", "paused" if state == "paused" else "removed", "by hand")
    assert await claim(store, log) == []


async def test_an_open_breaker_gives_nothing_then_one_probe_over_all_relays(store: Store, database_url: str) -> None:
    log = await declared(store)
    await staged(store, log, 4)
    await store.relay.report([Heard(destination=log, unreachable=5, note="refused")])
    record = await standing_of(store)
    assert (record.breaker, record.note) == ("open", "refused")
    assert await claim(store, log) == []
    await do(database_url, "UPDATE destinations SET open_until = 1")
    assert [way.is_open for way in await store.relay.ways()] == [True]
    (probe,) = await claim(store, log)
    assert [(way.breaker, way.is_open) for way in await store.relay.ways()] == [("half_open", False)]
    assert await claim(store, log, lease=OTHER) == []
    await settle(store, Done(id=probe.id, over="delivered"))
    await store.relay.report([Heard(destination=log, good=1)])
    assert (await standing_of(store)).allowance == 2
    assert len(await claim(store, log)) == 2
    assert await claim(store, log, lease=OTHER) == []


async def test_a_probe_that_is_lost_is_given_again_after_its_lease(store: Store, database_url: str) -> None:
    log = await declared(store)
    await staged(store, log, 4)
    await do(database_url, "UPDATE destinations SET breaker = 3, open_until = 1")
    assert len(await claim(store, log)) == 1
    assert await claim(store, log) == []
    await do(database_url, "UPDATE destinations SET open_until = 1")
    assert len(await claim(store, log)) == 1


async def test_a_probe_is_not_spent_where_nothing_waits(store: Store, database_url: str) -> None:
    log = await declared(store)
    await do(database_url, "UPDATE destinations SET breaker = 2, open_until = 1")
    assert await claim(store, log) == []
    assert (await standing_of(store)).breaker == "open"
    await staged(store, log, 1)
    assert len(await claim(store, log)) == 1


async def test_a_destination_that_asked_to_be_left_alone_is(store: Store, database_url: str) -> None:
    log = await declared(store)
    await staged(store, log, 1)
    await store.relay.report([Heard(destination=log, good=1, held_for=Duration(60 * SECOND))])
    assert await claim(store, log) == []
    assert (await standing_of(store)).breaker == "closed"
    await do(database_url, "UPDATE destinations SET held_until = 1")
    assert len(await claim(store, log)) == 1


async def test_a_rate_is_held_over_all_relays_and_refilled_by_the_database(store: Store, database_url: str) -> None:
    log = await declared(store, rate_per_second=3)
    await staged(store, log, 20)
    assert len(await claim(store, log)) == 3
    assert await claim(store, log, lease=OTHER) == []
    await do(database_url, "UPDATE destinations SET refilled_at = refilled_at - 700000")
    assert len(await claim(store, log, lease=OTHER)) == 2
    await do(database_url, "UPDATE destinations SET refilled_at = refilled_at - 3600000000")
    assert len(await claim(store, log)) == 3


async def test_messages_behind_the_first_of_a_lane_count_against_the_rate(store: Store) -> None:
    log = await declared(store, rate_per_second=4)
    await staged(store, log, 10, "a")
    assert len(await claim(store, log)) == 4


@pytest.mark.parametrize(
    ("step", "saga", "verdict", "state"),
    [
        (1, 1, "send", "sending"),
        (1, 3, "wait", "claimed"),
        (1, 5, "wait", "claimed"),
        (2, 3, "withdrawn", "claimed"),
        (2, 4, "withdrawn", "claimed"),
        (3, 3, "send", "sending"),
        (4, 4, "send", "sending"),
        (5, 3, "wait", "claimed"),
        (5, 4, "wait", "claimed"),
    ],
)
async def test_the_effect_is_asked_right_before(
    store: Store, database_url: str, step: int, saga: int, verdict: str, state: str
) -> None:
    log = await declared(store)
    free, *_ = await stage(store, 1, row(1, log), row(1, log, "a", 1), row(1, log, "a", 2))
    blob = "X'{}'" if database_url.startswith("sqlite") else "'\\x{}'::bytea"
    id_ = "X'00000000000000000000000000000007'" if database_url.startswith("sqlite") else f"'{UUID(int=7)}'"
    await do(
        database_url,
        f"INSERT INTO sagas (id, tenant, name, run, state, started_at) VALUES ({id_}, 1, 's', 'r', {saga}, 1)",
        "INSERT INTO saga_steps (saga, key, number, tool, state, round, enlisted_at) "
        f"VALUES ({id_}, {blob.format(key(1).hex())}, 1, 't', {step}, 0, 1)",
    )
    claimed = await claim(store, log)
    assert [one.verdict for one in claimed] == [verdict] * 3
    assert await state_of(store, free) == state
    behind = [one.id for one in claimed if not one.is_first]
    assert await store.relay.start(LEASE, behind, LENGTH) == dict.fromkeys(behind, verdict)


@pytest.mark.parametrize("lane", [None, "a"])
async def test_what_a_person_sends_anew_goes_though_its_effect_was_taken_back(
    store: Store, database_url: str, lane: str | None
) -> None:
    log = await declared(store)
    first, second = await staged(store, log, 2, lane)
    blob, id_ = (
        (f"X'{key(1).hex()}'", "X'00000000000000000000000000000007'")
        if database_url.startswith("sqlite")
        else (f"'\\x{key(1).hex()}'::bytea", f"'{UUID(int=7)}'")
    )
    await do(
        database_url,
        f"INSERT INTO sagas (id, tenant, name, run, state, started_at) VALUES ({id_}, 1, 's', 'r', 4, 1)",
        "INSERT INTO saga_steps (saga, key, number, tool, state, round, enlisted_at) "
        f"VALUES ({id_}, {blob}, 1, 't', 2, 0, 1)",
    )
    claimed = await claim(store, log)
    await settle(store, *(Done(id=one.id, over="withdrawn", counts=False) for one in claimed))
    for message in (first, second):
        refused = await store.outbox.redrive(TENANT, message, Redrive(anew=False, note="again"))
        assert refused is not None
        assert not refused.is_done
        assert await store.outbox.redrive(TENANT, message, Redrive(anew=True, note="anew"))
    claimed = await claim(store, log)
    assert [(one.message, one.epoch, one.verdict) for one in claimed] == [(first, 2, "send"), (second, 2, "send")]
    behind = [one.id for one in claimed if not one.is_first]
    assert await store.relay.start(LEASE, behind, LENGTH) == dict.fromkeys(behind, "send")


async def test_an_effect_that_is_gone_does_not_hold_its_message_back(store: Store, database_url: str) -> None:
    log = await declared(store)
    await staged(store, log, 1)
    await do(database_url, "DELETE FROM effects")
    assert [claimed.verdict for claimed in await claim(store, log)] == ["send"]


async def test_an_effect_that_stages_nothing_leaves_nothing(store: Store) -> None:
    log = await declared(store)
    await written(store, insert(1))
    assert await claim(store, log) == []
