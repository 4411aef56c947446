"""Strict JSON: what two readers could understand differently is refused, with its place."""

import json

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.contract.test_canonical import TREES
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.strict_json import (
    _UNPROVEN,
    ENVELOPE_DEPTH,
    MAX_DEPTH,
    _decoded_at_once,
    _decoded_with_care,
    decode,
)

PIECES = [b"NaN", b"1e999", b'"', b"[", b"}", b",", b"\\ud800", b"-"]
TEXTS = TREES.map(lambda tree: json.dumps(tree).encode())


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        (b'{"a": {"b": 1, "b": 2}}', "/a/b", "stands twice"),
        (b'[{"a": 1, "\\u0061": 2}]', "/0/a", "stands twice"),
        (b'{"a": [0, NaN]}', "/a/1", "NaN is not a JSON number"),
        (b"[-Infinity]", "/0", "-Infinity is not a JSON number"),
        (b'{"a": 1e999}', "/a", "larger than any double"),
        (b"[1, -1e999]", "/1", "larger than any double"),
        (b'{"a": "\\ud800"}', "/a", "lone surrogate"),
        (b'{"a": {"\\udc00": 1}}', "/a", "lone surrogate"),
        (b'{"a": ["x\xff"]}', "/a/0", "byte 9 is not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "/a", "is not UTF-8"),
        (b"\xff", "", "byte 0 is not UTF-8"),
        (b"1" * 4301, "", "more than 4300 digits"),
        (b'{"a": -' + b"1" * 4301 + b"}", "/a", "more than 4300 digits"),
        (b"", "", "expected a value, found the end of the text"),
        (b"  ", "", "expected a value"),
        (b"{", "", "expected a key"),
        (b'{"a"', "/a", "expected ':'"),
        (b'{"a" 1}', "/a", "expected ':'"),
        (b'{"a": }', "/a", "expected a value"),
        (b'{"a": 1,}', "/a", "expected a key"),
        (b"{1: 2}", "", "expected a key, found '1'"),
        (b"[1,]", "/1", "expected a value"),
        (b"[1 2]", "/0", "expected ',' or the end of the array"),
        (b'{"a": 1 "b": 2}', "/a", "expected ',' or the end of the object, found a string"),
        (b'{"a": [1}', "/a/0", "expected ',' or the end of the array"),
        (b"1 2", "", "something follows the value"),
        (b"[tru]", "/0", "expected a value, found 'tru'"),
        (b"[01]", "/0", "a bad token at character 1"),
        (b"[1.]", "/0", "a bad token"),
        (b"[+1]", "/0", "a bad token"),
        (b'["a\\x"]', "/0", "not closed or has a bad escape"),
        (b'["a\n"]', "/0", "not closed or has a bad escape"),
        (b'["a', "/0", "not closed or has a bad escape"),
        (b"['a']", "/0", "a bad token"),
        (b"\xef\xbb\xbf1", "", "a bad token"),
        (b"[1]\x00", "", "a bad token"),
    ],
)
def test_a_text_that_cannot_be_taken_is_refused_with_its_place(text: bytes, path: str, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        decode(text)
    assert caught.value.path == path
    assert reason in caught.value.reason


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_text_may_be_64_deep_and_no_deeper(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    decode((opening * MAX_DEPTH + "1" + closing * MAX_DEPTH).encode())
    step = "/0" if opening == "[" else "/a"
    for depth in (MAX_DEPTH + 1, 1_100, 100_000):
        with pytest.raises(Refusal, match="more than 64 deep") as caught:
            decode((opening * depth + "1" + closing * depth).encode())
        assert caught.value.path == step * MAX_DEPTH


def test_many_containers_side_by_side_are_not_deep() -> None:
    assert decode(b"[" + b"[]," * 1000 + b"{}]") == [[]] * 1000 + [{}]


def test_a_request_body_may_be_deeper_than_a_value_by_its_envelope() -> None:
    assert (MAX_DEPTH, ENVELOPE_DEPTH) == (64, 6)
    decode(b"[" * 68 + b"]" * 68, max_depth=68)


def test_a_surrogate_pair_is_one_character() -> None:
    assert decode(b'["\\ud83d\\ude00"]') == ["\U0001f600"]


def test_large_integers_keep_every_digit() -> None:
    assert decode(b"[9007199254740993, " + b"7" * 4300 + b"]") == [9007199254740993, int("7" * 4300)]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TEXTS)
def test_what_is_taken_reads_as_json_loads_reads_it(text: bytes) -> None:
    assert repr(decode(text)) == repr(json.loads(text))


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(TEXTS, st.data())
def test_a_mutated_text_is_read_as_json_loads_reads_it_or_refused_with_a_place(
    text: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(text)))
    upto = data.draw(st.integers(at, min(at + 3, len(text))))
    piece = data.draw(
        st.binary(max_size=3) | st.sampled_from([b"NaN", b"1e999", b'"', b"[", b"}", b",", b"\\ud800", b"-"])
    )
    assert_same_or_refused(text[:at] + piece + text[upto:])


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.binary(max_size=20) | st.text('[]{}:,"\\u0d8ef1-+.eEntlrsaINy \n', max_size=20).map(str.encode))
@example(b'"\\')
@example(b"-")
@example(b"-Infinity1")
def test_any_bytes_are_read_as_json_loads_reads_them_or_refused_with_a_place(text: bytes) -> None:
    assert_same_or_refused(text)


def assert_same_or_refused(text: bytes) -> None:
    taken = decoded(text)
    if isinstance(taken, Refusal):
        assert taken.reason != "this is not JSON", "the decoder refused, and the scanner found nothing wrong"
        assert taken.path == "" or taken.path.startswith("/")
    else:
        assert repr(taken[0]) == repr(json.loads(text))


def decoded(text: bytes) -> tuple[JsonValue] | Refusal:
    try:
        return (decode(text),)
    except Refusal as refusal:
        return refusal


@given(TEXTS | TREES.map(msgspec.json.encode), st.integers(1, 5))
@example(b'{"a":1,"a":2}', 4)
@example(b'{"a":1.0,"b":-0.0,"c":18446744073709551617}', 4)
@example(b"[[[[[]]]],[[[[]]]]]", 4)
def test_what_is_read_at_once_is_what_the_careful_reader_reads(text: bytes, depth: int) -> None:
    try:
        careful = repr(_decoded_with_care(text, depth))
    except Refusal:
        careful = "refused"
    assert repr(_decoded_at_once(text, depth)) in (careful, repr(_UNPROVEN))


def test_what_a_compact_encoder_wrote_is_read_at_once() -> None:
    body = msgspec.json.encode({"tool": "pay", "arguments": {"to": ["bob", 5, 2.5, None]}})
    assert _decoded_at_once(body, MAX_DEPTH) == {"tool": "pay", "arguments": {"to": ["bob", 5, 2.5, None]}}
