"""Routes: what is asked of which destination, and how it is followed when it changes."""

import asyncio
from collections import deque
from uuid import UUID

import msgspec
import pytest

from guard.core.effects import Duration, Instant, TenantId
from guard.ports.relay import Again, Ask, Claimed, Way
from outbox_relay.delivery import Judged
from outbox_relay.hearing import Hearing
from outbox_relay.route import Flight, Route
from outbox_relay.routes import Routes
from outbox_relay.sinks.base import SinkRefused
from tests.integration.relaying import Liar
from twiceshy_contract.destinations import Destination, LogDestination

pytestmark = pytest.mark.anyio


def way(id_: int = 1, settings: Destination | None = None) -> Way:
    return Way(
        id=id_,
        tenant=TenantId(1),
        name=f"d{id_}",
        version=1,
        state="active",
        settings=settings or LogDestination(concurrency=8),
        breaker="closed",
        is_open=True,
    )


def claimed(id_: int) -> Claimed:
    return Claimed(
        id=id_, message=UUID(int=id_), epoch=1, tenant=TenantId(1), destination=1, name="d1", lane="a", type=None,
        recipient=None, content_type="", headers=b"{}", body=b"", run=None, staged_at=Instant(0), attempts=0,
        is_first=True, verdict="send",
    )  # fmt: skip


def routes(concurrency: int, *ways: Way, sink: Liar | None = None) -> Routes:
    made = Routes(lambda *_: sink or Liar(), concurrency)
    made.follow(ways)
    made.open(0)
    return made


def slots(made: Routes) -> dict[int, int]:
    return {ask.destination: ask.slots for ask in made.asks()}


async def test_each_destination_is_asked_for_what_it_allows() -> None:
    assert routes(64, way(1), way(2, LogDestination(concurrency=3))).asks() == [
        Ask(destination=1, slots=8, followers=50),
        Ask(destination=2, slots=3, followers=50),
    ]


async def test_what_is_under_way_is_not_asked_for_again() -> None:
    made = routes(64, way())
    for number in range(5):
        made.by_id[1].flights.add(Flight(made.by_id[1], claimed(number), None, 0, 30))
    assert slots(made) == {1: 3}


async def test_where_not_all_get_what_they_want_all_take_turns() -> None:
    made = routes(10, *(way(number) for number in range(1, 7)))
    assert slots(made) == {1: 1, 2: 1, 3: 2, 4: 2, 5: 2, 6: 2}
    narrow = routes(2, *(way(number) for number in range(1, 7)))
    assert [slots(narrow) for _ in range(4)] == [{1: 1, 2: 1}, {3: 1, 4: 1}, {5: 1, 6: 1}, {1: 1, 2: 1}]


def hang(made: Routes, id_: int, count: int) -> None:
    """Let so many sends be under way that do not end."""
    for number in range(count):
        made.by_id[id_].flights.add(Flight(made.by_id[id_], claimed(number), None, 0, 30))


async def test_a_slot_is_kept_for_each_destination_that_has_nothing_under_way() -> None:
    made = routes(16, *(way(number) for number in range(1, 5)))
    for id_ in (3, 4):
        made.by_id[id_].is_hungry = False
    hang(made, 1, 8)
    hang(made, 2, 5)
    assert slots(made) == {2: 1}
    hang(made, 2, 1)
    assert slots(made) == {}
    made.by_id[3].is_hungry = True
    assert slots(made) == {3: 1}
    hang(made, 3, 1)
    made.by_id[4].is_hungry = True
    assert slots(made) == {4: 1}


async def test_one_that_is_quick_and_has_much_to_send_leaves_room_for_one_that_costs_doubt() -> None:
    made = routes(64, way(1, LogDestination(concurrency=64, at_least_once=True)), way(2))
    made.by_id[2].is_hungry = False
    for _ in range(200):
        made.by_id[1].took(0.001)
    assert slots(made) == {1: 567}
    hang(made, 1, 567)
    made.by_id[2].is_hungry = True
    assert slots(made) == {2: 8}


async def test_what_is_claimed_ahead_is_little_where_a_send_takes_long_and_nothing_where_it_costs_doubt() -> None:
    swift, slow = routes(640, way(), sink=Liar(capability="deduplicates")), routes(640, way())
    for _ in range(200):
        swift.by_id[1].took(0.001)
        slow.by_id[1].took(0.001)
    assert (slots(swift), slots(slow)) == ({1: 72}, {1: 8})
    for _ in range(200):
        swift.by_id[1].took(2.0)
    assert slots(swift) == {1: 8}


@pytest.mark.parametrize(
    "change", [{"state": "paused"}, {"state": "disabled"}, {"is_open": False}, {"version": 2}, {"state": "removed"}]
)
async def test_a_destination_that_may_not_be_asked_is_not(change: dict[str, object]) -> None:
    made = routes(64, way())
    made.by_id[1].flights.add(Flight(made.by_id[1], claimed(1), None, 0, 30))
    made.follow([msgspec.structs.replace(way(), **change)])
    assert made.asks() == []


async def test_a_change_gives_back_what_is_not_under_way() -> None:
    made = routes(64, way())
    flight = Flight(made.by_id[1], claimed(1), deque([claimed(2), claimed(3)]), 0, 30)
    made.by_id[1].flights.add(flight)
    given = made.follow([msgspec.structs.replace(way(), version=2)])
    assert given == [Again(id=2, delay=Duration(0)), Again(id=3, delay=Duration(0))]
    assert flight.rest is None


async def test_a_changed_destination_is_opened_anew_once_nothing_is_under_way() -> None:
    opened: list[Liar] = []

    def open_sink(name: str, settings: Destination) -> Liar:
        del name, settings
        opened.append(Liar())
        return opened[-1]

    made = Routes(open_sink, 64)
    made.follow([way()])
    made.open(0)
    flight = Flight(made.by_id[1], claimed(1), None, 0, 30)
    made.by_id[1].flights.add(flight)
    made.follow([msgspec.structs.replace(way(), version=2)])
    made.open(0)
    assert (len(opened), made.has_changes) == (1, False)
    made.by_id[1].flights.discard(flight)
    assert made.has_changes
    made.open(0)
    await asyncio.sleep(0)
    assert (len(opened), opened[0].is_closed, slots(made)) == (2, True, {1: 8})


async def test_a_destination_that_is_removed_is_forgotten_and_one_that_comes_back_is_known() -> None:
    made = routes(64, way())
    made.follow([])
    made.open(0)
    assert made.by_id == {}
    made.follow([way()])
    made.open(0)
    assert slots(made) == {1: 8}


async def test_a_destination_that_cannot_be_opened_is_tried_after_longer_and_longer_pauses() -> None:
    tried: list[float] = []

    def refuse(name: str, settings: Destination) -> Liar:
        del name, settings
        tried.append(now)
        raise SinkRefused("no secret")

    route = Route(way())
    for second in range(20):
        now = float(second)
        route.open(refuse, now)
    assert tried == [0, 1, 3, 7, 15]
    assert route.hearing.note == "no secret"


def judged(bad: int = 0, unreachable: int = 0) -> Judged:
    settlement = Again(id=1, delay=Duration(0))
    return Judged(settlement=settlement, outcome="retryable", note="x", bad=bad, unreachable=unreachable)


def test_any_answer_ends_a_row_of_tries_that_found_nobody() -> None:
    hearing = Hearing()
    for counts in ({"unreachable": 1}, {"unreachable": 1}, {"bad": 1}, {"unreachable": 1}):
        hearing.add(judged(**counts))
    told = hearing.told(1)
    assert (told.good, told.bad, told.unreachable) == (0, 1, 1)


def test_what_could_not_be_reported_is_counted_with_what_comes_later() -> None:
    before, later = Hearing(), Hearing()
    before.add(judged(unreachable=1))
    before.add(judged(unreachable=1))
    later.add(judged(unreachable=1))
    later.follow(before)
    assert later.told(1).unreachable == 3
    answered = Hearing()
    answered.add(judged(bad=1))
    answered.follow(before)
    assert (answered.told(1).bad, answered.told(1).unreachable) == (1, 0)
