"""What cannot be taken is refused with its place, and never with another exception."""

import pytest

from twiceshy_contract.canonical import canonical
from twiceshy_contract.refusals import Refusal, pointer, steps_of


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"a": [float("nan")]}, "/a/0", "NaN"),
        ({"a": float("inf")}, "/a", "infinities"),
        ({"a": float("-inf")}, "/a", "infinities"),
        ({"a": "x\ud800"}, "/a", "lone surrogate"),
        ({"a": {"\udfff": 1}}, "/a/\udfff", "lone surrogate"),
        ({"a": {1: 2}}, "/a", "keys are strings"),
        ({True: 2}, "", "keys are strings"),
        ({"a": b"x"}, "/a", "a bytes is not JSON"),
        ([{1, 2}], "/0", "a set is not JSON"),
        (object(), "", "a object is not JSON"),
        ({"a": {"$foo": "x"}}, "/a/$foo", "is not a tag"),
        ({"$": "x"}, "/$", "is not a tag"),
        ({"$int": "5", "b": 1}, "/$int", "only key"),
        ({"b": 1, "$int": "5"}, "/$int", "only key"),
        ({"$int": 5}, "/$int", "holds a string"),
        ({"$int": "05"}, "/$int", "leading zeros"),
        ({"$int": "5.0"}, "/$int", "decimal digits"),
        ({"$int": "5\n"}, "/$int", "decimal digits"),
        ({"$int": "\u0665"}, "/$int", "decimal digits"),
        ({"$int": "9" * 4301}, "/$int", "at most 4300"),
        ({"$dec": "NaN"}, "/$dec", "finite"),
        ({"$dec": "sNaN"}, "/$dec", "finite"),
        ({"$dec": "-Infinity"}, "/$dec", "finite"),
        ({"$dec": "abc"}, "/$dec", "finite decimal"),
        ({"$dec": "1_000"}, "/$dec", "finite decimal"),
        ({"$dec": " 1"}, "/$dec", "finite decimal"),
        ({"$dec": "\u0661"}, "/$dec", "finite decimal"),
        ({"$dec": "1e999999999999999999999"}, "/$dec", "exponent of this $dec"),
        ({"$dt": "2026-10-12T14:00:00"}, "/$dt", "without an offset"),
        ({"$dt": "2026-10-12"}, "/$dt", "date alone"),
        ({"$dt": "soon"}, "/$dt", "ISO 8601"),
        ({"$dt": "2026-10-12T14:00:00.1234567Z"}, "/$dt", "six digits"),
        ({"$dt": "2026-10-12T14:00:00,1234567Z"}, "/$dt", "six digits"),
        ({"$dt": "0001-01-01T00:00:00+01:00"}, "/$dt", "years 1 to 9999"),
        ({"$uuid": "12"}, "/$uuid", "a $uuid is 32 hexadecimal digits"),
        ({"$b64": "YQ"}, "/$b64", "base64"),
        ({"$b64": "-_8="}, "/$b64", "base64"),
        ({"$b64": "\u00e9"}, "/$b64", "standard base64 with padding"),
    ],
)
def test_a_value_that_cannot_be_taken_is_refused_with_its_place(value: object, path: str, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        canonical(value)
    assert caught.value.path == path
    assert reason in caught.value.reason


def test_a_value_may_be_64_deep_and_no_deeper() -> None:
    assert canonical(nested(64)) == b"[" * 64 + b"1" + b"]" * 64
    for depth in (65, 1_100):
        with pytest.raises(Refusal, match="more than 64 deep") as caught:
            canonical(nested(depth))
        assert caught.value.path == "/0" * 64


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(Refusal, match="more than 64 deep"):
        canonical(loop)


def test_an_integer_of_4300_digits_is_taken_and_one_more_is_refused() -> None:
    assert len(canonical({"$int": "9" * 4300})) == 4300 + len(b'{"$int":""}')
    with pytest.raises(Refusal, match="4300 digits") as caught:
        canonical({"a": 10**4300})
    assert caught.value.path == "/a"


def test_a_refusal_says_its_place_and_reason_and_can_be_seen_from_outside() -> None:
    refusal = Refusal("too odd", ("a/b", 0, "c~d"))
    assert refusal.path == "/a~1b/0/c~0d"
    assert str(refusal) == "at /a~1b/0/c~0d: too odd"
    assert refusal.under("arguments", 2).path == "/arguments/2/a~1b/0/c~0d"
    assert str(Refusal("too odd")) == "at the top: too odd"


@pytest.mark.parametrize("steps", [(), ("",), ("a", "b"), ("~1", "/"), ("~", "~0~1/"), ("0", "*")])
def test_a_pointer_is_read_as_it_was_written(steps: tuple[str, ...]) -> None:
    assert steps_of(pointer(steps)) == steps


def test_a_path_that_is_no_pointer_is_refused() -> None:
    with pytest.raises(ValueError, match="not a JSON Pointer"):
        steps_of("a/b")
