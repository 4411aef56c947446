"""Who may claim a resource, and what an effect means to its hold."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.effects import SECOND, Attempt, AttemptToken, Duration, Fence, Instant, Key, Life, Report, TenantId
from guard.core.holds import (
    FOREVER,
    PROMISE,
    YIELD,
    Barred,
    Blocked,
    Changed,
    Claim,
    Free,
    Hold,
    HoldVerb,
    Rival,
    Wish,
    asked_until,
    change,
    contest,
    ended,
    is_kept_for_another,
    promise,
    rival_of,
    taken,
)
from twiceshy_contract.holds import HoldState
from twiceshy_contract.names import PublicState

NOW = Instant(1_000 * SECOND)
KEY = Key(bytes(32))
WISH = Wish(
    id=UUID(int=9),
    tenant=TenantId(1),
    resource="room-1",
    start=Instant(0),
    end=Instant(10),
    priority=5,
    holder="director",
    lasts=Duration(60 * SECOND),
)


def hold(number: int = 1, *, priority: int = 0, state: HoldState = "held", key: Key | None = None) -> Hold:
    return Hold(
        id=UUID(int=number),
        tenant=TenantId(1),
        resource="room-1",
        start=Instant(0),
        end=Instant(10),
        priority=priority,
        holder=f"agent-{number}",
        run=None,
        key=key,
        placed_at=Instant(NOW - 20 * SECOND),
        expires_at=Instant(NOW + 40 * SECOND),
        state=state,
    )


def life(state: PublicState, report: Report | None = None, *, ago: int = 5, settled: bool = False) -> Life:
    """Return a life whose latest attempt, if any, ended so many seconds ago."""
    if report is None:
        return Life(state=state)
    at = Instant(NOW - ago * SECOND)
    attempt = Attempt(
        token=AttemptToken(UUID(int=1)),
        fence=Fence(1),
        granted_at=Instant(NOW - 19 * SECOND),
        deadline=at,
        report=report,
        reported_at=None if report == "none" else at,
        settled=settled,
    )
    return Life(state=state, fence=Fence(1), attempts=(attempt,))


def bound(its: Life | None, number: int = 1, *, priority: int = 0) -> Claim:
    return Claim(hold=hold(number, priority=priority, key=KEY), life=its)


@pytest.mark.parametrize(
    ("its", "state"),
    [
        (None, "held"),
        (life("pending"), "held"),
        (life("executing", "none"), "held"),
        (life("in_doubt", "unknown"), "held"),
        (life("succeeded", "succeeded"), "committed"),
        (life("failed", "rejected"), "released"),
        (life("failed"), "released"),
        (life("pending", "not_applied"), "released"),
        (life("pending", "not_applied", ago=25), "held"),
        (life("pending", "none", ago=5), "held"),
        (life("pending", "none", ago=12), "released"),
        (life("pending", "unknown", ago=5, settled=True), "released"),
    ],
)
def test_what_an_effect_means_to_its_hold(its: Life | None, state: HoldState) -> None:
    assert bound(its).at(NOW).hold.state == state


def test_success_commits_for_good_and_an_end_is_dated() -> None:
    asked = replace(bound(life("succeeded", "succeeded")).hold, rival=Rival(id=UUID(int=9), holder="d", priority=5))
    committed = Claim(hold=asked, life=life("succeeded", "succeeded")).at(NOW).hold
    assert (committed.expires_at, committed.ended_at, committed.rival) == (None, None, None)
    assert bound(life("failed")).at(NOW).hold.ended_at == NOW


def test_a_hold_that_was_asked_for_is_lost_once_nothing_was_applied() -> None:
    asked = replace(hold(key=KEY), rival=rival_of(WISH))
    after = Claim(hold=asked, life=life("pending", "not_applied")).at(NOW).hold
    assert (after.state, after.rival) == ("lost", Rival(id=UUID(int=9), holder="director", priority=5))


@pytest.mark.parametrize(("settle", "state"), [(4, "released"), (6, "held"), (0, "released")])
def test_a_request_may_be_under_way_as_long_as_the_tool_says(settle: int, state: HoldState) -> None:
    claim = bound(life("pending", "none", ago=5))
    assert replace(claim, settle=Duration(settle * SECOND)).at(NOW).hold.state == state


@pytest.mark.parametrize("its", [None, life("pending")])
def test_a_hold_lapses_whose_effect_never_began(its: Life | None) -> None:
    old = replace(hold(key=KEY), expires_at=NOW)
    assert Claim(hold=old, life=its).at(NOW).hold.state == "expired"
    assert Claim(hold=replace(old, expires_at=None), life=its).at(NOW).hold.state == "held"
    assert Claim(hold=old, life=life("executing", "none")).at(NOW).hold.state == "held"


def test_success_after_the_hold_was_given_up_is_late_proof() -> None:
    done = replace(life("succeeded", "succeeded"), ended_at=NOW)
    before, after = Instant(NOW - 1), Instant(NOW + 1)
    assert Claim(hold=ended(hold(key=KEY), "released", before), life=done).is_proven_late
    assert not Claim(hold=ended(hold(key=KEY), "released", after), life=done).is_proven_late
    assert not Claim(hold=ended(hold(key=KEY), "released", before), life=replace(done, ended_at=None)).is_proven_late
    assert not Claim(hold=ended(hold(key=KEY), "released", before), life=life("failed")).is_proven_late
    assert not Claim(hold=ended(hold(key=KEY), "released", before)).is_proven_late
    assert not Claim(hold=hold(key=KEY), life=done).is_proven_late


def test_what_is_over_stays_over() -> None:
    for state in ("committed", "released", "lost", "expired"):
        claim = Claim(hold=hold(state=state, key=KEY), life=life("failed"))
        assert claim.at(NOW) is claim
        assert not claim.is_acting(NOW)


def test_nothing_in_the_way_and_lower_priorities_give_way() -> None:
    assert contest(WISH, [], NOW) == Free(())
    low, lower = hold(1, priority=4), hold(2, priority=-3)
    assert contest(WISH, [Claim(hold=low), Claim(hold=lower)], NOW) == Free((low, lower))


def test_an_equal_priority_and_a_committed_hold_stand() -> None:
    equal = Claim(hold=hold(1, priority=5))
    assert contest(WISH, [equal], NOW) == Blocked(by=equal, asked=(), retry_after=Duration(40 * SECOND))
    booked = Claim(hold=replace(hold(2, state="committed"), expires_at=None))
    assert contest(WISH, [equal, booked], NOW) == Blocked(by=booked, asked=(), retry_after=None)


def test_of_several_in_the_way_the_strongest_is_named_and_the_earliest_of_equals() -> None:
    first, strong = Claim(hold=hold(1, priority=6)), Claim(hold=hold(2, priority=7))
    later = Claim(hold=replace(hold(3, priority=7), placed_at=NOW))
    found = contest(WISH, [first, later, strong], NOW)
    assert isinstance(found, Blocked)
    assert found.by is strong


def test_a_lower_hold_whose_effect_is_under_way_is_asked_and_not_taken() -> None:
    acting, idle = bound(life("executing", "none")), Claim(hold=hold(2))
    assert contest(WISH, [idle, acting], NOW) == Blocked(by=acting, asked=(acting.hold,), retry_after=YIELD)
    doubtful = bound(life("in_doubt", "unknown"))
    assert contest(WISH, [doubtful], NOW) == Blocked(by=doubtful, asked=(doubtful.hold,), retry_after=YIELD)


def test_nobody_is_asked_to_give_way_for_a_wish_that_another_hold_blocks_anyway() -> None:
    acting, equal = bound(life("executing", "none")), Claim(hold=hold(2, priority=5))
    assert contest(WISH, [acting, equal], NOW) == Blocked(by=equal, asked=(), retry_after=Duration(40 * SECOND))


def test_a_hold_whose_effect_waits_is_taken_at_once() -> None:
    waiting = bound(life("pending"))
    assert contest(WISH, [waiting], NOW) == Free((waiting.hold,))
    lost = taken(waiting.hold, WISH, NOW)
    assert (lost.state, lost.ended_at, lost.rival) == ("lost", NOW, rival_of(WISH))


def test_the_time_of_a_hold_that_gave_way_is_kept_for_who_asked() -> None:
    assert promise(hold()) is None
    assert promise(replace(hold(), rival=rival_of(WISH))) is None
    lost = replace(ended(hold(key=KEY), "lost", NOW), rival=rival_of(WISH))
    kept = promise(lost)
    assert kept is not None
    assert (kept.hold.id, kept.hold.holder, kept.hold.priority, kept.hold.key) == (WISH.id, "director", 5, None)
    low, soon = replace(WISH, priority=4), Instant(NOW + PROMISE - 1)
    assert is_kept_for_another(kept, low, soon)
    assert contest(low, [kept], soon) == Blocked(by=kept, asked=(), retry_after=Duration(1))
    assert not is_kept_for_another(kept, WISH, soon)
    assert not is_kept_for_another(kept, low, Instant(NOW + PROMISE))


def test_a_wish_is_placed_for_its_time_and_knows_what_differs() -> None:
    placed = WISH.placed(NOW)
    assert (placed.state, placed.placed_at, placed.expires_at) == ("held", NOW, NOW + 60 * SECOND)
    assert replace(WISH, lasts=None).placed(NOW).expires_at is None
    assert WISH.differing(placed) == ()
    assert WISH.differing(replace(placed, end=Instant(11), holder="x")) == ("end", "holder")
    assert WISH.renewed(hold(priority=7), NOW).priority == 7
    assert WISH.renewed(hold(priority=1), NOW).priority == 5


def test_an_effect_that_waits_for_a_person_keeps_its_hold_and_one_that_is_not_there_does_not() -> None:
    late = replace(hold(key=KEY), expires_at=NOW)
    pending, forever = Life(state="pending"), FOREVER
    assert Claim(hold=late, life=pending, asked_until=forever).at(NOW).hold.state == "held"
    assert Claim(hold=late, life=pending, asked_until=NOW).at(NOW).hold.state == "expired"
    assert Claim(hold=late, life=pending).at(NOW).hold.state == "expired"
    assert Claim(hold=late, asked_until=forever).at(NOW).hold.state == "expired"
    failed = Life(state="failed", ended_at=NOW)
    assert Claim(hold=late, life=failed, asked_until=forever).at(NOW).hold.state == "released"


def test_a_hold_that_waits_for_a_person_is_looked_at_again_no_later_than_the_deadline() -> None:
    claim, again = Claim(hold=hold(key=KEY), life=Life(state="pending")), Duration(60 * SECOND)
    assert claim.looked_at(NOW, again).expires_at == NOW + 60 * SECOND
    for until, then in ((NOW + 7, NOW + 7), (NOW, NOW + 60 * SECOND), (FOREVER, NOW + 60 * SECOND)):
        asked = replace(claim, asked_until=Instant(until))
        assert asked.looked_at(NOW, again).expires_at == then


def test_who_meets_a_hold_that_waits_for_a_person_hears_when_it_may_end() -> None:
    claim = Claim(hold=hold(key=KEY, priority=9), life=Life(state="pending"))
    late, soon = Duration(90 * SECOND), Duration(40 * SECOND)
    for until, retry_after in ((NOW + late, late), (NOW + 7, soon), (FOREVER, None)):
        asked = replace(claim, asked_until=Instant(until))
        assert contest(WISH, [asked], NOW) == Blocked(by=asked, asked=(), retry_after=retry_after)


def test_a_hold_waits_for_the_answer_and_a_minute_for_its_caller_to_come() -> None:
    assert asked_until("open", None, None) == FOREVER
    assert asked_until("open", NOW, None) == NOW
    assert asked_until("approved", None, NOW) == NOW + 60 * SECOND
    assert asked_until("denied", None, NOW) is None
    assert asked_until("expired", NOW, None) is None


def changed(claim: Claim, verb: HoldVerb, holder: str = "agent-1") -> Changed | Barred:
    return change(claim, verb, holder, Duration(7), NOW)


def test_a_holder_commits_renews_and_releases() -> None:
    held = Claim(hold=hold())
    booked = replace(held.hold, state="committed", expires_at=None)
    assert changed(held, "commit") == Changed(booked)
    assert changed(held, "renew") == Changed(replace(held.hold, expires_at=Instant(NOW + 7)))
    assert changed(held, "release") == Changed(ended(held.hold, "released", NOW))
    for verb in ("commit", "renew"):
        assert changed(Claim(hold=booked), verb) == Changed(booked)
    assert changed(Claim(hold=booked), "release") == Changed(ended(booked, "released", NOW))


def test_a_hold_is_changed_by_its_holder_only_and_not_once_it_is_gone() -> None:
    held = Claim(hold=hold())
    assert changed(held, "release", "agent-2") == Barred("other_holder", held.hold)
    lost = Claim(hold=ended(held.hold, "lost", NOW))
    assert changed(lost, "commit") == Barred("gone", lost.hold)
    assert changed(lost, "release") == Changed(lost.hold)


def test_the_hold_of_an_effect_is_released_only_where_nothing_can_be_acting() -> None:
    waiting = bound(life("pending"))
    assert changed(waiting, "commit") == Barred("of_an_effect", waiting.hold)
    assert changed(waiting, "renew") == Barred("of_an_effect", waiting.hold)
    assert changed(waiting, "release") == Changed(ended(waiting.hold, "released", NOW))
    acting = bound(life("executing", "none"))
    assert changed(acting, "release") == Barred("acting", acting.hold)
    given_up = bound(replace(life("in_doubt", "unknown"), closed=True))
    assert changed(given_up, "release") == Changed(ended(given_up.hold, "released", NOW))
