"""Lanes: in order, one at a time, none in the way of another."""

from typing import Literal

import pytest

from guard.core.effects import SECOND, Duration
from guard.ports.outbox import Redrive
from guard.ports.relay import Again, Done, Stands
from guard.ports.store import Store
from tests.contract.given import TENANT
from tests.contract.given_outbox import OTHER, claim, declared, row, settle, stage, staged, state_of
from tests.contract.plans import do


async def test_the_first_of_each_lane_is_sent_and_those_behind_it_are_claimed(store: Store) -> None:
    log = await declared(store)
    a, b = await staged(store, log, 3, "a", 1), await staged(store, log, 2, "b", 2)
    claimed = await claim(store, log)
    assert [(one.message, one.is_first) for one in claimed] == [
        (a[0], True),
        (a[1], False),
        (a[2], False),
        (b[0], True),
        (b[1], False),
    ]
    assert await claim(store, log, lease=OTHER) == []


async def test_only_so_many_behind_the_first_are_claimed(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 5, "a")
    assert [one.message for one in await claim(store, log, followers=1)] == messages[:2]
    assert await claim(store, log, lease=OTHER) == []


async def test_nobody_overtakes_a_message_that_waits_for_its_retry(store: Store, database_url: str) -> None:
    log = await declared(store)
    messages = await staged(store, log, 3, "a")
    first, *behind = await claim(store, log)
    released = [Again(id=one.id, delay=Duration(0)) for one in behind]
    await settle(store, Again(id=first.id, delay=Duration(60 * SECOND), tried="retryable"), *released)
    assert await claim(store, log) == []
    await do(database_url, "UPDATE outbox SET due_at = due_at - 60000000")
    assert [one.message for one in await claim(store, log)] == messages


async def test_what_is_held_back_within_a_lane_stops_it_there(store: Store) -> None:
    log = await declared(store)
    messages = await stage(
        store,
        1,
        row(1, log, "a"),
        row(1, log, "a", 1, delay=Duration(3600 * SECOND)),
        row(1, log, "a", 2),
    )
    (first,) = await claim(store, log)
    assert first.message == messages[0]
    await settle(store, Done(id=first.id, over="delivered"))
    assert await claim(store, log) == []


@pytest.mark.parametrize("state", ["dead", "unknown"])
async def test_a_message_that_stands_blocks_its_lane_until_it_is_sent_again(
    store: Store, state: Literal["dead", "unknown"]
) -> None:
    log = await declared(store)
    messages = await staged(store, log, 2, "a")
    (first,) = await claim(store, log, followers=0)
    await settle(store, Stands(id=first.id, state=state, note="no", tried="permanent", blocks=True))
    assert await claim(store, log) == []
    moved = await store.outbox.redrive(TENANT, messages[0], Redrive(anew=False, note="again"))
    assert moved is not None
    assert moved.is_done
    assert [one.message for one in await claim(store, log)] == messages


async def test_a_message_that_stands_and_does_not_block_is_passed(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 2, "a")
    (first,) = await claim(store, log, followers=0)
    await settle(store, Stands(id=first.id, state="dead", note="no", tried="permanent"))
    assert [one.message for one in await claim(store, log)] == messages[1:]


async def test_a_message_that_comes_back_to_its_lane_waits_for_those_that_are_under_way(store: Store) -> None:
    log = await declared(store, lanes="skip")
    messages = await staged(store, log, 3, "a")
    (first,) = await claim(store, log, followers=0)
    await settle(store, Stands(id=first.id, state="dead", note="no", tried="permanent"))
    second, third = await claim(store, log)
    await store.outbox.redrive(TENANT, messages[0], Redrive(anew=False, note="again"))
    assert await claim(store, log, lease=OTHER) == [], "the second is being sent"
    await settle(store, Done(id=second.id, over="delivered"))
    assert await claim(store, log, lease=OTHER) == [], "the third may be"
    await settle(store, Again(id=third.id, delay=Duration(0)))
    assert [one.message for one in await claim(store, log, lease=OTHER)] == [messages[0], messages[2]]


async def test_a_blocked_lane_goes_on_once_its_first_is_taken_back(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 2, "a")
    (first,) = await claim(store, log, followers=0)
    await settle(store, Stands(id=first.id, state="dead", note="no", tried="permanent", blocks=True))
    await store.outbox.cancel(TENANT, messages[0], "not wanted")
    assert [one.message for one in await claim(store, log)] == messages[1:]


async def test_lanes_have_their_turns_one_after_the_other(store: Store) -> None:
    log = await declared(store)
    for number, lane in enumerate("abcde"):
        await staged(store, log, 4, lane, number)
    seen: list[str | None] = []
    for _ in range(5):
        claimed = await claim(store, log, 2, followers=0)
        seen += [one.lane for one in claimed]
        await settle(store, *(Done(id=one.id, over="delivered") for one in claimed))
    assert sorted(str(lane) for lane in seen) == sorted("abcde" * 2)


async def test_neither_lanes_nor_messages_without_one_starve_the_others(store: Store) -> None:
    log = await declared(store)
    for number in range(10):
        await staged(store, log, 1, f"l{number}", number)
    await staged(store, log, 10, None, 20)
    seen = []
    for _ in range(4):
        seen += [one.lane is None for one in await claim(store, log, 2)]
    assert sorted(seen) == [False] * 4 + [True] * 4


async def test_a_lane_belongs_to_its_destination(store: Store) -> None:
    one, two = await declared(store, "one"), await declared(store, "two")
    await staged(store, one, 1, "a", 1)
    await staged(store, two, 1, "a", 2)
    assert len(await claim(store, one, 5)) == 1
    assert len(await claim(store, two, 5)) == 1


async def test_lanes_of_any_name_are_told_apart(store: Store) -> None:
    log = await declared(store)
    names = ["a", "A", "\u00e4", "a ", " a", "\ufb01", "\U0001f98a", "\U0010fffe", "0", "\u00e9", "e\u0301", "a/b"]
    for number, lane in enumerate(names):
        await staged(store, log, 2, lane, number)
    first = await claim(store, log, 5, followers=0)
    rest = await claim(store, log, 50, followers=0)
    assert sorted(str(one.lane) for one in [*first, *rest]) == sorted(names)


async def test_a_lane_of_very_many_waiting_messages_is_no_work_for_another(store: Store, database_url: str) -> None:
    """The claim walks from lane to lane and never along one: its work does not grow with what waits."""
    log = await declared(store)
    await staged(store, log, 1, "poison", 1)
    (first,) = await claim(store, log)
    await settle(store, Again(id=first.id, delay=Duration(3600 * SECOND), tried="retryable"))
    copied = "epoch, tenant, destination_id, destination, lane, content_type, headers, body, staged_at, state, attempts"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
    made = "randomblob(16)" if database_url.startswith("sqlite") else "gen_random_uuid()"
    await do(
        database_url,
        f"{numbers}INSERT INTO outbox (message, {copied}, in_lane, due_at) "
        f"SELECT {made}, {copied}, in_lane, staged_at FROM outbox, n WHERE lane = 'poison'",
    )
    other = await staged(store, log, 3, "other", 2)
    assert [one.message for one in await claim(store, log)] == other
    assert await state_of(store, other[0]) == "sending"
