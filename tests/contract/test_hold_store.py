"""What every store must do with holds."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.effects import SECOND, Duration, TenantId
from guard.core.holds import Barred, Rival
from guard.ports.holds import Different, Foreign, HoldFilter, HoldPage
from guard.ports.store import Store
from guard.service.holds import Holds
from guard.service.outcomes import Refused
from tests.contract.given import TENANT
from tests.contract.given_holds import MINUTE, TWO_O_CLOCK, changed, committed, occupied, placed, state_of, wish
from twiceshy_contract.holds import PlaceHoldRequest


async def test_a_hold_is_placed_by_the_clock_of_the_database_and_read_back(store: Store) -> None:
    answer = await placed(store, wish(1, priority=3))
    hold = answer.hold
    assert (answer.is_new, answer.taken) == (True, ())
    assert (hold.resource, hold.start, hold.end) == ("room-1", TWO_O_CLOCK, TWO_O_CLOCK + 30 * MINUTE)
    assert (hold.state, hold.holder, hold.priority, hold.run, hold.key) == ("held", "agent-1", 3, None, None)
    assert hold.placed_at == answer.at
    assert hold.expires_at == answer.at + 60 * SECOND
    standing = await store.holds.get(TENANT, UUID(int=1))
    assert standing is not None
    assert standing.hold == hold
    assert standing.at >= answer.at


async def test_asking_again_with_the_id_is_the_same_hold_and_with_other_words_it_is_refused(store: Store) -> None:
    first = await placed(store, wish(1))
    again = await placed(store, wish(1))
    assert (again.is_new, again.hold) == (False, first.hold)
    other = await store.holds.place(replace(wish(1, end=31), priority=2))
    assert isinstance(other, Different)
    assert (other.hold, other.names) == (first.hold, ("end", "priority"))


async def test_the_id_of_another_tenants_hold_says_nothing_about_it(store: Store) -> None:
    await placed(store, wish(1))
    foreign = replace(wish(1, resource="room-2"), tenant=TenantId(2))
    assert isinstance(await store.holds.place(foreign), Foreign)
    request = PlaceHoldRequest(id=UUID(int=1), resource="room-2", start=datetime.now(UTC), holder="eve", minutes=30)
    refused = await Holds(store.holds).place(TenantId(2), request)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.hold) == ("not-found", None)
    assert await state_of(store, 1) == "held"


async def test_holds_that_overlap_conflict_and_the_answer_names_the_one_in_the_way(store: Store) -> None:
    first = await placed(store, wish(1))
    for start, end in ((0, 30), (29, 31), (-10, 1), (10, 20), (-10, 60)):
        answer = await occupied(store, wish(2, start, end))
        assert answer.by.hold == first.hold
        assert answer.retry_after == (first.hold.expires_at or 0) - answer.at
    assert await store.holds.get(TENANT, UUID(int=2)) is None


async def test_adjacent_intervals_other_resources_and_other_tenants_do_not_conflict(store: Store) -> None:
    await placed(store, wish(1))
    await placed(store, wish(2, 30, 60))
    await placed(store, wish(3, -30, 0))
    await placed(store, wish(4, resource="room-2"))
    await placed(store, replace(wish(5), tenant=TenantId(2)))


async def test_a_higher_priority_takes_over_and_an_equal_one_does_not(store: Store) -> None:
    first = await placed(store, wish(1))
    await occupied(store, wish(2, priority=0))
    taker = await placed(store, wish(3, priority=1))
    assert [hold.id for hold in taker.taken] == [first.hold.id]
    lost = await store.holds.get(TENANT, UUID(int=1))
    assert lost is not None
    assert (lost.hold.state, lost.hold.ended_at) == ("lost", taker.at)
    assert lost.hold.rival == Rival(id=UUID(int=3), holder="agent-3", priority=1)
    assert (await changed(store, "commit", 1)).result == Barred("gone", lost.hold)
    assert (await occupied(store, wish(2))).by.hold.id == UUID(int=3)


async def test_a_committed_hold_is_never_taken_over(store: Store) -> None:
    await placed(store, wish(1))
    assert (await committed(store, 1)).expires_at is None
    assert (await committed(store, 1)).state == "committed"
    answer = await occupied(store, wish(2, priority=1000))
    assert (answer.by.hold.state, answer.retry_after) == ("committed", None)


async def test_several_holds_are_taken_over_all_or_none(store: Store) -> None:
    await placed(store, wish(1, 0, 10))
    await placed(store, wish(2, 10, 20, priority=5))
    await placed(store, wish(3, 20, 30))
    answer = await occupied(store, wish(4, priority=3))
    assert answer.by.hold.id == UUID(int=2)
    assert [await state_of(store, number) for number in (1, 2, 3)] == ["held", "held", "held"]
    taker = await placed(store, wish(4, priority=6))
    assert [hold.id.int for hold in taker.taken] == [1, 2, 3]
    assert [await state_of(store, number) for number in (1, 2, 3)] == ["lost", "lost", "lost"]


async def test_a_hold_that_has_run_out_is_cleared_when_it_is_met(store: Store) -> None:
    await placed(store, wish(1, lasts=Duration(0)))
    assert await state_of(store, 1) == "expired"
    await placed(store, wish(2, lasts=Duration(0)))
    await placed(store, wish(3))
    assert await state_of(store, 2) == "expired"
    assert isinstance((await changed(store, "renew", 2)).result, Barred)


async def test_a_sweep_clears_what_has_run_out_and_nothing_else(store: Store) -> None:
    await placed(store, wish(1, lasts=Duration(0)))
    await placed(store, wish(2, 30, 60, lasts=Duration(0)))
    await placed(store, wish(3, 60, 90))
    await placed(store, wish(4, 90, 120, lasts=None))
    assert await store.holds.sweep(1) == 1
    assert await store.holds.sweep(10) == 1
    assert await store.holds.sweep(10) == 0
    assert [await state_of(store, number) for number in (1, 2, 3, 4)] == ["expired", "expired", "held", "held"]


async def test_only_its_holder_changes_a_hold_and_a_release_frees_the_time(store: Store) -> None:
    await placed(store, wish(1))
    renewed = (await changed(store, "renew", 1)).result.hold
    assert renewed.expires_at is not None
    assert (await changed(store, "release", 1)).result.hold.state == "released"
    assert (await changed(store, "release", 1)).result.hold.state == "released"
    await placed(store, wish(2))
    await committed(store, 2)
    assert (await changed(store, "release", 2)).result.hold.state == "released"
    await placed(store, wish(3))
    assert await store.holds.change(TENANT, UUID(int=9), lambda claim, _: Barred("gone", claim.hold)) is None
    assert await store.holds.change(TenantId(2), UUID(int=3), lambda claim, _: Barred("gone", claim.hold)) is None
    assert await store.holds.get(TenantId(2), UUID(int=3)) is None


async def test_pages_are_by_resource_and_start_and_show_holds_as_they_stand(store: Store) -> None:
    await placed(store, wish(1, 30, 60))
    await placed(store, wish(2, 0, 30, lasts=Duration(0)))
    await placed(store, wish(3, 60, 90))
    await committed(store, 3)
    await placed(store, wish(4, resource="Room-0"))
    await placed(store, wish(5, resource="ärea"))
    everything = ["Room-0 held", "room-1 expired", "room-1 held", "room-1 committed", "ärea held"]
    assert await _paged(store, HoldFilter(limit=50)) == [everything]
    assert await _paged(store, HoldFilter(limit=5)) == [everything]
    assert await _paged(store, HoldFilter(limit=2)) == [everything[:2], everything[2:4], everything[4:]]
    assert await _paged(store, HoldFilter(state="committed")) == [["room-1 committed"]]
    assert await _paged(store, HoldFilter(resource="room-1", state="expired")) == [["room-1 expired"]]
    first, second = wish(9, 30, 61).start, wish(9, 30, 61).end
    assert await _paged(store, HoldFilter(start=first, end=second)) == [["room-1 held", "room-1 committed"]]
    assert (await store.holds.page(TenantId(2), HoldFilter())).holds == []


async def _paged(store: Store, chosen: HoldFilter) -> list[list[str]]:
    pages: list[list[str]] = []
    page: HoldPage | None = None
    while page is None or page.next is not None:
        page = await store.holds.page(TENANT, replace(chosen, after=None if page is None else page.next))
        pages.append([f"{hold.resource} {hold.state}" for hold in page.holds])
    return pages


@pytest.mark.parametrize("cursor", ["", "cw", "é", "room-1", "aAAA"])
async def test_a_foreign_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match="is not a cursor"):
        await store.holds.page(TENANT, HoldFilter(after=cursor))
