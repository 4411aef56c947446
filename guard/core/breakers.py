"""Breakers: whether a destination is asked at all, by how it did lately.

It opens where half of at least ten tries within half a minute went badly, or where five in a row did not reach it. It
stays open for five seconds, twice as long each time it opens again, five minutes at the most; then one message is the
probe. Where that is answered it closes, and what may be in flight grows from little with every success (slow start).

A try that had begun before the breaker opened proves nothing about it afterwards: while it is open nothing counts.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from guard.core.effects import SECOND, Duration, Instant
from twiceshy_contract.destinations import BreakerState

WINDOW: Final = Duration(30 * SECOND)
ENOUGH: Final = 10
"""Tries in a window below which their share says nothing."""
IN_A_ROW: Final = 5
SHORTEST: Final = Duration(5 * SECOND)
LONGEST: Final = Duration(300 * SECOND)
FIRST_ALLOWANCE: Final = 2
FORGOTTEN: Final = 128
"""The allowance from which on a recovery is over."""


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """A destination's breaker. Half open, `open_until` is when its probe is given up as lost.

    `held_until` is until when the destination asked to be left alone. `openings` counts how often it opened since it
    was well. `good` and `bad` are of the window that began at `window_at`, `unreachable` of the tries in a row.
    """

    state: BreakerState = "closed"
    open_until: Instant | None = None
    held_until: Instant | None = None
    allowance: int | None = None
    openings: int = 0
    window_at: Instant
    good: int = 0
    bad: int = 0
    unreachable: int = 0

    def is_open(self, now: Instant) -> bool:
        """Say whether the destination may not be asked now."""
        is_held = self.held_until is not None and self.held_until > now
        return is_held or (self.state != "closed" and self.open_until is not None and self.open_until > now)


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Tries since the last report: answered well, answered badly, and not answered at all."""

    good: int
    bad: int
    unreachable: int
    held_for: Duration | None = None

    @property
    def failed(self) -> int:
        """How many did not go well."""
        return self.bad + self.unreachable


def told(breaker: Breaker, tally: Tally, now: Instant, jitter: float) -> Breaker:
    """Return the breaker after a report. `jitter` is from 0 to 1 and lengthens an opening by up to half."""
    if tally.held_for is not None:
        until = Instant(now + tally.held_for)
        breaker = replace(breaker, held_until=max(until, breaker.held_until or until))
    if breaker.state == "open":
        return breaker
    return (_probed if breaker.state == "half_open" else _counted)(breaker, tally, now, jitter)


def closed(now: Instant) -> Breaker:
    """Return the breaker of a destination of which nothing bad is known."""
    return Breaker(window_at=now)


def _probed(breaker: Breaker, tally: Tally, now: Instant, jitter: float) -> Breaker:
    if tally.good:
        well = replace(closed(now), held_until=breaker.held_until, openings=breaker.openings)
        return replace(well, allowance=FIRST_ALLOWANCE)
    return _opened(breaker, now, jitter) if tally.failed else breaker


def _counted(breaker: Breaker, tally: Tally, now: Instant, jitter: float) -> Breaker:
    if now - breaker.window_at > WINDOW:
        breaker = replace(breaker, window_at=now, good=0, bad=0)
    breaker = replace(
        breaker,
        good=breaker.good + tally.good,
        bad=breaker.bad + tally.failed,
        unreachable=tally.unreachable + (0 if tally.good or tally.bad else breaker.unreachable),
    )
    tries = breaker.good + breaker.bad
    if breaker.unreachable >= IN_A_ROW or (tries >= ENOUGH and 2 * breaker.bad >= tries):
        return _opened(breaker, now, jitter)
    if breaker.allowance is None or not tally.good:
        return breaker
    allowance = breaker.allowance + tally.good
    is_over = allowance >= FORGOTTEN
    return replace(breaker, allowance=None if is_over else allowance, openings=0 if is_over else breaker.openings)


def _opened(breaker: Breaker, now: Instant, jitter: float) -> Breaker:
    length = min(LONGEST, SHORTEST * 2 ** min(breaker.openings, 10))
    return Breaker(
        state="open",
        open_until=Instant(now + round(length * (1 + jitter / 2))),
        held_until=breaker.held_until,
        openings=breaker.openings + 1,
        window_at=now,
    )
