"""Arithmetic of leases: deadlines, backoff, settle time, the provider's window."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from guard.core.effects import SECOND, Duration, Instant, Life, instant, seconds
from guard.core.lease import (
    MAX_BACKOFF,
    SETTLE,
    Rules,
    deadline,
    is_rerun_harmless,
    narrowed,
    retry_at,
    settles_at,
)
from tests.unit.core.lives import DOUBTFUL_TWO, IDEMPOTENT, IN_DOUBT, SIDE_EFFECT, SUCCEEDED, WINDOWED, A, B, at
from twiceshy_contract.names import EffectClass

ALMOST_ONE = 1 - 2**-53


def test_a_lease_ends_its_length_after_now() -> None:
    assert deadline(at(10), seconds(30)) == at(40)


def test_seconds_become_whole_microseconds() -> None:
    assert seconds(0.1) == 100_000
    assert seconds(1.0000004) == 1_000_000
    assert seconds(30) == 30_000_000


def test_settle_time_is_ten_seconds_and_backoff_ends_at_sixty() -> None:
    assert SETTLE == 10_000_000
    assert MAX_BACKOFF == 60_000_000


@pytest.mark.parametrize(
    ("tries", "ceiling"),
    [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (7, 60), (8, 60), (1000, 60)],
)
def test_the_backoff_doubles_with_each_try_up_to_sixty_seconds(tries: int, ceiling: int) -> None:
    assert retry_at(at(100), tries, SIDE_EFFECT, 0.5) == at(100 + ceiling / 2)
    assert retry_at(at(100), tries, SIDE_EFFECT, 0.0) == at(100)
    assert at(100) <= retry_at(at(100), tries, SIDE_EFFECT, ALMOST_ONE) < at(100 + ceiling)


def test_a_backoff_of_zero_retries_at_once_and_a_long_one_is_capped() -> None:
    assert retry_at(at(5), 9, Rules(backoff=Duration(0)), 0.9) == at(5)
    assert retry_at(at(5), 1, Rules(backoff=seconds(3600)), 0.5) == at(35)


def test_word_from_outside_is_believed_ten_seconds_after_the_last_unresolved_attempt() -> None:
    assert settles_at(IN_DOUBT, SIDE_EFFECT) == at(40)
    assert settles_at(DOUBTFUL_TWO, SIDE_EFFECT) == at(70)
    assert settles_at(DOUBTFUL_TWO, SIDE_EFFECT, besides=B) == at(40)
    assert settles_at(IN_DOUBT, SIDE_EFFECT, besides=A) is None
    assert settles_at(SUCCEEDED, SIDE_EFFECT) is None


def test_a_rerun_of_an_idempotent_tool_is_always_harmless() -> None:
    assert is_rerun_harmless(IN_DOUBT, IDEMPOTENT, at(10**6), seconds(3600))


def test_a_rerun_of_a_side_effect_without_a_window_never_is() -> None:
    assert not is_rerun_harmless(IN_DOUBT, SIDE_EFFECT, at(0), Duration(0))


def test_a_rerun_is_harmless_while_a_whole_lease_and_the_settle_time_fit_into_the_window() -> None:
    lease = seconds(30)
    assert is_rerun_harmless(IN_DOUBT, WINDOWED, at(60), lease)
    assert not is_rerun_harmless(IN_DOUBT, WINDOWED, Instant(60 * SECOND + 1), lease)


def test_a_rerun_is_not_called_harmless_where_the_key_was_never_used() -> None:
    fresh = Life(state="in_doubt")
    assert not is_rerun_harmless(fresh, WINDOWED, at(0), seconds(30))


def test_an_instant_is_whole_microseconds_since_1970_in_utc() -> None:
    assert instant(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert instant(datetime(1970, 1, 1, 2, 0, 0, 7, tzinfo=timezone(timedelta(hours=2)))) == 7
    assert instant(datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == 253_402_300_799_999_999


def test_a_window_is_no_larger_than_the_version_that_names_the_call_promises() -> None:
    none, short, long = Rules(), Rules(provider_window=seconds(5)), Rules(provider_window=seconds(9))
    assert narrowed(long, none).provider_window is None
    assert narrowed(none, long).provider_window is None
    assert narrowed(long, short).provider_window == narrowed(short, long).provider_window == seconds(5)


@pytest.mark.parametrize(
    ("today", "named_by", "counts"),
    [
        ("idempotent", "side_effect", "side_effect"),
        ("side_effect", "idempotent", "side_effect"),
        ("read", "idempotent", "idempotent"),
        ("read", "read", "read"),
    ],
)
def test_what_began_under_the_stricter_class_keeps_it(
    today: EffectClass, named_by: EffectClass, counts: EffectClass
) -> None:
    assert narrowed(Rules(effect_class=today), Rules(effect_class=named_by)).effect_class == counts
