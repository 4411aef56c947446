"""Instants are whole microseconds, and date-times to whoever is outside."""

from datetime import UTC, datetime, timedelta, timezone

from guard.core.effects import Instant, instant, moment


def test_an_instant_and_its_moment_are_the_same_to_the_microsecond() -> None:
    at = Instant(1_790_000_000_123_457)
    assert instant(moment(at)) == at
    assert moment(Instant(0)) == datetime(1970, 1, 1, tzinfo=UTC)
    assert instant(datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == 0
