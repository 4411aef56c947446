"""Rows for tools whose repetition is harmless, and for words that come late."""

from uuid import UUID

from guard.core.effects import AttemptToken, Fence
from guard.core.lifecycle import decide
from guard.core.situation import Event
from tests.unit.core.lives import (
    IDEMPOTENT,
    PENDING,
    SIDE_EFFECT,
    STRANGER,
    SUCCEEDED,
    A,
    B,
    asked,
    at,
    attempt,
    life,
    outcome,
)

SILENT = attempt(A, 1, 30)
TAKEN_OVER = life("executing", SILENT, attempt(B, 2, 70))


def test_a_late_heartbeat_of_a_lapsed_lease_gets_it_back_while_nobody_took_over() -> None:
    decision = asked(life("pending", SILENT), "renew", A, fence=1, now=40, rules=IDEMPOTENT)
    assert outcome(decision) == ("executing", "done")
    assert decision.life.attempts[0].deadline == at(70)


def test_a_late_heartbeat_of_an_attempt_that_ended_is_refused() -> None:
    ended = life("pending", attempt(A, 1, 30, "not_applied", 10))
    assert outcome(asked(ended, "renew", A, fence=1, now=40)) == ("pending", "lease_lost")
    assert outcome(asked(PENDING, "renew", STRANGER, fence=1, now=40)) == ("pending", "lease_lost")


def test_not_applied_beside_a_silent_attempt_of_an_idempotent_tool_waits_under_the_same_downstream_key() -> None:
    decision = asked(TAKEN_OVER, "not_applied", B, fence=2, now=40, rules=IDEMPOTENT, retry_after=7)
    assert outcome(decision) == ("pending", "done")
    assert (decision.life.retry_at, decision.life.epoch) == (at(47), 0)


def test_not_applied_after_the_lease_ran_out_changes_the_downstream_key_and_is_waited_for() -> None:
    decision = asked(life("pending", SILENT), "not_applied", A, fence=1, now=40, rules=IDEMPOTENT, retry_after=7)
    assert outcome(decision) == ("pending", "done")
    assert (decision.life.retry_at, decision.life.epoch, decision.life.epoch_since) == (at(47), 1, None)


def test_the_last_silent_attempt_s_word_changes_the_downstream_key_and_shortens_no_wait() -> None:
    refused = asked(TAKEN_OVER, "not_applied", B, fence=2, now=40, rules=IDEMPOTENT, retry_after=60)
    decision = asked(refused.life, "not_applied", A, fence=1, now=41, rules=IDEMPOTENT, retry_after=7)
    assert outcome(decision) == ("pending", "done")
    assert (decision.life.retry_at, decision.life.epoch) == (at(100), 1)


def test_not_applied_beside_a_silent_attempt_that_nobody_took_over_from_keeps_the_downstream_key() -> None:
    lapsed = life("pending", SILENT, attempt(B, 2, 70))
    decision = asked(lapsed, "not_applied", B, fence=2, now=80, rules=IDEMPOTENT)
    assert outcome(decision) == ("pending", "done")
    assert decision.life.epoch == 0


def test_rejected_after_the_lease_ran_out_is_final_unless_another_attempt_is_silent() -> None:
    decision = asked(life("pending", SILENT), "rejected", A, fence=1, now=40, rules=IDEMPOTENT)
    assert outcome(decision) == ("failed", "done")
    beside = asked(life("pending", SILENT, attempt(B, 2, 70)), "rejected", B, fence=2, now=80, rules=IDEMPOTENT)
    assert outcome(beside) == ("pending", "done")


def test_a_release_beside_a_silent_attempt_of_an_idempotent_tool_needs_nobody() -> None:
    decision = asked(TAKEN_OVER, "release", B, now=40, rules=IDEMPOTENT)
    assert outcome(decision) == ("pending", "done")
    assert (decision.life.tries, decision.life.epoch) == (1, 0)


def test_rejected_beside_a_silent_attempt_of_an_idempotent_tool_is_final() -> None:
    decision = asked(TAKEN_OVER, "rejected", B, fence=2, now=40, rules=IDEMPOTENT)
    assert outcome(decision) == ("failed", "done")


def test_a_release_of_the_last_silent_attempt_settles_doubt() -> None:
    doubtful = life("in_doubt", SILENT, attempt(B, 2, 70, "not_applied", 50))
    assert outcome(asked(doubtful, "release", A, now=80)) == ("pending", "done")


def test_a_release_beside_another_silent_attempt_leaves_doubt() -> None:
    doubtful = life("in_doubt", SILENT, attempt(B, 2, 70))
    assert outcome(asked(doubtful, "release", A, now=80)) == ("in_doubt", "done")


def test_word_that_a_success_was_not_applied_contradicts_and_alerts() -> None:
    decision = asked(SUCCEEDED, "found_not_applied", fence=1, now=100)
    assert outcome(decision) == ("succeeded", "contradicted")
    assert decision.alert
    assert decision.life == SUCCEEDED


def test_a_lapsed_attempt_is_doubt_once_the_class_was_raised() -> None:
    lapsed = life("pending", SILENT)
    assert outcome(asked(lapsed, "begin", B, now=40, rules=IDEMPOTENT)) == ("executing", "granted")
    assert outcome(asked(lapsed, "begin", B, now=40)) == ("in_doubt", "in_doubt")


def test_a_moment_in_the_future_counts_as_now() -> None:
    doubtful = life("in_doubt", attempt(A, 1, 30, "unknown", 20))
    future = Event(name="found_not_applied", fence=Fence(1), asked_at=at(10_000))
    assert decide(doubtful, future, SIDE_EFFECT, at(29)).verdict == "unsettled"
    assert decide(doubtful, future, SIDE_EFFECT, at(30)).verdict == "done"


def test_of_tokens_that_never_held_a_lease_the_last_64_are_remembered() -> None:
    remembered = life("executing", attempt(A, 1, 30))
    for number in range(100, 170):
        remembered = asked(remembered, "release", AttemptToken(UUID(int=number)), now=10).life
    assert [a.token.int for a in remembered.attempts] == [*range(169, 105, -1), 0xA]
    assert remembered.latest == attempt(A, 1, 30)


def test_a_lapsed_attempt_is_believed_to_have_applied_nothing_only_after_the_settle_time() -> None:
    lapsed = life("pending", SILENT)
    assert outcome(asked(lapsed, "found_not_applied", fence=1, now=39)) == ("pending", "unsettled")
    assert outcome(asked(lapsed, "found_not_applied", fence=1, now=40)) == ("pending", "done")


def test_a_lapsed_attempt_may_be_found_to_have_applied() -> None:
    lapsed = life("pending", SILENT)
    assert outcome(asked(lapsed, "found_applied", fence=2, now=40)) == ("pending", "changed_since")
    assert outcome(asked(lapsed, "found_applied", fence=1, now=40)) == ("succeeded", "done")
    assert asked(PENDING, "found_applied", fence=PENDING.fence, now=40).verdict == "not_possible"
