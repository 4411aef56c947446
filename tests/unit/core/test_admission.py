"""May this call begin? What must agree between a call and the effect that its key names."""

import msgspec
import pytest
from msgspec.structs import replace

from guard.core.admission import (
    Admission,
    Call,
    Expired,
    NextGeneration,
    OtherArguments,
    OtherTool,
    admit,
    has_drifted,
    is_over,
    is_repeat,
    makes_room,
)
from guard.core.effects import SECOND, AttemptToken, Duration, Effect, Intent, Key, Life, TenantId
from guard.core.lease import Rules
from guard.core.lifecycle import Decision
from guard.core.situation import Event
from tests.unit.core.lives import (
    EXECUTING,
    FAILED,
    IDEMPOTENT,
    IN_DOUBT,
    PENDING,
    SIDE_EFFECT,
    STRANGER,
    SUCCEEDED,
    A,
    B,
    at,
    attempt,
)
from twiceshy_contract.names import KeyRule

SAME = Call(tool="book", identity_digest=b"i", arguments_digest=b"a")
REPHRASED = Call(tool="book", identity_digest=b"i", arguments_digest=b"b")
OTHER = Call(tool="book", identity_digest=b"j", arguments_digest=b"b")
OTHERS_TOOL = Call(tool="cancel", identity_digest=b"i", arguments_digest=b"a")
DONE = replace(SUCCEEDED, ended_at=at(5))
REJECTED = replace(FAILED, ended_at=at(5))
DENIED = replace(PENDING, state="failed", ended_at=at(5))
NEVER_BEGUN = Life(state="failed", ended_at=at(5))
ALLOWED, ASKED = Rules(repeat="allow"), Rules(repeat="ask")
WINDOW = Rules(window=Duration(60 * SECOND))


def effect(life: Life) -> Effect:
    intent = Intent(
        key=Key(bytes(32)),
        tenant=TenantId(1),
        run_id=None,
        run=None,
        step=None,
        tool="book",
        tool_version=0,
        rule="business_key",
        caller_step=None,
        business_key="order-1",
        occurrence=1,
        generation=0,
        identity_digest=b"i",
        arguments_digest=b"a",
        arguments=b"{}",
        worker=None,
        began_at=at(0),
    )
    return Effect(version=1, intent=intent, life=life)


def admitted(life: Life, call: Call, token: AttemptToken = B) -> Admission:
    return admit(effect(life), call, Event(name="begin", token=token), SIDE_EFFECT, at(10))


def over(
    life: Life,
    rules: Rules,
    *,
    now: float = 10,
    delivered: bool = False,
    token: AttemptToken | None = B,
    rule: KeyRule = "once",
) -> bool:
    made = effect(life)
    known = replace(made, delivered=delivered, intent=replace(made.intent, rule=rule))
    return is_over(known, Event(name="begin", token=token), rules, at(now))


def verdict(life: Life, call: Call) -> str:
    admission = admitted(life, call)
    assert isinstance(admission, Decision)
    return admission.verdict


def test_the_same_call_is_decided_by_the_effects_life() -> None:
    assert verdict(SUCCEEDED, SAME) == "replay"
    assert verdict(FAILED, SAME) == "replay"
    assert verdict(EXECUTING, SAME) == "in_progress"
    assert verdict(IN_DOUBT, SAME) == "in_doubt"


def test_a_key_of_another_tool_is_refused_whatever_the_state() -> None:
    for life in (SUCCEEDED, FAILED, EXECUTING, IN_DOUBT):
        assert isinstance(admitted(life, OTHERS_TOOL), OtherTool)


def test_another_identity_is_refused_unless_the_effect_was_rejected() -> None:
    for life in (SUCCEEDED, EXECUTING, IN_DOUBT):
        assert isinstance(admitted(life, OTHER), OtherArguments)


def test_a_rejected_call_with_other_arguments_is_the_next_generation() -> None:
    assert isinstance(admitted(FAILED, OTHER), NextGeneration)
    assert isinstance(admitted(FAILED, REPHRASED), NextGeneration)


def test_the_attempt_that_was_rejected_hears_so_whatever_arguments_it_brings_now() -> None:
    assert isinstance(admitted(FAILED, OTHER, A), OtherArguments)
    own = admitted(FAILED, REPHRASED, A)
    assert isinstance(own, Decision)
    assert own.verdict == "replay"


def test_other_content_is_answered_from_the_record_and_has_drifted() -> None:
    assert verdict(SUCCEEDED, REPHRASED) == "replay"
    assert has_drifted(effect(SUCCEEDED), REPHRASED)
    assert not has_drifted(effect(SUCCEEDED), SAME)


@pytest.mark.parametrize("rules", [SIDE_EFFECT, IDEMPOTENT, ALLOWED, ASKED, WINDOW])
@pytest.mark.parametrize("life", [EXECUTING, IN_DOUBT, PENDING, SUCCEEDED])
def test_what_has_not_ended_is_never_over(life: Life, rules: Rules) -> None:
    assert not over(replace(life, ended_at=None), rules, now=1000, delivered=True)


def test_what_is_open_again_is_not_over_by_its_earlier_end() -> None:
    assert not over(replace(PENDING, ended_at=at(5)), WINDOW, now=1000)


def test_a_success_is_over_where_its_tool_may_repeat_or_asks() -> None:
    assert not over(DONE, SIDE_EFFECT)
    assert over(DONE, ALLOWED)
    assert over(DONE, ASKED)


def test_nothing_is_over_for_a_call_that_says_which_of_its_like_it_is() -> None:
    for rules in (ALLOWED, WINDOW, IDEMPOTENT):
        assert over(DONE, rules, now=1000, delivered=True)
        assert not over(DONE, replace(rules, is_counted=True), now=1000, delivered=True)


def test_a_failure_is_not_over_because_successes_may_be_repeated() -> None:
    for life in (REJECTED, DENIED):
        assert not over(life, ALLOWED)
        assert not over(life, ASKED)


def test_an_idempotent_effect_is_over_once_its_outcome_is_known() -> None:
    for life in (DONE, REJECTED):
        assert over(life, IDEMPOTENT, delivered=True)
        assert not over(life, IDEMPOTENT, delivered=False)
        assert not over(life, SIDE_EFFECT, delivered=True)


def test_an_intent_with_a_name_of_its_own_is_not_over_because_its_outcome_is_known() -> None:
    names: tuple[KeyRule, ...] = ("step", "business_key")
    for rule in names:
        assert not over(DONE, IDEMPOTENT, delivered=True, rule=rule)
        assert over(DONE, replace(IDEMPOTENT, repeat="allow"), rule=rule)


def test_what_a_person_refused_is_not_over_because_it_is_known() -> None:
    assert not over(DENIED, IDEMPOTENT, delivered=True)
    assert not over(NEVER_BEGUN, IDEMPOTENT, delivered=True)


def test_a_persons_word_counts_as_a_persons_though_an_attempt_was_refused_before_it() -> None:
    ended_by_a_person = replace(REJECTED, ended_at=at(7))
    assert not over(ended_by_a_person, IDEMPOTENT, delivered=True)


def test_what_an_earlier_attempt_heard_last_is_the_tools_refusal() -> None:
    late = (attempt(A, 1, 30, "rejected", 5), attempt(STRANGER, 2, 30, "not_applied", 4))
    assert over(replace(REJECTED, attempts=late), IDEMPOTENT, delivered=True)


def test_a_window_slides_from_the_end_and_is_over_to_the_microsecond() -> None:
    for life in (DONE, REJECTED, DENIED):
        assert not over(life, WINDOW, now=64.999999)
        assert over(life, WINDOW, now=65)
        assert over(life, WINDOW, now=1000)


def test_an_effect_is_never_over_for_an_attempt_of_its_own() -> None:
    for rules in (ALLOWED, ASKED, WINDOW):
        assert not over(DONE, rules, now=1000, token=A)
    assert not over(DONE, IDEMPOTENT, delivered=True, token=A)
    assert over(DONE, ALLOWED, token=None)


def test_an_expired_record_is_said_to_be_expired_unless_its_window_has_passed() -> None:
    gone = replace(effect(DONE), expired_at=at(50))
    begin = Event(name="begin", token=B)
    assert isinstance(admit(gone, SAME, begin, SIDE_EFFECT, at(60)), Expired)
    assert isinstance(admit(gone, SAME, begin, WINDOW, at(60)), Expired)
    assert isinstance(admit(gone, SAME, begin, WINDOW, at(65)), NextGeneration)
    assert isinstance(admit(gone, OTHER, begin, SIDE_EFFECT, at(60)), OtherArguments)
    assert isinstance(admit(gone, SAME, Event(name="begin", token=A), WINDOW, at(65)), Expired)


def test_a_call_repeats_a_success_until_its_window_has_passed() -> None:
    assert not is_repeat(None, ASKED, at(10))
    assert is_repeat(at(5), ASKED, at(10))
    assert is_repeat(at(5), WINDOW, at(64))
    assert not is_repeat(at(5), WINDOW, at(65))


def test_values_of_the_core_are_frozen() -> None:
    for struct in (Effect, Intent, Life, Call, Event, Decision):
        assert issubclass(struct, msgspec.Struct)
        assert struct.__struct_config__.frozen


def test_a_final_effect_makes_room_for_a_token_that_never_held_its_lease() -> None:
    release = Event(name="release", token=B)
    noted = replace(DONE, attempts=(attempt(B, 0, 0, "released", 0), *DONE.attempts))
    for life, token, rules, wanted in (
        (DONE, B, ALLOWED, True),
        (noted, B, ALLOWED, True),
        (DONE, A, ALLOWED, False),
        (DONE, None, ALLOWED, True),
        (DONE, B, SIDE_EFFECT, False),
        (EXECUTING, B, ALLOWED, False),
    ):
        said = replace(release, token=token)
        assert makes_room(effect(life), SAME, said, rules, at(10)) is wanted, (life.state, token)
