"""How instants travel: RFC 3339 in UTC with microseconds."""

import functools
from datetime import UTC, datetime, timedelta

from guard.core.effects import SECOND, Instant, instant
from twiceshy_contract.refusals import Refusal, Step

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  in UTC, but without the offset in its text
_FIRST = instant(datetime.min.replace(tzinfo=UTC))
_LAST = instant(datetime.max.replace(tzinfo=UTC))


def instant_of(moment: datetime, *place: Step) -> Instant:
    """Return a date-time of a request as an instant. Raises Refusal for one that no answer could write."""
    at = instant(moment)
    if not _FIRST <= at <= _LAST:
        raise Refusal("an instant lies in the years 1 to 9999 of UTC", place)
    return at


def rfc3339(instant: Instant) -> str:
    """Write an instant, `2026-10-12T14:00:00.000000Z`."""
    second, rest = divmod(instant, SECOND)
    return f"{_written(second)}.{rest:06d}Z"


@functools.lru_cache(maxsize=256)
def _written(second: int) -> str:
    """Write a second; those of the answers of one moment are few."""
    return (_EPOCH + timedelta(seconds=second)).isoformat()


def rfc3339_or_none(instant: Instant | None) -> str | None:
    """Write an instant that may be absent."""
    return None if instant is None else rfc3339(instant)


def seconds_between(start: Instant, end: Instant) -> float:
    """Return the seconds from one instant to another; never less than none."""
    return max(end - start, 0) / SECOND
