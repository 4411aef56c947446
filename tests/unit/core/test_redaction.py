"""What must not be stored leaves a mark, and a call that means the same fills it."""

import pytest

from guard.core.redaction import REDACTED, marks, missing, redacted, restored

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
        (("/people/9/pin", "/nobody", "/to/x", "/people/pin", "/card/*"), CALL),
    ],
)
def test_a_pointer_leaves_a_mark(pointers: tuple[str, ...], stored: dict[str, object]) -> None:
    assert redacted(CALL, pointers) == stored


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
