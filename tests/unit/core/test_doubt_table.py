"""The rows of an effect that is in doubt, as the design's table says them in a sentence."""

import pytest

from guard.core.effects import AttemptToken, Fence
from guard.core.lifecycle import decide
from guard.core.situation import Event, EventName
from tests.unit.core.lives import (
    DOUBTFUL_TWO,
    IN_DOUBT,
    SIDE_EFFECT,
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


@pytest.mark.parametrize("event", ["begin", "renew"])
def test_in_doubt_renew_by_the_latest_attempt_executes_again(event: EventName) -> None:
    decision = asked(IN_DOUBT, event, A, now=40)
    assert decision.life.state == "executing"
    assert decision.life.attempts[0].deadline == at(70)
    assert decision.life.fence == 1


def test_in_doubt_renew_by_an_earlier_attempt_is_lease_lost() -> None:
    assert outcome(asked(DOUBTFUL_TWO, "renew", A, now=70)) == ("in_doubt", "lease_lost")


@pytest.mark.parametrize("event", ["begin", "renew"])
def test_in_doubt_an_attempt_that_said_unknown_gets_no_lease_any_more(event: EventName) -> None:
    unsure = life("in_doubt", attempt(A, 1, 30, "unknown", 12))
    assert outcome(asked(unsure, event, A, now=13)) == ("in_doubt", "lease_lost")


@pytest.mark.parametrize("token", [A, B])
def test_in_doubt_success_by_any_attempt_succeeds(token: AttemptToken) -> None:
    assert outcome(asked(DOUBTFUL_TWO, "success", token, now=70)) == ("succeeded", "done")


def test_in_doubt_success_after_unknown_succeeds() -> None:
    unsure = life("in_doubt", attempt(A, 1, 30, "unknown", 12))
    decision = asked(unsure, "success", A, now=90)
    assert outcome(decision) == ("succeeded", "done")
    assert decision.life.attempts[0].report == "succeeded"


def test_in_doubt_applied_by_probe_or_operator_succeeds_at_once() -> None:
    decision = asked(DOUBTFUL_TWO, "found_applied", fence=2, now=60)
    assert outcome(decision) == ("succeeded", "done")
    assert all(a.settled for a in decision.life.attempts)


def test_in_doubt_not_applied_by_the_attempt_itself_is_pending() -> None:
    decision = asked(IN_DOUBT, "not_applied", A, now=31)
    assert outcome(decision) == ("pending", "done")
    assert (decision.life.epoch, decision.life.retry_at) == (1, at(31.5))


def test_in_doubt_rejected_by_the_attempt_itself_fails() -> None:
    assert outcome(asked(IN_DOUBT, "rejected", A, now=31)) == ("failed", "done")


@pytest.mark.parametrize("event", ["not_applied", "rejected"])
def test_in_doubt_one_attempts_word_settles_nothing_while_another_is_unresolved(event: EventName) -> None:
    decision = asked(DOUBTFUL_TWO, event, B, now=61)
    assert outcome(decision) == ("in_doubt", "done")
    assert outcome(asked(decision.life, event, B, now=62)) == ("in_doubt", "repeated")


def test_in_doubt_unknown_is_kept_and_stays_in_doubt() -> None:
    decision = asked(IN_DOUBT, "unknown", A, now=35)
    assert outcome(decision) == ("in_doubt", "done")
    assert outcome(asked(decision.life, "unknown", A, now=36)) == ("in_doubt", "repeated")


def test_in_doubt_not_applied_by_an_operator_is_believed_ten_seconds_after_the_deadline() -> None:
    assert outcome(asked(IN_DOUBT, "found_not_applied", fence=1, now=39.9)) == ("in_doubt", "unsettled")
    decision = asked(IN_DOUBT, "found_not_applied", fence=1, now=40)
    assert outcome(decision) == ("pending", "done")
    assert (decision.life.tries, decision.life.epoch, decision.life.retry_at) == (0, 1, None)
    assert decision.life.attempts == (attempt(A, 1, 30, settled=True),)


def test_in_doubt_not_applied_by_an_operator_is_believed_ten_seconds_after_the_report() -> None:
    unsure = life("in_doubt", attempt(A, 1, 30, "unknown", 12))
    assert outcome(asked(unsure, "found_not_applied", fence=1, now=21.9)) == ("in_doubt", "unsettled")
    assert outcome(asked(unsure, "found_not_applied", fence=1, now=22)) == ("pending", "done")


def test_in_doubt_settles_by_the_last_of_all_unresolved_attempts() -> None:
    assert outcome(asked(DOUBTFUL_TWO, "found_not_applied", fence=2, now=69.9)) == ("in_doubt", "unsettled")
    assert outcome(asked(DOUBTFUL_TWO, "found_not_applied", fence=2, now=70)) == ("pending", "done")


@pytest.mark.parametrize("event", ["found_applied", "found_not_applied", "closed"])
def test_in_doubt_an_operator_who_looked_at_another_fence_must_look_again(event: EventName) -> None:
    assert outcome(asked(DOUBTFUL_TWO, event, fence=1, now=90)) == ("in_doubt", "changed_since")


def test_in_doubt_closed_by_an_operator_is_out_of_the_queue_and_still_heals() -> None:
    closed = asked(IN_DOUBT, "closed", fence=1, now=40)
    assert outcome(closed) == ("in_doubt", "done")
    assert closed.life.closed
    healed = asked(closed.life, "success", A, now=400)
    assert outcome(healed) == ("succeeded", "done")
    assert not healed.life.closed


def test_in_doubt_begin_of_a_provider_idempotent_tool_runs_again_under_the_same_downstream_key() -> None:
    decision = asked(IN_DOUBT, "begin", B, now=60, rules=WINDOWED)
    assert outcome(decision) == ("executing", "granted")
    assert (decision.life.fence, decision.life.epoch, decision.life.epoch_since) == (2, 0, at(0))


def test_in_doubt_begin_stays_in_doubt_once_lease_and_settle_time_do_not_fit_into_the_window() -> None:
    assert outcome(asked(IN_DOUBT, "begin", B, now=60.1, rules=WINDOWED)) == ("in_doubt", "in_doubt")


def test_in_doubt_begin_stays_in_doubt_when_attempts_are_exhausted() -> None:
    tired = life("in_doubt", attempt(A, 5, 30), tries=5)
    assert outcome(asked(tired, "begin", B, now=40, rules=WINDOWED)) == ("in_doubt", "in_doubt")


def test_in_doubt_release_of_the_own_lease_is_pending() -> None:
    decision = asked(IN_DOUBT, "release", A, now=35)
    assert outcome(decision) == ("pending", "done")
    assert decision.life.tries == 0


def test_in_doubt_release_settles_nothing_while_another_is_unresolved() -> None:
    assert outcome(asked(DOUBTFUL_TWO, "release", B, now=65)) == ("in_doubt", "done")
    assert outcome(asked(DOUBTFUL_TWO, "release", STRANGER, now=65)) == ("in_doubt", "done")


def test_in_doubt_word_from_outside_counts_from_when_the_effect_was_read_before_the_provider_was_asked() -> None:
    early = Event(name="found_not_applied", fence=Fence(1), asked_at=at(39.9))
    assert outcome(decide(IN_DOUBT, early, SIDE_EFFECT, at(500))) == ("in_doubt", "unsettled")
    late = Event(name="found_not_applied", fence=Fence(1), asked_at=at(40))
    assert outcome(decide(IN_DOUBT, late, SIDE_EFFECT, at(500))) == ("pending", "done")


def test_in_doubt_word_that_was_asked_before_the_lease_was_revived_is_not_believed() -> None:
    revived = asked(IN_DOUBT, "renew", A, now=45).life
    word = Event(name="found_not_applied", fence=Fence(1), asked_at=at(44))
    assert outcome(decide(revived, word, SIDE_EFFECT, at(500))) == ("in_doubt", "unsettled")
