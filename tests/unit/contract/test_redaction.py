"""What must not be stored leaves a mark, and a call that means the same fills it."""

import pytest

from twiceshy_contract.redaction import REDACTED, marks, missing, redacted, restored

CARD = {"number": "4111 1111", "cvc": "123"}
CALL: dict[str, object] = {"to": "bob", "card": CARD, "people": [{"pin": 1, "name": "a"}, {"pin": 2, "name": "b"}]}


@pytest.mark.parametrize(
    ("pointers", "stored"),
    [
        ((), CALL),
        (("/card/cvc",), CALL | {"card": CARD | {"cvc": REDACTED}}),
        (("/card",), CALL | {"card": REDACTED}),
        (("/card", "/card/cvc"), CALL | {"card": REDACTED}),
        (("/people/*/pin",), CALL | {"people": [{"pin": REDACTED, "name": "a"}, {"pin": REDACTED, "name": "b"}]}),
        (("/people/1/pin",), CALL | {"people": [{"pin": 1, "name": "a"}, {"pin": REDACTED, "name": "b"}]}),
        (("/people/*",), CALL | {"people": [REDACTED, REDACTED]}),
        (("/people/9/pin", "/nobody", "/9", "/card/holder"), CALL),
        (("/card/*",), CALL | {"card": {"number": REDACTED, "cvc": REDACTED}}),
        (("/*",), {"to": REDACTED, "card": REDACTED, "people": REDACTED}),
        (("",), {"to": REDACTED, "card": REDACTED, "people": REDACTED}),
    ],
)
def test_a_pointer_leaves_a_mark(pointers: tuple[str, ...], stored: dict[str, object]) -> None:
    assert redacted(CALL, pointers) == stored


@pytest.mark.parametrize(
    ("value", "path", "stored"),
    [
        ({"bob": {"pin": 1, "age": 7}}, "/x/*/pin", {"bob": {"pin": REDACTED, "age": 7}}),
        ({"pin": 1}, "/x/*/pin", {"pin": REDACTED}),
        (1, "/x/*/pin", REDACTED),
        ([[1, 2], {"pin": 3}], "/x/*/pin", [REDACTED, {"pin": REDACTED}]),
        ([[{"pin": 1}]], "/x/*/pin", [REDACTED]),
        (["4111", 1], "/x/number", REDACTED),
        ("4111", "/x/number", REDACTED),
        ({"$dec": "41.11"}, "/x/number", REDACTED),
        ({"$dec": "41.11"}, "/x/$dec", REDACTED),
        ({"bob": {"pin": 1}}, "/x/0/pin", REDACTED),
        ({"0": {"pin": 1}}, "/x/0/pin", {"0": {"pin": REDACTED}}),
        ({"$$pin": 1}, "/x/$pin", {"$$pin": REDACTED}),
        ({"$$pin": 1}, "/x/$$pin", {"$$pin": REDACTED}),
        ({"*": 1, "a": 2}, "/x/*", {"*": REDACTED, "a": REDACTED}),
        (None, "/x/*/pin", None),
        ({"card": None}, "/x/card/number", {"card": None}),
    ],
)
def test_what_has_another_shape_than_the_path_expects_is_left_out_as_a_whole(
    value: object, path: str, stored: object
) -> None:
    assert redacted({"x": value, "y": 1}, (path,)) == {"x": stored, "y": 1}
    assert restored({"x": stored, "y": 1}, {"x": value, "y": 1}) == {"x": value, "y": 1}


def test_the_arguments_themselves_are_not_touched() -> None:
    redacted(CALL, ("/card/cvc", "/people/*/pin"))
    assert CALL["card"] == {"number": "4111 1111", "cvc": "123"}


def test_a_name_with_a_slash_is_escaped() -> None:
    assert redacted({"a/b": {"~": 1}}, ("/a~1b/~0",)) == {"a/b": {"~": REDACTED}}


@pytest.mark.parametrize("pointers", [("/card",), ("/card/cvc", "/people/*/pin"), ("/people/*",), ("/people",)])
def test_the_current_call_fills_the_marks(pointers: tuple[str, ...]) -> None:
    recorded = redacted(CALL, pointers)
    assert restored(recorded, CALL) == CALL
    assert missing(recorded, CALL) == ()


def test_only_marks_are_filled() -> None:
    recorded: dict[str, object] = {"to": "bob", "pin": REDACTED}
    assert restored(recorded, {"to": "eve", "pin": 4, "more": 1}) == {"to": "bob", "pin": 4}


def test_marks_that_a_call_cannot_fill_are_named() -> None:
    recorded: dict[str, object] = {
        "people": [{"pin": REDACTED}, {"pin": REDACTED}],
        "card": REDACTED,
        "x": {"y": REDACTED},
    }
    current: dict[str, object] = {"people": [{"pin": 1}], "x": 5}
    assert marks(recorded) == ("/people/0/pin", "/people/1/pin", "/card", "/x/y")
    assert missing(recorded, current) == ("/people/1/pin", "/card", "/x/y")
    assert restored(recorded, current) == recorded | {"people": [{"pin": 1}, {"pin": REDACTED}]}
