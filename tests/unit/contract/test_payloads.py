"""What a payload names by its content, and where it is said wrong."""

import pytest

from twiceshy_contract.events import Delivery, Intent
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.payloads import Reference, may_name, references, references_of_event
from twiceshy_contract.refusals import JsonValue, Refusal, Step

A, B, C = (letter * 64 for letter in "abc")


def test_references_are_found_in_their_order_at_any_depth_and_own_names_are_none() -> None:
    value = {"m": {"$list": A}, "x": [{"y": {"$blob": B}}, 1, "$blob", None], "$$blob": C, "at": {"$dt": "2026"}}
    assert references(value) == [Reference(A, is_list=True), Reference(B, is_list=False)]
    assert references(({"$blob": C}, [{"$list": B}], {"$blob": A})) == [
        Reference(C, is_list=False),
        Reference(B, is_list=True),
        Reference(A, is_list=False),
    ]


@pytest.mark.parametrize("value", [None, 1, "$blob", [], {}, {"x": "$list"}])
def test_what_names_nothing_has_no_references(value: JsonValue) -> None:
    assert references(value) == []


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        ({"x": {"$blob": "no"}}, ("x", "$blob"), "this is not a digest: 64 lower-case hex digits"),
        ({"x": {"$blob": A + "\n"}}, ("x", "$blob"), "this is not a digest"),
        ([1, {"$list": 5}], (1, "$list"), "this is not a digest"),
        ({"x": {"$blob": A, "y": 1}}, ("x",), r"a \$blob has no other member beside it"),
        ({"x": [{"$list": A, "$blob": B}]}, ("x", 0), r"a \$list has no other member beside it"),
    ],
)
def test_a_reference_that_is_none_is_refused_with_its_place(
    value: JsonValue, place: tuple[Step, ...], reason: str
) -> None:
    with pytest.raises(Refusal, match=reason) as refused:
        references(value, "value")
    assert refused.value.steps == ("value", *place)


def test_an_event_names_what_its_arguments_its_value_and_its_error_name() -> None:
    intent = Intent(seq=1, at=0, kind="tool_call", name="look_up", digest=A, arguments={"x": {"$blob": B}})
    assert references_of_event(intent) == [Reference(B, is_list=False)]
    error = ErrorOutcome(type="ValueError", message="no", data={"args": {"$blob": C}})
    ended = Delivery(seq=2, at=0, intent=1, outcome="error", value={"$list": A}, error=error)
    assert references_of_event(ended) == [Reference(A, is_list=True), Reference(C, is_list=False)]
    assert references_of_event(Delivery(seq=2, at=0, intent=1, outcome="unknown")) == []


@pytest.mark.parametrize(
    ("text", "may"),
    [(b'{"$blob":"x"}', True), (b'{"$list":1}', True), (b'{"\\u0024blob":1}', True), (b'{"$$blob":1}', False)],
)
def test_a_text_without_a_mark_names_nothing(text: bytes, *, may: bool) -> None:
    assert may_name(text) is may
