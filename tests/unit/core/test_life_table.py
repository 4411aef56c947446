"""The rows of an effect that is pending or executing, as the design's table says them in a sentence."""

import pytest

from guard.core.situation import EventName
from tests.unit.core.lives import (
    EXECUTING,
    IDEMPOTENT,
    IN_DOUBT,
    PENDING,
    SILENT_TWO,
    STRANGER,
    WINDOWED,
    A,
    B,
    asked,
    at,
    attempt,
    life,
    outcome,
)


def test_a_first_begin_is_granted_a_lease_under_fence_1() -> None:
    decision = asked(None, "begin", A, now=10)
    assert outcome(decision) == ("executing", "granted")
    assert decision.life.fence == 1
    assert decision.life.attempts == (attempt(A, 1, 40),)
    assert decision.life.tries == 1
    assert decision.life.epoch_since == at(10)


def test_pending_begin_with_nothing_in_the_way_executes_under_the_next_fence() -> None:
    decision = asked(PENDING, "begin", B, now=100)
    assert outcome(decision) == ("executing", "granted")
    assert (decision.life.fence, decision.life.tries) == (2, 2)
    assert decision.life.attempts[1] == attempt(B, 2, 130)


def test_pending_begin_before_its_retry_time_says_retry_later() -> None:
    waiting = asked(EXECUTING, "not_applied", A, now=5).life
    assert waiting.retry_at == at(5.5)
    assert outcome(asked(waiting, "begin", B, now=5.4)) == ("pending", "retry_later")
    assert outcome(asked(waiting, "begin", B, now=5.5)) == ("executing", "granted")


def test_pending_begin_with_attempts_exhausted_says_so_until_it_is_reopened() -> None:
    tired = life("pending", attempt(A, 5, 30, "not_applied", 5), tries=5)
    assert outcome(asked(tired, "begin", B)) == ("pending", "exhausted")
    reopened = asked(tired, "begin", B, reopen=True)
    assert outcome(reopened) == ("executing", "granted")
    assert reopened.life.tries == 1


def test_reopen_does_not_wait_for_the_retry_time() -> None:
    waiting = asked(EXECUTING, "not_applied", A, now=5).life
    assert outcome(asked(waiting, "begin", B, now=5.1, reopen=True)) == ("executing", "granted")


def test_an_operator_reopens_what_is_exhausted_by_saying_that_nothing_was_applied() -> None:
    tired = life("pending", attempt(A, 5, 30, "not_applied", 5), tries=5, epoch=1)
    reopened = asked(tired, "found_not_applied", fence=5)
    assert outcome(reopened) == ("pending", "done")
    assert (reopened.life.tries, reopened.life.epoch, reopened.life.retry_at) == (0, 2, None)


def test_an_operator_who_looked_before_the_last_lease_reopens_nothing() -> None:
    assert outcome(asked(PENDING, "found_not_applied", fence=0)) == ("pending", "changed_since")


def test_pending_success_reported_late_by_an_earlier_attempt_succeeds() -> None:
    lapsed = life("pending", attempt(A, 1, 30))
    decision = asked(lapsed, "success", A, now=50, rules=IDEMPOTENT)
    assert outcome(decision) == ("succeeded", "done")
    assert decision.life.attempts == (attempt(A, 1, 30, "succeeded", 50),)
    assert decision.life.ended_at == at(50)


@pytest.mark.parametrize("event", ["not_applied", "unknown"])
def test_pending_keeps_what_an_earlier_attempt_says_late_and_stays_pending(event: EventName) -> None:
    lapsed = life("pending", attempt(A, 1, 30))
    decision = asked(lapsed, event, A, now=50, rules=IDEMPOTENT)
    assert outcome(decision) == ("pending", "done")
    assert decision.life.attempts[0].report == event
    assert outcome(asked(decision.life, event, A, now=51, rules=IDEMPOTENT)) == ("pending", "repeated")


def test_executing_commit_by_the_leases_attempt_succeeds() -> None:
    decision = asked(EXECUTING, "success", A, now=20)
    assert outcome(decision) == ("succeeded", "done")
    assert not decision.alert


def test_executing_commit_past_the_deadline_while_nobody_took_over_succeeds_without_an_alert() -> None:
    decision = asked(EXECUTING, "success", A, now=500)
    assert outcome(decision) == ("succeeded", "done")
    assert not decision.alert


def test_executing_commit_by_an_earlier_attempt_succeeds_at_once_and_alerts() -> None:
    decision = asked(SILENT_TWO, "success", A, now=40)
    assert outcome(decision) == ("succeeded", "done")
    assert decision.alert
    assert outcome(asked(decision.life, "renew", B, now=41)) == ("succeeded", "superseded")


def test_executing_commit_by_an_earlier_attempt_of_a_provider_idempotent_tool_does_not_alert() -> None:
    assert not asked(SILENT_TWO, "success", A, now=40, rules=WINDOWED).alert
    assert not asked(SILENT_TWO, "success", A, now=40, rules=IDEMPOTENT).alert


def test_a_commit_after_word_from_outside_that_nothing_was_applied_alerts() -> None:
    settled = asked(IN_DOUBT, "found_not_applied", fence=1, now=40).life
    decision = asked(settled, "success", A, now=50)
    assert outcome(decision) == ("succeeded", "done")
    assert decision.alert


def test_executing_not_applied_with_no_other_attempt_unresolved_is_pending_with_a_retry_time() -> None:
    decision = asked(EXECUTING, "not_applied", A, now=10)
    assert outcome(decision) == ("pending", "done")
    assert decision.life.retry_at == at(10.5)
    assert (decision.life.epoch, decision.life.epoch_since) == (1, None)


def test_executing_rejected_with_no_other_attempt_unresolved_fails() -> None:
    decision = asked(EXECUTING, "rejected", A, now=10)
    assert outcome(decision) == ("failed", "done")
    assert decision.life.ended_at == at(10)
    assert outcome(asked(decision.life, "begin", B)) == ("failed", "replay")


@pytest.mark.parametrize("event", ["not_applied", "rejected"])
def test_executing_not_applied_or_rejected_while_another_attempt_is_unresolved_is_in_doubt(event: EventName) -> None:
    decision = asked(SILENT_TWO, event, B, now=40, rules=WINDOWED)
    assert outcome(decision) == ("in_doubt", "done")
    assert decision.life.attempts[1].report == event
    assert decision.life.epoch == 0


def test_executing_unknown_is_in_doubt() -> None:
    decision = asked(EXECUTING, "unknown", A, now=12)
    assert outcome(decision) == ("in_doubt", "done")
    assert decision.life.attempts == (attempt(A, 1, 30, "unknown", 12),)


def test_executing_unknown_of_an_idempotent_tool_is_pending_after_a_backoff() -> None:
    decision = asked(EXECUTING, "unknown", A, now=12, rules=IDEMPOTENT)
    assert outcome(decision) == ("pending", "done")
    assert (decision.life.retry_at, decision.life.epoch) == (at(12.5), 0)


def test_executing_past_its_deadline_is_in_doubt_for_a_side_effect() -> None:
    assert outcome(asked(EXECUTING, "begin", B, now=29.9)) == ("executing", "in_progress")
    assert outcome(asked(EXECUTING, "begin", B, now=30)) == ("in_doubt", "in_doubt")


def test_executing_past_its_deadline_is_pending_for_an_idempotent_tool_and_counts_as_an_attempt() -> None:
    decision = asked(EXECUTING, "begin", B, now=30, rules=IDEMPOTENT)
    assert outcome(decision) == ("executing", "granted")
    assert (decision.life.fence, decision.life.tries, decision.life.epoch) == (2, 2, 0)


def test_executing_begin_asked_again_with_the_same_attempt_gets_its_lease_renewed() -> None:
    decision = asked(EXECUTING, "begin", A, now=10)
    assert outcome(decision) == ("executing", "granted")
    assert decision.life.attempts[0].deadline == at(40)
    assert (decision.life.fence, decision.life.tries) == (1, 1)


@pytest.mark.parametrize("event", ["not_applied", "rejected", "unknown"])
def test_executing_keeps_what_an_earlier_attempt_says_and_goes_on(event: EventName) -> None:
    decision = asked(SILENT_TWO, event, A, now=40, rules=WINDOWED)
    assert outcome(decision) == ("executing", "done")
    assert decision.life.attempts[0].report == event
    assert outcome(asked(decision.life, event, A, now=41, rules=WINDOWED)) == ("executing", "repeated")


def test_executing_renew_moves_the_deadline_and_never_back() -> None:
    assert asked(EXECUTING, "renew", A, now=10).life.attempts[0].deadline == at(40)
    assert asked(life("executing", attempt(A, 1, 90)), "renew", A, now=10).life.attempts[0].deadline == at(90)


def test_executing_renew_by_an_earlier_attempt_is_lease_lost() -> None:
    assert outcome(asked(SILENT_TWO, "renew", A, now=40, rules=WINDOWED)) == ("executing", "lease_lost")


def test_executing_renew_is_refused_where_another_is_unresolved_and_the_window_is_too_short() -> None:
    assert outcome(asked(SILENT_TWO, "renew", B, now=55, rules=WINDOWED)) == ("executing", "done")
    late = life("executing", attempt(A, 1, 30), attempt(B, 2, 70))
    assert outcome(asked(late, "renew", B, now=61, rules=WINDOWED)) == ("executing", "lease_lost")


def test_executing_release_of_the_own_lease_is_pending_and_no_try() -> None:
    decision = asked(EXECUTING, "release", A, now=1)
    assert outcome(decision) == ("pending", "done")
    assert decision.life.tries == 0
    assert outcome(asked(decision.life, "begin", A, now=2)) == ("pending", "lease_lost")


def test_executing_release_of_the_own_lease_while_another_is_unresolved_is_in_doubt() -> None:
    assert outcome(asked(SILENT_TWO, "release", B, now=40, rules=WINDOWED)) == ("in_doubt", "done")


def test_executing_release_by_another_token_changes_nothing_for_the_lease() -> None:
    decision = asked(EXECUTING, "release", STRANGER, now=10)
    assert outcome(decision) == ("executing", "done")
    assert decision.life.latest == EXECUTING.latest
    assert outcome(asked(decision.life, "begin", STRANGER, now=11)) == ("executing", "lease_lost")


def test_a_release_that_overtakes_its_begin_keeps_the_begin_from_ever_getting_a_lease() -> None:
    released = asked(None, "release", A, now=1)
    assert outcome(released) == ("pending", "done")
    assert released.life.latest is None
    assert outcome(asked(released.life, "begin", A, now=2)) == ("pending", "lease_lost")
    assert outcome(asked(released.life, "begin", B, now=2)) == ("executing", "granted")


def test_pending_release_by_an_unknown_token_is_remembered() -> None:
    released = asked(PENDING, "release", STRANGER).life
    assert outcome(asked(released, "begin", STRANGER)) == ("pending", "lease_lost")
