"""May this call begin? What must agree between a call and the effect that its key names."""

import msgspec

from guard.core.admission import Admission, Call, NextGeneration, OtherArguments, OtherTool, admit, has_drifted
from guard.core.effects import Effect, Intent, Key, Life, TenantId
from guard.core.lifecycle import Decision
from guard.core.situation import Event
from tests.unit.core.lives import EXECUTING, FAILED, IN_DOUBT, SIDE_EFFECT, SUCCEEDED, B, at

SAME = Call(tool="book", identity_digest=b"i", arguments_digest=b"a")
REPHRASED = Call(tool="book", identity_digest=b"i", arguments_digest=b"b")
OTHER = Call(tool="book", identity_digest=b"j", arguments_digest=b"b")
OTHERS_TOOL = Call(tool="cancel", identity_digest=b"i", arguments_digest=b"a")


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


def admitted(life: Life, call: Call) -> Admission:
    return admit(effect(life), call, Event(name="begin", token=B), SIDE_EFFECT, at(10))


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


def test_other_content_is_answered_from_the_record_and_has_drifted() -> None:
    assert verdict(SUCCEEDED, REPHRASED) == "replay"
    assert has_drifted(effect(SUCCEEDED), REPHRASED)
    assert not has_drifted(effect(SUCCEEDED), SAME)


def test_values_of_the_core_are_frozen() -> None:
    for struct in (Effect, Intent, Life, Call, Event, Decision):
        assert issubclass(struct, msgspec.Struct)
        assert struct.__struct_config__.frozen
