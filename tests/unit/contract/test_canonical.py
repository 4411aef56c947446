"""Canonical form: two calls that mean the same have the same bytes, and no two others do."""

import hashlib
import json
from pathlib import Path

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from twiceshy_contract.canonical import (
    MAX_BYTES,
    MAX_SAFE_INTEGER,
    canonical,
    canonical_of_json,
    digest,
    normal_form,
)
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.strict_json import decode

VECTORS = Path(__file__).parent / "vectors"
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6).filter(lambda key: not key.startswith("$"))
ODD_FLOATS = st.sampled_from(
    [0.0, -0.0, 5e-324, 1e-7, 1e-6, 9.999999999999999e-5, 1e-4, 1e15, 1e16, 1e20, 1e21, 1.7976931348623157e308, 0.1]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | ODD_FLOATS
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.text(st.sampled_from('\x00\x08\x0c\x1f\x7f\x80"\\/\u2028\ufeff\U0001f600é'), max_size=8)
)
TREES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_the_vectors_of_rfc_8785s_author_hold(name: str) -> None:
    value = decode((VECTORS / "input" / f"{name}.json").read_bytes())
    assert canonical(value) == (VECTORS / "output" / f"{name}.json").read_bytes()


@settings(max_examples=600, deadline=None, derandomize=True)
@given(TREES)
@example({"\U0001f600": 1, "\ufb01": 2})
@example([1e15, 999999999999999.9, 1e-4, 0.00011, -1e15, 123456789012345680.0])
@example(["\x7f\x80\u2028", "/"])
def test_the_fast_path_writes_what_the_rfc8785_package_writes(tree: JsonValue) -> None:
    assert canonical(tree) == rfc8785.dumps(normal_form(tree))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TREES)
def test_a_tree_without_tags_is_written_as_rfc_8785_says_itself(tree: JsonValue) -> None:
    assert canonical(tree) == rfc8785.dumps(tree)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(TREES)
@example({"\U0001f600": 1, "\ufb01": 2})
@example({"ü": "$", "b": ["$x", "1e5", "12345678901234567", 2**60]})
@example({"$$mine": {"$dec": "12.50"}})
def test_the_quick_way_from_json_writes_the_same(tree: JsonValue) -> None:
    assert canonical_of_json(decode(json.dumps(tree).encode())) == canonical(tree)


@pytest.mark.parametrize("text", ['{"$no":1}', '{"a":{"$dt":"today"}}', "[" * 65 + "]" * 65])
def test_the_quick_way_from_json_refuses_the_same(text: str) -> None:
    with pytest.raises(Refusal) as quick:
        canonical_of_json(json.loads(text))
    with pytest.raises(Refusal) as slow:
        canonical(json.loads(text))
    assert (quick.value.reason, quick.value.steps) == (slow.value.reason, slow.value.steps)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TREES)
def test_the_canonical_form_is_its_own_canonical_form(tree: JsonValue) -> None:
    """Digits beyond 2^53 that are no `$int` are a double, as everywhere in RFC 8785."""
    once = canonical(tree)
    assert canonical(json.loads(once, parse_int=float)) == once


def test_a_double_beyond_2_to_the_53_is_no_integer_of_the_same_size() -> None:
    assert canonical(2.0**53) == b"9007199254740992"
    assert canonical(1e16) != canonical(10**16)


@given(st.integers(MAX_SAFE_INTEGER + 1, 10**40), st.sampled_from([1, -1]))
def test_an_integer_beyond_what_a_double_keeps_is_a_tagged_text(size: int, sign: int) -> None:
    assert canonical(sign * size) == b'{"$int":"%d"}' % (sign * size)
    assert canonical({"$int": str(sign * size)}) == canonical(sign * size)


def test_2_to_the_53_and_its_successor_stay_apart() -> None:
    assert canonical(2**53 - 1) == b"9007199254740991"
    assert canonical(2**53) == b'{"$int":"9007199254740992"}'
    assert canonical(2**53 + 1) == b'{"$int":"9007199254740993"}'
    assert canonical(-(2**53)) == b'{"$int":"-9007199254740992"}'


SAME: list[tuple[str, object, object]] = [
    ("key order", {"x": 1, "y": 2}, {"y": 2, "x": 1}),
    ("1 and 1.0", 1, 1.0),
    ("-0.0 and 0.0", -0.0, 0.0),
    ("-0.0 and 0", -0.0, 0),
    ("tuple and list", (1, 2), [1, 2]),
    ("$int within a double and the number", {"$int": "5"}, 5),
    ("$dec with trailing zeros", {"$dec": "1.50"}, {"$dec": "1.5"}),
    ("$dec with an exponent", {"$dec": "1E+3"}, {"$dec": "1000"}),
    ("$dec zero with a sign", {"$dec": "-0.00"}, {"$dec": "0"}),
    ("$dt of one instant", {"$dt": "2026-10-12T16:00:00+02:00"}, {"$dt": "2026-10-12T14:00:00Z"}),
    (
        "$uuid spellings",
        {"$uuid": "0192F5B07C3A70008000000000000001"},
        {"$uuid": "0192f5b0-7c3a-7000-8000-000000000001"},
    ),
    ("$b64 with loose bits", {"$b64": "YR=="}, {"$b64": "YQ=="}),
]
DIFFERENT: list[tuple[str, object, object]] = [
    ("1 and true", 1, True),
    ("0 and false", 0, False),
    ("null and false", None, False),
    ("1 and '1'", 1, "1"),
    ("2^53 and 2^53+1", 2**53, 2**53 + 1),
    ("NFC and NFD", "\u00e9", "e\u0301"),
    ("$dec and its text", {"$dec": "1.0"}, "1.0"),
    ("$dec and the number", {"$dec": "1"}, 1),
    ("$dt and its text", {"$dt": "2026-10-12T14:00:00Z"}, "2026-10-12T14:00:00Z"),
    ("$b64 and its text", {"$b64": "YQ=="}, "a"),
    ("$int and its text", {"$int": "9007199254740993"}, "9007199254740993"),
    ("$dec of other size", {"$dec": "1.5"}, {"$dec": "15"}),
    ("a user's $$int and the tag", {"$$int": "9007199254740993"}, {"$int": "9007199254740993"}),
    ("list order", [1, 2], [2, 1]),
    ("an absent member and null", {}, {"a": None}),
    ("empty object and empty list", {}, []),
]


@pytest.mark.parametrize(("what", "one", "other"), SAME, ids=[what for what, _, _ in SAME])
def test_the_canonicalisation_matrix_is_the_same_for(what: str, one: object, other: object) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(("what", "one", "other"), DIFFERENT, ids=[what for what, _, _ in DIFFERENT])
def test_the_canonicalisation_matrix_differs_for(what: str, one: object, other: object) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    ("tagged", "spelling"),
    [
        ({"$int": "-9007199254740993"}, b'{"$int":"-9007199254740993"}'),
        ({"$int": "-0"}, b"0"),
        ({"$dec": "0.00100"}, b'{"$dec":"0.001"}'),
        ({"$dec": "-12.340"}, b'{"$dec":"-12.34"}'),
        ({"$dec": "100"}, b'{"$dec":"100"}'),
        ({"$dec": ".5"}, b'{"$dec":"0.5"}'),
        ({"$dec": "1e40"}, b'{"$dec":"1' + b"0" * 40 + b'"}'),
        ({"$dec": "1e41"}, b'{"$dec":"1E+41"}'),
        ({"$dec": "1.5e-50"}, b'{"$dec":"15E-51"}'),
        ({"$dt": "2026-10-12T14:00:00.500000Z"}, b'{"$dt":"2026-10-12T14:00:00.500000Z"}'),
        ({"$dt": "2026-10-12T14:00:00.5Z"}, b'{"$dt":"2026-10-12T14:00:00.500000Z"}'),
        ({"$b64": ""}, b'{"$b64":""}'),
        ({"$uuid": "{0192F5B0-7C3A-7000-8000-000000000001}"}, b'{"$uuid":"0192f5b0-7c3a-7000-8000-000000000001"}'),
        ({"$$x": 1, "a$": 2}, b'{"$$x":1,"a$":2}'),
    ],
)
def test_a_tag_has_one_spelling(tagged: object, spelling: bytes) -> None:
    assert canonical(tagged) == spelling


@given(st.decimals(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False, allow_infinity=False))
def test_two_decimals_have_one_form_just_where_they_are_equal(one: object, other: object) -> None:
    assert (canonical({"$dec": str(one)}) == canonical({"$dec": str(other)})) == (one == other)


def test_the_digest_is_sha_256_of_the_canonical_form() -> None:
    assert digest({"b": 1.0, "a": []}) == hashlib.sha256(b'{"a":[],"b":1}').digest()
    assert MAX_BYTES == 1_048_576
