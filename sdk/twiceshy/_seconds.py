"""How long to wait, as a tool may say it: what is no duration is passed over, never raised inside the tool."""

import logging
import math
from datetime import timedelta
from decimal import Decimal
from numbers import Real

from twiceshy._said import kind_of

_log = logging.getLogger("twiceshy")


def seconds_of(value: object) -> float | None:
    """Read a `retry_after`: a timedelta or a number of seconds, 0 or more. Anything else is None, with a warning."""
    if value is None:
        return None
    seconds = _number(value)
    if seconds >= 0:
        return seconds
    _log.warning(
        "A retry_after is ignored: %s is no duration. Pass a number of seconds, 0 or more, or a timedelta.",
        f"a {kind_of(value)}" if math.isnan(seconds) else seconds,
    )
    return None


def _number(value: object) -> float:
    """Return a duration in seconds; not a number for what is none."""
    try:
        if isinstance(value, timedelta):
            return value.total_seconds()
        if isinstance(value, (Real, Decimal)) and not isinstance(value, bool):
            return float(value)
    except Exception:  # noqa: BLE001 - a number of the tool's own kind may raise anything
        return math.nan
    return math.nan
