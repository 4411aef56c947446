"""How instants travel: RFC 3339 in UTC with microseconds."""

from datetime import datetime, timedelta

from guard.core.effects import SECOND, Instant

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  in UTC, but without the offset in its text


def rfc3339(instant: Instant) -> str:
    """Write an instant, `2026-10-12T14:00:00.000000Z`."""
    return (_EPOCH + timedelta(microseconds=instant)).isoformat(timespec="microseconds") + "Z"


def rfc3339_or_none(instant: Instant | None) -> str | None:
    """Write an instant that may be absent."""
    return None if instant is None else rfc3339(instant)


def seconds_between(start: Instant, end: Instant) -> float:
    """Return the seconds from one instant to another; never less than none."""
    return max(end - start, 0) / SECOND
