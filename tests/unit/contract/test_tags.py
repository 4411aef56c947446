"""Tags: what JSON lacks has one spelling each, and no two things have one."""

from datetime import datetime
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twiceshy_contract.canonical import canonical, is_tag, normal_form
from twiceshy_contract.refusals import JsonValue, Refusal

UUID = "0192f5b0-7c3a-7000-8000-00000000abcd"
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
)
TAGS = (
    st.integers().map(lambda number: {"$int": str(number)})
    | st.decimals(allow_nan=False, allow_infinity=False).map(lambda number: {"$dec": str(number)})
    | st.builds(datetime, st.integers(2, 9998), st.just(3), st.just(4), tzinfo=st.timezones()).map(
        lambda at: {"$dt": at.isoformat()}
    )
    | st.sampled_from(["", "YQ==", "YR==", "YWI=", "YWJj"]).map(lambda text: {"$b64": text})
    | st.uuids().map(lambda name: {"$uuid": str(name).upper()})
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4).map(
    lambda key: f"${key}" if key.startswith("$") else key
)
TREES: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(SCALARS, TAGS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(TREES)
def test_the_normal_form_is_its_own_normal_form(tree: JsonValue) -> None:
    once = normal_form(tree)
    assert normal_form(once) == once
    assert canonical(once) == canonical(tree)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"$int": "9007199254740991"}, 2**53 - 1),
        ({"$int": "-9007199254740991"}, 1 - 2**53),
        ({"$int": "9007199254740992"}, 2**53),
        ({"$int": "0"}, -0.0),
        ({"$int": "1"}, 1.0),
        ({"$dec": "1.500"}, {"$dec": "1.5"}),
        ({"$dec": "1.5e0"}, {"$dec": "15E-1"}),
        ({"$dec": "100"}, {"$dec": "1E2"}),
        ({"$dec": "-0"}, {"$dec": "0.000"}),
        ({"$dec": "0E-400"}, {"$dec": "-0E+400"}),
        ({"$dec": "00.5"}, {"$dec": ".5"}),
        ({"$dec": "5."}, {"$dec": "5"}),
        ({"$dec": "1E+99"}, {"$dec": "10e98"}),
        ({"$dt": "2026-10-12T16:00:00+02:00"}, {"$dt": "2026-10-12T14:00:00Z"}),
        ({"$dt": "2026-10-12t14:00:00z"}, {"$dt": "2026-10-12T14:00:00Z"}),
        ({"$dt": "2026-10-12T14Z"}, {"$dt": "2026-10-12T14:00:00-00:00"}),
        ({"$dt": "2026-W42-1T14:00Z"}, {"$dt": "20261012T1400Z"}),
        ({"$dt": "2026-10-12T14:00:00.5Z"}, {"$dt": "2026-10-12T14:00:00,500000000Z"}),
        ({"$dt": "2026-10-12T14:00:00.000Z"}, {"$dt": "2026-10-12T14:00:00Z"}),
        ({"$dt": "2026-10-13T00:30:00+0100"}, {"$dt": "2026-10-12T23:30:00+00"}),
        ({"$dt": "1890-01-01T00:53:28+00:53:28"}, {"$dt": "1890-01-01T00:00:00Z"}),
        ({"$b64": "YR=="}, {"$b64": "YQ=="}),
        ({"$b64": "YWJ="}, {"$b64": "YWI="}),
        ({"$uuid": UUID.upper()}, {"$uuid": UUID}),
        ({"$uuid": f"{{{UUID}}}"}, {"$uuid": UUID}),
        ({"$uuid": f"urn:uuid:{UUID}"}, {"$uuid": UUID}),
        ({"$uuid": f"URN:UUID:{UUID}"}, {"$uuid": UUID}),
        ({"$uuid": UUID.replace("-", "")}, {"$uuid": UUID}),
    ],
)
def test_two_spellings_of_one_value_are_one(one: JsonValue, other: JsonValue) -> None:
    assert canonical(one) == canonical(other)
    assert canonical({"a": [one]}) == canonical({"a": [other]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"$int": "9007199254740992"}, {"$int": "9007199254740993"}),
        ({"$int": "9007199254740992"}, 2.0**53),
        ({"$dec": "1"}, {"$int": "1"}),
        ({"$dec": "1.0"}, 1),
        ({"$dec": "1E+400"}, {"$dec": "1E+401"}),
        ({"$dec": "0.1"}, {"$dec": "0.1000000000000000055511151231257827"}),
        ({"$dt": "2026-10-12T14:00:00Z"}, {"$dt": "2026-10-12T14:00:00.000001Z"}),
        ({"$b64": "YQ=="}, {"$b64": "YWE="}),
        ({"$uuid": UUID}, UUID),
        ({"$$dec": "1"}, {"$dec": "1"}),
        ({"$$$dec": "1"}, {"$$dec": "1"}),
        ({"$$": 1}, {"$$$": 1}),
    ],
)
def test_two_values_are_two(one: JsonValue, other: JsonValue) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    ("tag", "payload"),
    [
        (tag, payload)
        for tag in ("$int", "$dec", "$dt", "$b64", "$uuid")
        for payload in cast("list[JsonValue]", [1, None, True, [], {}, "\u00e9"])
    ]
    + [("$int", text) for text in ("", "+1", "01", "1.0", "1e3", " 1", "1_000", "\u0661", "1\n", "9" * 4301)]
    + [("$dec", text) for text in ("", "+1", ".", "NaN", "Infinity", "1,5", "1_0", " 1", "1e", "\u0661", "1\n")]
    + [("$dec", "1e99999999999999999999999")]
    + [("$dt", "2026-10-12T14:00:00"), ("$dt", "2026-10-12"), ("$dt", "14:00:00Z"), ("$dt", "2026-W42")]
    + [("$dt", "2026-10-12T24:00:00Z"), ("$dt", "2016-12-31T23:59:60Z"), ("$dt", "2026-10-12T25:00:00Z")]
    + [("$dt", "2026-10-12T14:00:00.1234567Z"), ("$dt", "2026-10-12T14:00.5Z"), ("$dt", "2026-10-12T14:00:00.Z")]
    + [("$dt", "2026-10-12T14:00:00+02:99"), ("$dt", "2026-10-12T14:00:00+24:00")]
    + [("$dt", "2026-10-12T14:00:00+02:00:30.5"), ("$dt", "2026-10-12T14:00 Z"), ("$dt", "2026-10-12x14:00Z")]
    + [("$dt", "2026-02-30T00:00Z"), ("$dt", "2026-285T14:00Z"), ("$dt", "+2026-10-12T14:00Z")]
    + [("$dt", "0001-01-01T00:00:00+00:01"), ("$dt", "2026-10-12T14:00Z\n")]
    + [("$b64", text) for text in ("YQ", "YQ=", "YQ===", "Y-_=", "YQ==\n", " YQ==", "=", "YQ==YQ==", "Y Q==")]
    + [("$uuid", text) for text in ("", UUID[:-1], UUID + "0", "0x" + "1" * 30, "+" + "1" * 31, " " + "1" * 31)]
    + [("$uuid", text) for text in (f"{{{UUID}", f"{UUID}}}", f"{{{'1' * 32}}}", UUID.replace("-", "_"), f"{UUID}\n")]
    + [("$uuid", text) for text in ("0192f5b07c3a-70008000-00000000abcd", "\uff11" + "1" * 31)],
)
def test_what_has_no_one_meaning_is_refused_with_its_place_and_never_its_value(tag: str, payload: JsonValue) -> None:
    with pytest.raises(Refusal, match=r"\$|date-time") as caught:
        canonical({"a": [0, {tag: payload}]})
    assert caught.value.path == f"/a/1/{tag}"
    assert not isinstance(payload, str) or len(payload) < 12 or payload not in caught.value.reason


@pytest.mark.parametrize("text", ["2026-10-12T24:00:00Z", "2016-12-31T23:59:60Z", "2016-12-31T235960Z", "20261012T24Z"])
def test_a_leap_second_and_the_24th_hour_are_refused_on_every_python(text: str) -> None:
    with pytest.raises(Refusal, match="write the instant that follows"):
        canonical({"$dt": text})


@pytest.mark.parametrize("key", ["$", "$x", "$INT", "$opaque", "$ dec", "$date"])
def test_an_unknown_tag_is_refused_at_any_depth_and_told_how_to_be_a_key(key: str) -> None:
    for value in ({key: "1"}, [{key: "1"}], {"$$a": {"b": {key: "1"}}}, {"a": 1, key: "1"}, {key: "1", "a": 1}):
        with pytest.raises(Refusal) as caught:
            canonical(value)
        assert caught.value.reason == f"{key} is not a tag; write a key of your own as ${key}"


@pytest.mark.parametrize("tag", ["$int", "$dec", "$dt", "$b64", "$uuid"])
def test_a_tag_is_alone_in_its_object(tag: str) -> None:
    for value in ({tag: "1", "a": 1}, {"a": 1, tag: "1"}, {tag: "1", "$$x": 1}, {"$int": "1", "$dec": "1"}):
        with pytest.raises(Refusal, match="must be the only key"):
            canonical(value)


def test_an_escaped_key_keeps_its_dollars_at_every_depth() -> None:
    assert canonical({"$$a": [{"$$$b": {"$$": 1}}]}) == b'{"$$a":[{"$$$b":{"$$":1}}]}'


def test_a_tag_in_a_key_that_only_looks_like_one_is_text() -> None:
    assert canonical({"a$int": "1", "\uff04int": "1"}) == '{"a$int":"1","\uff04int":"1"}'.encode()


def test_what_is_a_tag_and_what_a_users_object() -> None:
    assert [is_tag({"$dec": "1"}), is_tag({"$uuid": UUID})] == [True, True]
    others: list[JsonValue] = [{"$$dec": "1"}, {}, {"a": 1}, {"$dec": "1", "b": 1}, "$dec", 1, None, [], {"": 1}]
    assert [is_tag(value) for value in others] == [False] * 9
