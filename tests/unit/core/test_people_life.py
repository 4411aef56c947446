"""What people do to an effect that waits: deny, cancel, reopen, and leave an approval open."""

import pytest

from guard.core.effects import Fence, Life
from guard.core.lifecycle import Decision, decide
from guard.core.situation import ApprovalStanding, Event, EventName
from tests.unit.core.lives import (
    EXECUTING,
    FAILED,
    IDEMPOTENT,
    IN_DOUBT,
    PENDING,
    SIDE_EFFECT,
    SUCCEEDED,
    A,
    B,
    asked,
    at,
    attempt,
    life,
    outcome,
)

TIRED = life("pending", attempt(A, 5, 30, "not_applied", 5), tries=5, epoch=1)
SILENT = life("pending", attempt(A, 1, 30))
"""An idempotent effect whose only attempt ended without word."""


def begun(before: Life | None, standing: ApprovalStanding, now: float = 10) -> Decision:
    """Return the decision on a begin of B whose approval stands so."""
    return decide(before, Event(name="begin", token=B, approval=standing), SIDE_EFFECT, at(now))


@pytest.mark.parametrize("event", ["denied", "cancelled"])
def test_what_is_denied_or_cancelled_has_failed_for_good(event: EventName) -> None:
    for waiting in (PENDING, TIRED, Life(state="pending")):
        decision = asked(waiting, event, now=12)
        assert outcome(decision) == ("failed", "done")
        assert (decision.life.ended_at, decision.life.retry_at, decision.life.closed) == (at(12), None, False)
        assert decision.life.attempts == waiting.attempts
        assert not decision.alert


@pytest.mark.parametrize("event", ["denied", "cancelled"])
def test_nobody_denies_or_cancels_what_a_silent_attempt_may_have_applied(event: EventName) -> None:
    decision = asked(SILENT, event, now=500, rules=IDEMPOTENT)
    assert (outcome(decision), decision.life) == (("pending", "unsettled"), SILENT)
    settled = asked(SILENT, "found_not_applied", fence=1, now=500, rules=IDEMPOTENT).life
    assert outcome(asked(settled, event, now=501, rules=IDEMPOTENT)) == ("failed", "done")


def test_a_success_that_comes_after_a_cancellation_contradicts_it_and_alerts() -> None:
    cancelled = asked(PENDING, "cancelled", now=12).life
    late = asked(cancelled, "success", A, now=13)
    assert (late.life, late.verdict, late.alert) == (cancelled, "contradicted", True)
    found = asked(cancelled, "found_applied", fence=1, now=13)
    assert (found.life, found.verdict, found.alert) == (cancelled, "contradicted", True)


def test_a_cancelled_effect_is_answered_from_the_record() -> None:
    cancelled = asked(PENDING, "cancelled", now=12).life
    assert asked(cancelled, "begin", B, now=13).verdict == "replay"


def test_a_reopened_effect_may_be_tried_as_often_again_as_at_first() -> None:
    reopened = asked(TIRED, "reopened", now=12)
    assert outcome(reopened) == ("pending", "done")
    assert (reopened.life.tries, reopened.life.retry_at, reopened.life.fence) == (0, None, Fence(5))
    assert outcome(asked(reopened.life, "begin", B, now=12)) == ("executing", "granted")


def test_a_reopened_effect_does_not_wait_for_its_retry_time() -> None:
    waiting = asked(EXECUTING, "not_applied", A, now=5, retry_after=60).life
    assert outcome(asked(waiting, "begin", B, now=6)) == ("pending", "retry_later")
    assert outcome(asked(asked(waiting, "reopened", now=6).life, "begin", B, now=6)) == ("executing", "granted")


def test_reopening_settles_nothing_of_a_silent_attempt() -> None:
    reopened = asked(SILENT, "reopened", now=100).life
    assert reopened.unresolved() == SILENT.attempts
    assert outcome(asked(reopened, "begin", B, now=101)) == ("in_doubt", "in_doubt")


@pytest.mark.parametrize("event", ["denied", "cancelled", "reopened"])
@pytest.mark.parametrize("before", [EXECUTING, IN_DOUBT, SUCCEEDED, FAILED])
def test_only_what_waits_can_be_denied_cancelled_or_reopened(before: Life, event: EventName) -> None:
    assert outcome(asked(before, event, now=12)) == (before.state, "not_possible")


def test_while_its_approval_is_open_nothing_is_granted() -> None:
    new = begun(None, "open")
    assert outcome(new) == ("pending", "await_approval")
    assert (new.life.attempts, new.life.fence) == ((), 0)
    for waiting in (new.life, PENDING, TIRED):
        assert (outcome(begun(waiting, "open")), begun(waiting, "open").life) == (
            ("pending", "await_approval"),
            waiting,
        )
        assert outcome(begun(waiting, "expired")) == ("pending", "approval_expired")
    assert outcome(begun(new.life, "approved")) == ("executing", "granted")


def test_an_approval_does_not_stand_in_the_way_of_the_attempt_that_holds_the_lease() -> None:
    holding = asked(None, "begin", B, now=5).life
    assert outcome(begun(holding, "open")) == ("executing", "granted")
    ended = life("pending", attempt(B, 1, 30, "not_applied", 5))
    assert outcome(begun(ended, "open")) == ("pending", "lease_lost")
