"""The lease as the client sees it, counted from before the request: it never looks longer than it is."""

import time
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

Clock: TypeAlias = Callable[[], float]


def _awake_or_asleep() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


clock: Final[Clock] = _awake_or_asleep if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
"""Seconds that never go back and, where the system can tell, also pass while the machine sleeps."""


class Lease(msgspec.Struct, frozen=True):
    """The right to execute until `deadline`, by the client's clock. `since` is when it was last asked for."""

    since: float
    deadline: float

    @classmethod
    def granted(cls, sent_at: float, seconds_left: float) -> "Lease":
        """Count an answer's `lease_seconds_left` from before its request was sent."""
        return cls(sent_at, sent_at + seconds_left)

    def renewed(self, sent_at: float, seconds_left: float) -> "Lease":
        """Take a renewal; the deadline never moves back."""
        return Lease(sent_at, max(self.deadline, sent_at + seconds_left))

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - now)

    def has_ended(self, now: float) -> bool:
        """Tell whether the tool may not start any more."""
        return now >= self.deadline

    @property
    def renew_at(self) -> float:
        """When a third of the lease is over."""
        return self.since + (self.deadline - self.since) / 3

    @property
    def retry_every(self) -> float:
        """How long to wait after a renewal that failed."""
        return min(1.0, max(0.02, (self.deadline - self.since) / 12))
