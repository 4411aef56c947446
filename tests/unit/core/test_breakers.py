"""Breakers open on what goes badly, probe with one message, and let in-flight grow from little."""

import pytest
from msgspec.structs import replace

from guard.core.breakers import FORGOTTEN, LONGEST, Breaker, Tally, closed, told
from guard.core.effects import SECOND, Duration, Instant

NOW = Instant(1_000 * SECOND)


def _tally(good: int = 0, bad: int = 0, unreachable: int = 0, held_for: int | None = None) -> Tally:
    held = None if held_for is None else Duration(held_for * SECOND)
    return Tally(good=good, bad=bad, unreachable=unreachable, held_for=held)


def _later(seconds: float) -> Instant:
    return Instant(NOW + round(seconds * SECOND))


def _opened(openings: int = 0, jitter: float = 0) -> Breaker:
    return told(replace(closed(NOW), openings=openings), _tally(unreachable=5), NOW, jitter)


@pytest.mark.parametrize(
    ("good", "bad", "unreachable", "state"),
    [
        (5, 5, 0, "open"),
        (6, 5, 0, "closed"),
        (0, 9, 0, "closed"),
        (4, 3, 3, "open"),
        (0, 0, 4, "closed"),
        (0, 0, 5, "open"),
        (20, 0, 5, "open"),
    ],
)
def test_it_opens_at_half_of_ten_or_at_five_that_reached_nobody(
    good: int, bad: int, unreachable: int, state: str
) -> None:
    assert told(closed(NOW), _tally(good, bad, unreachable), NOW, 0).state == state


def test_tries_are_counted_over_reports_of_one_window() -> None:
    once = told(closed(NOW), _tally(bad=6), NOW, 0)
    assert told(once, _tally(good=2, bad=2), _later(30), 0).state == "open"
    anew = told(once, _tally(good=2, bad=2), _later(30.1), 0)
    assert (anew.state, anew.window_at, anew.good, anew.bad) == ("closed", _later(30.1), 2, 2)


def test_any_answer_ends_the_row_of_those_that_were_not_reached() -> None:
    four = told(closed(NOW), _tally(unreachable=4), NOW, 0)
    assert told(four, _tally(good=1), NOW, 0).unreachable == 0
    assert told(four, _tally(bad=1), NOW, 0).unreachable == 0
    assert told(four, _tally(unreachable=1), NOW, 0).state == "open"
    assert told(four, _tally(good=1, unreachable=4), NOW, 0).state == "closed"


@pytest.mark.parametrize(
    ("openings", "jitter", "length"),
    [(0, 0, 5), (0, 1, 7.5), (1, 0, 10), (3, 0.5, 50), (6, 0, 300), (50, 0, 300), (50, 1, 450)],
)
def test_it_stays_open_twice_as_long_each_time(openings: int, jitter: float, length: float) -> None:
    opened = _opened(openings, jitter)
    assert (opened.state, opened.open_until, opened.openings) == ("open", _later(length), openings + 1)
    assert LONGEST == 300 * SECOND


def test_it_may_not_be_asked_until_its_time_is_over() -> None:
    opened = _opened()
    assert opened.is_open(_later(4.9))
    assert not opened.is_open(_later(5))
    assert not closed(NOW).is_open(NOW)
    assert not Breaker(state="open", window_at=NOW).is_open(NOW)


def test_what_was_under_way_when_it_opened_counts_for_nothing() -> None:
    opened = _opened()
    assert told(opened, _tally(good=3, bad=20, unreachable=20), NOW, 0) == opened


def test_the_probe_closes_it_with_a_small_allowance() -> None:
    half = replace(_opened(2), state="half_open")
    well = told(half, _tally(good=1), _later(9), 0)
    assert well == Breaker(window_at=_later(9), allowance=2, openings=3)


def test_a_bad_probe_opens_it_again_for_longer_and_none_leaves_it() -> None:
    half = replace(_opened(), state="half_open")
    again = told(half, _tally(bad=1), _later(9), 0)
    assert (again.state, again.open_until, again.openings) == ("open", _later(19), 2)
    assert told(half, _tally(), _later(9), 0) == half


def test_the_allowance_doubles_with_what_it_lets_through_until_it_is_forgotten() -> None:
    well = Breaker(window_at=NOW, allowance=2, openings=3)
    more = told(well, _tally(good=2), NOW, 0)
    assert (more.allowance, more.openings) == (4, 3)
    assert told(more, _tally(), NOW, 0).allowance == 4
    done = told(more, _tally(good=FORGOTTEN - 4), NOW, 0)
    assert (done.allowance, done.openings) == (None, 0)
    assert told(done, _tally(good=1), NOW, 0).allowance is None


def test_one_that_asked_to_be_left_alone_is_held_and_never_shorter() -> None:
    held = told(closed(NOW), _tally(held_for=60), NOW, 0)
    assert (held.held_until, held.state) == (_later(60), "closed")
    assert held.is_open(_later(59))
    assert told(held, _tally(held_for=5), NOW, 0).held_until == _later(60)
    assert told(held, _tally(held_for=5), _later(58), 0).held_until == _later(63)
    assert told(held, _tally(unreachable=5), NOW, 0).held_until == _later(60)
    half = replace(held, state="half_open")
    assert told(half, _tally(good=1), NOW, 0).held_until == _later(60)
