"""What payloads keep by content, and what of a call a search finds it by."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from guard.core.payloads import Blob, indexed, needed, read_blobs
from guard.core.recording import written
from twiceshy_contract.events import MAX_REFERENCES, Delivery, Event, Intent
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.refusals import JsonValue, Refusal, Step

A, B, C, D = (letter * 64 for letter in "abcd")


def call(arguments: object) -> Intent:
    return Intent(seq=1, at=0, kind="tool_call", name="lookup", digest=A, arguments=arguments)


def result(value: object = msgspec.UNSET, data: object = None) -> Delivery:
    error = msgspec.UNSET if data is None else ErrorOutcome(type="ValueError", message="no", data=data)
    return Delivery(seq=2, at=0, intent=1, outcome="result", value=value, error=error)


def test_texts_are_read_that_are_what_their_digest_says() -> None:
    text = '{"role":"user","content":"Grüezi"}'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert read_blobs({digest: text}) == {digest: Blob({"role": "user", "content": "Grüezi"}, may_name=False)}


def test_a_text_that_may_name_others_is_marked() -> None:
    text = '[{"$blob":"x"}]'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert read_blobs({digest: text}) == {digest: Blob([{"$blob": "x"}], may_name=True)}


@pytest.mark.parametrize(
    ("text", "reason", "inner"),
    [
        ("[1,2", "expected ',' or the end of the array, found the end of the text", (1,)),
        ('{"a":1,"a":2}', "the key stands twice in one object", ("a",)),
    ],
)
def test_a_text_that_is_no_json_is_refused(text: str, reason: str, inner: tuple[Step, ...]) -> None:
    digest = hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(Refusal, match=reason) as refused:
        read_blobs({digest: text})
    assert refused.value.steps[:2] == ("blobs", digest)


def test_a_text_of_another_digest_is_refused() -> None:
    with pytest.raises(Refusal, match="the SHA-256 of this text is another") as refused:
        read_blobs({A: "1"})
    assert refused.value.steps == ("blobs", A)


def needs(events: Sequence[Event], values: Mapping[str, JsonValue]) -> frozenset[str]:
    return needed([written(event) for event in events], {digest: Blob(value) for digest, value in values.items()})


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        ({"x": {"$blob": "no"}}, ("x", "$blob"), "this is not a digest"),
        ({"x": {"$blob": A, "y": 1}}, ("x",), "a \\$blob has no other member beside it"),
    ],
)
def test_a_reference_that_is_none_is_refused(value: JsonValue, place: tuple[Step, ...], reason: str) -> None:
    for event, at in (
        (call(value), ("arguments",)),
        (result(value), ("value",)),
        (result(1, value), ("error", "data")),
    ):
        with pytest.raises(Refusal, match=reason) as refused:
            needs([call(None), event], {})
        assert refused.value.steps == ("events", 1, *at, *place)
    with pytest.raises(Refusal, match=reason) as refused:
        needs([], {D: {"items": [value]}})
    assert refused.value.steps == ("blobs", D, "items", 0, *place)


def test_needed_is_what_is_named_and_not_brought() -> None:
    events: list[Event] = [call({"m": {"$blob": A}, "n": {"$list": B}}), result({"$blob": C}, {"$blob": D})]
    assert needs(events, {}) == {A, B, C, D}
    assert needs(events, {A: 1, C: [{"$blob": B}]}) == {B, D}
    assert needs([call(msgspec.UNSET), result()], {A: 1}) == set()


def test_what_is_not_marked_as_naming_others_is_not_looked_at() -> None:
    assert needed([], {A: Blob([{"$blob": B}], may_name=False)}) == set()


def test_so_many_values_are_named_by_one_append_and_no_more() -> None:
    most: JsonValue = [{"$blob": A}] * MAX_REFERENCES
    assert needs([], {B: most}) == {A}
    with pytest.raises(Refusal, match="these events and blobs name 65537 values, and 65536 are the most") as refused:
        needs([call({"$blob": C})], {B: most})
    assert refused.value.steps == ("events",)


def test_a_list_needs_what_it_goes_on_from() -> None:
    events = [call({"messages": {"$list": A}})]
    assert needs(events, {A: {"items": [1], "after": B}, B: {"items": [{"$blob": C}], "after": D}}) == {C, D}
    assert needs(events, {A: {"items": []}}) == set()
    assert needs(events, {A: {"items": [], "after": A}}) == set()


def test_a_value_that_only_looks_like_a_list_needs_nothing() -> None:
    assert needs([call({"page": {"$blob": A}})], {A: {"items": [1], "after": B}}) == set()


@pytest.mark.parametrize("node", [[1], {"after": B}, {"items": 5}, {"items": [], "more": 1}, 7])
def test_a_list_that_is_none_is_refused(node: object) -> None:
    with pytest.raises(Refusal, match="a list is kept as an object with `items` and `after`") as refused:
        needs([call({"m": {"$list": A}})], msgspec.convert({A: node}, dict[str, object]))
    assert refused.value.steps == ("blobs", A)


def test_a_list_that_goes_on_from_no_digest_is_refused() -> None:
    with pytest.raises(Refusal, match="this is not a digest") as refused:
        needs([call({"m": {"$list": A}})], {A: {"items": [], "after": "no"}})
    assert refused.value.steps == ("blobs", A, "after")


def test_small_plain_arguments_are_indexed_by_their_own_names() -> None:
    arguments = {
        "jurisdiction": "GB-SCT",
        "empty": "",
        "count": 7,
        "flag": True,
        "off": False,
        "$$own": "mine",
        "long": "x" * 200,
        "longer": "x" * 201,
        "rate": 0.5,
        "tiny": 1e-7,
        "whole": 3.0,
        "none": None,
        "deep": {"x": 1},
        "many": ["x"],
        "big": {"$int": "9007199254740993"},
        "price": {"$dec": "12.50"},
        "longest": {"$int": "1" * 201},
        "when": {"$dt": "2026-11-30T00:00:00Z"},
        "token": "[redacted]",
        "nul": "a\x00b",
        "huge": 10**200,
        "n\x00": 1,
        "": 1,
        "n" * 100: 1,
        "n" * 101: 1,
    }
    assert dict(indexed(call(arguments))) == {
        "jurisdiction": "GB-SCT",
        "empty": "",
        "count": "7",
        "flag": "true",
        "off": "false",
        "rate": "0.5",
        "tiny": "1e-7",
        "whole": "3.0",
        "big": "9007199254740993",
        "price": "12.50",
        "$own": "mine",
        "long": "x" * 200,
        "n" * 100: "1",
    }


def test_so_many_arguments_are_indexed_and_no_more() -> None:
    assert indexed(call({f"a{number}": number for number in range(60)})) == tuple(
        (f"a{number}", str(number)) for number in range(50)
    )
    assert indexed(call({"$own": 1, "$$own": 2})) == (("$own", "2"),)


@pytest.mark.parametrize("event", [result({"a": "x"}), call(["x"]), call(msgspec.UNSET), call({"$blob": A})])
def test_only_the_arguments_of_calls_are_indexed(event: Event) -> None:
    assert indexed(event) == ()
