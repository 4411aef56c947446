"""Tags of payloads: what no reader could read is refused with its place."""

import msgspec
import pytest

from guard.core.recording import written
from guard.core.tags import check_tags, has_tags
from twiceshy_contract.events import Delivery, Event, Intent
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.refusals import JsonValue, Refusal, Step

A = "a" * 64


def call(arguments: object) -> Intent:
    return Intent(seq=1, at=0, kind="tool_call", name="lookup", digest=A, arguments=arguments)


def result(value: object = msgspec.UNSET, data: object = None) -> Delivery:
    error = msgspec.UNSET if data is None else ErrorOutcome(type="ValueError", message="no", data=data)
    return Delivery(seq=2, at=0, intent=1, outcome="result", value=value, error=error)


GOOD: dict[str, JsonValue] = {
    "int": {"$int": "9007199254740993"},
    "dec": {"$dec": "1.50"},
    "dt": {"$dt": "2026-11-30T18:00:00+01:00"},
    "b64": {"$b64": "AA=="},
    "uuid": [{"$uuid": "0192f5b0-7c3a-7000-8000-000000000001"}],
    "blob": {"$blob": A},
    "list": {"$list": A},
    "opaque": {"$opaque": {"type": "Socket", "size": None, "sha256": None, "reason": "no"}},
    "own": {"$$int": "zz", "more": 1},
    "plain": [1, "$int", None, [2]],
}


def test_what_can_be_read_is_taken() -> None:
    events: list[Event] = [
        call(GOOD),
        call(msgspec.UNSET),
        result(GOOD, GOOD),
        result(GOOD),
        result(),
        call({}),
        call({"a": "b"}),
    ]
    check_tags([written(event) for event in events], {A: GOOD})


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        ({"$int": "zz"}, ("$int",), "a \\$int is decimal digits"),
        ({"x": [{"$dt": "x"}]}, ("x", 0, "$dt"), "not an ISO 8601 date-time"),
        ({"x": {"$foo": 1}}, ("x", "$foo"), "\\$foo is not a tag; write a key of your own as \\$\\$foo"),
        ({"x": {"a": 1, "$int": "1"}}, ("x", "$int"), "must be the only key"),
        ({"x": {"$uuid": 7}}, ("x", "$uuid"), "the tag \\$uuid holds a string"),
    ],
)
def test_a_tag_that_is_none_is_refused_wherever_it_stands(
    value: JsonValue, place: tuple[Step, ...], reason: str
) -> None:
    cases: list[tuple[Event, tuple[Step, ...]]] = [
        (call(value), ("arguments",)),
        (result(value), ("value",)),
        (result(1, value), ("error", "data")),
    ]
    for event, at in cases:
        with pytest.raises(Refusal, match=reason) as refused:
            check_tags([written(call({})), written(event)], {})
        assert refused.value.steps == ("events", 1, *at, *place)
    with pytest.raises(Refusal, match=reason) as refused:
        check_tags([], {A: [value]})
    assert refused.value.steps == ("blobs", A, 0, *place)


@pytest.mark.parametrize("arguments", [[1, 2], "x", None, 7])
def test_arguments_are_an_object(arguments: object) -> None:
    with pytest.raises(Refusal, match="arguments are an object") as refused:
        check_tags([written(call(arguments))], {})
    assert refused.value.steps == ("events", 0, "arguments")


def test_a_text_without_a_tag_is_not_looked_through() -> None:
    assert [has_tags(text) for text in (b'{"a":"$1"}', b'{"$int":"1"}', b'{"\\u0024int":"1"}', b"{}")] == [
        True, True, True, False,
    ]  # fmt: skip
