"""What happens to an effect, and the conditions under which a row of the table applies."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, cast

import msgspec

from guard.core import lease as leases
from guard.core.effects import NEVER_GRANTED, Attempt, AttemptToken, Duration, Fence, Instant, Life, Report
from guard.core.lease import Rules

EventName = Literal[
    "begin", "success", "not_applied", "rejected", "unknown", "renew", "release", "deadline",
    "found_applied", "found_not_applied", "closed", "denied", "cancelled", "reopened",
]  # fmt: skip
Condition = Literal[
    "own lease", "token ended", "by the latest", "by an attempt", "unreported", "said so before",
    "another unresolved", "settled", "re-run harmless", "alone or re-run harmless", "attempts left",
    "too early", "idempotent", "harmless anyway", "fence moved", "approval open", "approval expired",
]  # fmt: skip


ApprovalStanding = Literal["not_needed", "open", "approved", "expired"]
"""How the approval that a begin needs stands."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is asked or reported of an effect. `jitter` (0 ≤ j < 1) spreads the retry time.

    `asked_at` is when the effect was read before its provider was asked; without it, word counts as just learned.
    """

    name: EventName
    token: AttemptToken | None = None
    fence: Fence | None = None
    lease: Duration | None = None
    reopen: bool = False
    retry_after: Duration | None = None
    jitter: float = 0.0
    asked_at: Instant | None = None
    approval: ApprovalStanding = "not_needed"


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """All that a condition may look at."""

    life: Life
    event: Event
    rules: Rules
    now: Instant

    @property
    def attempt(self) -> Attempt | None:
        """The attempt that the event names with its token and, where it gives one, its fence."""
        if self.event.token is None:
            return None
        found = self.life.attempt(self.event.token)
        if found is None or self.event.fence not in (None, found.fence):
            return None
        return found

    @property
    def known_attempt(self) -> Attempt:
        """The attempt, where the row's conditions have found it."""
        return cast("Attempt", self.attempt)

    @property
    def token(self) -> AttemptToken:
        """The token, where the event always names one."""
        return cast("AttemptToken", self.event.token)

    @property
    def lease(self) -> Duration:
        """The lease that the event asks for, or the tool's."""
        return self.rules.lease if self.event.lease is None else self.event.lease


# The conditions, in the order of their names in `Condition`.


def _is_own_lease(s: Situation) -> bool:
    attempt = s.attempt
    return attempt is not None and attempt is s.life.latest and not attempt.is_ended


def _is_token_ended(s: Situation) -> bool:
    return s.attempt is not None


def _is_by_latest(s: Situation) -> bool:
    return s.attempt is not None and s.attempt is s.life.latest


def _is_by_attempt(s: Situation) -> bool:
    return s.attempt is not None and s.attempt.fence > NEVER_GRANTED


def _is_unreported(s: Situation) -> bool:
    return s.attempt is not None and not s.attempt.is_ended


def _said_so_before(s: Situation) -> bool:
    return s.attempt is not None and s.attempt.report == REPORTS.get(s.event.name)


def _is_another_unresolved(s: Situation) -> bool:
    return bool(s.life.unresolved(besides=s.event.token))


def _is_settled(s: Situation) -> bool:
    at = leases.settles_at(s.life, s.rules)
    return at is None or at <= (s.now if s.event.asked_at is None else min(s.event.asked_at, s.now))


def _is_rerun_harmless(s: Situation) -> bool:
    return leases.is_rerun_harmless(s.life, s.rules, s.now, s.lease)


def _is_alone_or_rerun_harmless(s: Situation) -> bool:
    return not _is_another_unresolved(s) or _is_rerun_harmless(s)


def _has_attempts_left(s: Situation) -> bool:
    return s.event.reopen or s.life.tries < s.rules.attempts


def _is_too_early(s: Situation) -> bool:
    return s.life.retry_at is not None and s.now < s.life.retry_at and not s.event.reopen


def _is_idempotent(s: Situation) -> bool:
    return s.rules.effect_class == "idempotent"


def _is_harmless_anyway(s: Situation) -> bool:
    return _is_idempotent(s) and _is_another_unresolved(s)


def _is_fence_moved(s: Situation) -> bool:
    return s.event.fence != s.life.fence


def _is_approval_open(s: Situation) -> bool:
    return s.event.approval == "open"


def _is_approval_expired(s: Situation) -> bool:
    return s.event.approval == "expired"


CONDITIONS: Final[Mapping[Condition, Callable[[Situation], bool]]] = MappingProxyType(
    {
        "own lease": _is_own_lease,
        "token ended": _is_token_ended,
        "by the latest": _is_by_latest,
        "by an attempt": _is_by_attempt,
        "unreported": _is_unreported,
        "said so before": _said_so_before,
        "another unresolved": _is_another_unresolved,
        "settled": _is_settled,
        "re-run harmless": _is_rerun_harmless,
        "alone or re-run harmless": _is_alone_or_rerun_harmless,
        "attempts left": _has_attempts_left,
        "too early": _is_too_early,
        "idempotent": _is_idempotent,
        "harmless anyway": _is_harmless_anyway,
        "fence moved": _is_fence_moved,
        "approval open": _is_approval_open,
        "approval expired": _is_approval_expired,
    }
)

REPORTS: Final[Mapping[EventName, Report]] = MappingProxyType(
    {
        "success": "succeeded",
        "not_applied": "not_applied",
        "rejected": "rejected",
        "unknown": "unknown",
        "release": "released",
    }
)
