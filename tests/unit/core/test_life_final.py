"""What is final stays, what is not in the table is not possible, and the deadline is judged at every touch."""

from collections.abc import Mapping
from typing import get_args

import pytest
from msgspec.structs import replace

from guard.core.effects import AttemptToken, Life
from guard.core.lease import Rules
from guard.core.lifecycle import TABLE, Source, may_be_second, touch
from guard.core.situation import CONDITIONS, EventName
from tests.unit.core.lives import (
    EXECUTING,
    FAILED,
    IDEMPOTENT,
    IN_DOUBT,
    PENDING,
    SIDE_EFFECT,
    STRANGER,
    SUCCEEDED,
    WINDOWED,
    A,
    B,
    asked,
    at,
    attempt,
    life,
    outcome,
)

STATES: Mapping[Source, Life | None] = {
    "absent": None,
    "pending": PENDING,
    "executing": EXECUTING,
    "in_doubt": IN_DOUBT,
    "succeeded": SUCCEEDED,
    "failed": FAILED,
}
NO_ROW: Mapping[Source, tuple[EventName, ...]] = {
    "absent": (
        "success", "not_applied", "rejected", "unknown", "renew", "deadline",
        "found_applied", "found_not_applied", "closed", "denied", "cancelled", "reopened",
    ),
    "pending": ("deadline", "closed"),
    "executing": ("found_applied", "found_not_applied", "closed", "denied", "cancelled", "reopened"),
    "in_doubt": ("deadline", "denied", "cancelled", "reopened"),
    "succeeded": ("deadline", "found_applied", "closed", "denied", "cancelled", "reopened"),
    "failed": ("deadline", "found_not_applied", "closed", "denied", "cancelled", "reopened"),
}  # fmt: skip
PAIRS = [(source, event) for source, events in NO_ROW.items() for event in events]


@pytest.mark.parametrize(("source", "event"), PAIRS)
def test_a_pair_of_state_and_event_that_has_no_row_is_not_possible_and_touches_nothing(
    source: Source, event: EventName
) -> None:
    before = STATES[source]
    for token in (A, None) if before else (None,):
        decision = asked(before, event, token, fence=1, now=10)
        assert decision.verdict == "not_possible"
        assert decision.row is None
        assert decision.life == (before or Life(state="pending"))
        assert not decision.alert


def test_every_pair_either_has_a_row_or_is_listed_here_as_not_possible() -> None:
    with_row = {(row.source, row.event) for row in TABLE}
    assert with_row & set(PAIRS) == set()
    assert with_row | set(PAIRS) == {(source, event) for source in STATES for event in get_args(EventName)}


def test_every_row_can_be_reached_past_the_rows_before_it() -> None:
    for number, row in enumerate(TABLE):
        earlier = [r for r in TABLE[:number] if (r.source, r.event) == (row.source, row.event)]
        assert not any(set(r.when) <= set(row.when) for r in earlier), row


def test_every_condition_is_used_and_known() -> None:
    assert {condition for row in TABLE for condition in row.when} == set(CONDITIONS)


def test_a_token_that_the_effect_does_not_know_has_lost_the_lease() -> None:
    for event in ("success", "not_applied", "rejected", "unknown", "renew"):
        decision = asked(EXECUTING, event, STRANGER)
        assert (decision.life, decision.verdict) == (EXECUTING, "lease_lost")


def test_a_stale_fence_is_refused_and_touches_nothing() -> None:
    for event in ("success", "not_applied", "rejected", "unknown", "renew"):
        decision = asked(EXECUTING, event, A, fence=2)
        assert (decision.life, decision.verdict) == (EXECUTING, "lease_lost")


@pytest.mark.parametrize(("final", "event"), [(SUCCEEDED, "success"), (FAILED, "rejected")])
def test_a_report_repeated_by_the_attempt_that_made_it_is_answered_again(final: Life, event: EventName) -> None:
    decision = asked(final, event, A, now=50)
    assert (decision.life, decision.verdict, decision.alert) == (final, "repeated", False)


@pytest.mark.parametrize("final", [SUCCEEDED, FAILED])
def test_begin_of_a_final_effect_is_answered_from_the_record(final: Life) -> None:
    for token in (A, B):
        decision = asked(final, "begin", token, now=5000)
        assert (decision.life, decision.verdict) == (final, "replay")


@pytest.mark.parametrize("event", ["not_applied", "rejected", "unknown", "renew"])
@pytest.mark.parametrize("final", [SUCCEEDED, FAILED])
def test_another_attempt_of_a_final_effect_is_superseded(final: Life, event: EventName) -> None:
    two = life(final.state, attempt(B, 1, 20), attempt(A, 2, 60, final.attempts[0].report, 40))
    decision = asked(two, event, B, now=50)
    assert (decision.life, decision.verdict, decision.alert) == (two, "superseded", False)


@pytest.mark.parametrize("final", [SUCCEEDED, FAILED])
def test_success_by_another_attempt_of_a_final_effect_contradicts_the_record_and_alerts(final: Life) -> None:
    two = life(final.state, attempt(B, 1, 20), attempt(A, 2, 60, final.attempts[0].report, 40))
    decision = asked(two, "success", B, now=50)
    assert (decision.life, decision.verdict, decision.alert) == (two, "contradicted", True)


def test_word_that_a_failed_effect_was_applied_contradicts_the_record_and_alerts() -> None:
    decision = asked(FAILED, "found_applied", fence=1)
    assert (decision.life, decision.verdict, decision.alert) == (FAILED, "contradicted", True)


@pytest.mark.parametrize("final", [SUCCEEDED, FAILED])
def test_a_release_of_a_final_effect_is_remembered_and_changes_nothing_else(final: Life) -> None:
    released = asked(final, "release", B)
    ended = replace(attempt(B, 0, 10, "released", 10), granted_at=at(10))
    assert (released.verdict, released.life) == ("done", replace(final, attempts=(ended, *final.attempts)))
    again = asked(released.life, "release", B)
    assert (again.verdict, again.life) == ("repeated", released.life)
    assert asked(final, "release", A).life == final
    assert outcome(asked(released.life, "begin", B)) == (final.state, "replay")


def test_the_deadline_is_judged_at_the_touch_and_not_before() -> None:
    assert touch(EXECUTING, SIDE_EFFECT, at(29.999999)) == EXECUTING
    assert touch(EXECUTING, SIDE_EFFECT, at(30)).state == "in_doubt"
    assert touch(EXECUTING, IDEMPOTENT, at(30)).state == "pending"
    assert touch(IN_DOUBT, SIDE_EFFECT, at(500)) == IN_DOUBT


def test_a_touch_without_a_row_for_the_deadline_changes_nothing() -> None:
    table = tuple(row for row in TABLE if row.event != "deadline")
    assert touch(EXECUTING, SIDE_EFFECT, at(500), table) == EXECUTING


def test_an_executing_effect_without_a_lease_has_no_deadline() -> None:
    empty = Life(state="executing")
    assert touch(empty, SIDE_EFFECT, at(500)) == empty


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
def test_a_retry_time_that_the_caller_gives_wins_over_the_backoff(jitter: float) -> None:
    said = asked(EXECUTING, "not_applied", A, now=10, retry_after=7, jitter=jitter)
    assert said.life.retry_at == at(17)
    assert outcome(said) == ("pending", "done")


def test_a_lease_that_the_caller_asks_for_wins_over_the_tools() -> None:
    assert asked(None, "begin", A, now=10, lease=5).life.attempts[0].deadline == at(15)
    assert asked(None, "begin", A, now=10, rules=Rules()).life.attempts[0].deadline == at(40)


@pytest.mark.parametrize("event", ["success", "not_applied", "rejected", "unknown", "renew"])
def test_a_report_that_names_no_attempt_is_not_possible_and_touches_nothing(event: EventName) -> None:
    decision = asked(EXECUTING, event)
    assert (decision.life, decision.verdict) == (EXECUTING, "not_possible")


def test_a_release_that_names_no_attempt_changes_nothing() -> None:
    assert asked(EXECUTING, "release").life == EXECUTING


BOTH = life("succeeded", attempt(A, 1, 30, "succeeded", 50), attempt(B, 2, 70))
SETTLED_BEFORE = replace(BOTH, epoch=1, epoch_since=at(40))
"""B was granted at 40, under the downstream key that came after A's."""


@pytest.mark.parametrize(
    ("final", "rules", "token", "meaning"),
    [
        (BOTH, SIDE_EFFECT, B, "perhaps twice"),
        (BOTH, IDEMPOTENT, B, "once"),
        (BOTH, WINDOWED, B, "once"),
        (SETTLED_BEFORE, SIDE_EFFECT, B, "perhaps twice"),
        (SETTLED_BEFORE, IDEMPOTENT, B, "once"),
        (SETTLED_BEFORE, WINDOWED, B, "perhaps twice"),
        (life("succeeded", attempt(A, 1, 30, "unknown", 20)), SIDE_EFFECT, A, "once"),
        (life("succeeded", attempt(A, 1, 30, "succeeded", 20)), SIDE_EFFECT, A, "perhaps twice"),
        (replace(BOTH, epoch_since=None), WINDOWED, B, "perhaps twice"),
    ],
)
def test_a_success_beside_the_record_may_be_a_second_one_unless_running_twice_is_harmless_or_it_ran_alone(
    final: Life, rules: Rules, token: AttemptToken, meaning: str
) -> None:
    assert ("perhaps twice" if may_be_second(final, rules, token) else "once") == meaning


def test_a_late_success_under_an_older_downstream_key_alerts_although_the_provider_takes_one() -> None:
    newer = replace(life("executing", attempt(A, 1, 30, settled=True), attempt(B, 2, 70)), epoch=1, epoch_since=at(40))
    assert asked(newer, "success", A, now=50, rules=WINDOWED).alert
    assert not asked(newer, "success", B, now=50, rules=WINDOWED).alert
    assert not asked(newer, "success", A, now=50, rules=IDEMPOTENT).alert
