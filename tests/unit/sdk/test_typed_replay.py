"""A replayed value equals the first in type and value; where it would not, the first call says so."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.sdk.scripted import ScriptedService, committed, executes, replays
from tests.unit.sdk.typed_values import ADDRESS, HOLD, NOON, TABLE, Charge, Guest, Hold, Order, Refund, Scaled, Size
from twiceshy import Guard, RecordMismatch, ResultNotKept

Serve = Callable[..., tuple[Guard, ScriptedService]]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "keep-results.md"


def returning(guard: Guard, annotation: object, value: object, name: str = "look_up") -> Callable[[], Any]:
    """Put a tool behind the guard that is annotated with a type and returns a value."""

    def look_up() -> Any:
        return value

    if annotation is not inspect.Signature.empty:
        look_up.__annotations__["return"] = annotation
    else:
        look_up.__annotations__.clear()
    return guard.tool(name=name)(look_up)


def first_call(serve: Serve, annotation: object, value: object) -> dict[str, Any]:
    """Let a tool return a value for the first time; give back its commit as it went over the wire."""
    guard, service = serve(executes(), committed())
    with guard.run("booking-42"):
        assert returning(guard, annotation, value)() is value
    return service.bodies("/commit")[0]


def replay(serve: Serve, annotation: object, commit: dict[str, Any]) -> Any:
    """Ask another guard, as another process would, for what is recorded."""
    answer = msgspec.json.decode(replays(commit["result"]).body)
    answer["outcome"]["result_type"] = commit.get("result_type")
    reply = msgspec.structs.replace(replays(None), body=msgspec.json.encode(answer))
    guard, _ = serve(reply)
    with guard.run("booking-42"):
        return returning(guard, annotation, None)()


@pytest.mark.parametrize(("annotation", "value"), [(row[1], row[2]) for row in TABLE])
def test_what_the_documentation_lists_comes_back_equal_in_type_and_value(
    serve: Serve, caplog: pytest.LogCaptureFixture, annotation: object, value: object
) -> None:
    commit = first_call(serve, annotation, value)
    assert caplog.text == ""
    again = replay(serve, annotation, commit)
    assert again == value
    assert type(again) is type(value)


def test_the_documentation_lists_what_is_tested() -> None:
    rows = re.findall(r"^\| (.+?) +\|", PAGE.read_text(), re.MULTILINE)[1:]
    assert [row for row in rows if not row.startswith("---")] == list(dict.fromkeys(row[0] for row in TABLE))


def test_an_aware_datetime_comes_back_as_the_same_instant_and_offset(serve: Serve) -> None:
    again = replay(serve, type(NOON), first_call(serve, type(NOON), NOON))
    assert (again, again.utcoffset(), again.microsecond) == (NOON, NOON.utcoffset(), 123456)


@pytest.mark.parametrize(
    ("annotation", "value", "warning"),
    [
        (inspect.Signature.empty, HOLD, r"return a dict where the tool returned a Hold\. Annotate its return type"),
        (inspect.Signature.empty, (1, 2), "return a list where the tool returned a tuple"),
        (inspect.Signature.empty, {1, 2}, "return a list where the tool returned a set"),
        (inspect.Signature.empty, date(2026, 1, 1), "return a str where the tool returned a date"),
        (inspect.Signature.empty, [Size.LARGE], "another list than the tool returned.* down to the members"),
        (list, [HOLD], "another list than the tool returned"),
        (dict[str, Any], {"a": (1,)}, "another dict than the tool returned"),
        (list[date | str], [date(2026, 1, 1)], "another list than the tool returned"),
        (int, HOLD, r"would fail: the record holds .*\.Hold \(a dict.*now says int.*Correct its return annotation"),
        ("Nowhere", HOLD, r"return a dict .*'Nowhere' raises NameError: name 'Nowhere' is not defined"),
        (list[Charge | Refund], [Refund(1)], "would fail: .*several of its members fit"),
    ],
)
def test_a_result_that_would_not_come_back_is_warned_about_on_the_first_call(
    serve: Serve, caplog: pytest.LogCaptureFixture, annotation: object, value: object, warning: str
) -> None:
    first_call(serve, annotation, value)
    assert re.search(warning, caplog.text), caplog.text


@pytest.mark.parametrize("value", [None, True, 1, 1.0, "a", [1, {"b": None}], {"$a": [b"x"]}])
def test_a_result_of_plain_values_needs_no_annotation(
    serve: Serve, caplog: pytest.LogCaptureFixture, value: object
) -> None:
    commit = first_call(serve, inspect.Signature.empty, value)
    assert caplog.text == ""
    assert "result_type" not in commit
    assert replay(serve, inspect.Signature.empty, commit) == value


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (HOLD, "tests.unit.sdk.typed_values.Hold"),
        ([HOLD], "list[tests.unit.sdk.typed_values.Hold]"),
        ({"a": ADDRESS}, "dict[str, tests.unit.sdk.typed_values.Address]"),
        ((1, 2), "tuple"),
        (NOON, "datetime.datetime"),
    ],
)
def test_a_commit_names_the_type_that_the_record_would_not_tell(serve: Serve, value: object, name: str) -> None:
    assert first_call(serve, type(value), value)["result_type"] == name


def test_a_changed_annotation_is_a_clear_error_that_names_both_types(serve: Serve) -> None:
    commit = first_call(serve, Hold, HOLD)
    with pytest.raises(RecordMismatch) as caught:
        replay(serve, Order, commit)
    assert str(caught.value).startswith(
        "look_up happened before, but its record does not fit its return annotation: the record holds a "
        "tests.unit.sdk.typed_values.Hold (a dict with the members start, price, colours, by_day), the annotation now "
        "says Order: Field required - at `at`; "
    )
    assert "Take back the change of the annotation" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "annotation", "names"),
    [
        (HOLD, Guest, ["typed_values.Hold (a dict", "now says Guest"]),
        ([HOLD], list[Guest], ["list[tests.unit.sdk.typed_values.Hold] (a list of 1)", "now says list[", "Guest]"]),
        (ADDRESS, int, ["typed_values.Address (a dict with the members street_name, zip_code)", "now says int"]),
        (HOLD, Guest | int, ["typed_values.Hold (a dict", "Guest | int"]),
        ("free", int, ["a str", "says int"]),
        (5, Hold, ["an int", "says Hold"]),
    ],
)
def test_whatever_the_annotation_was_and_is_both_are_named(
    serve: Serve, value: object, annotation: object, names: list[str]
) -> None:
    commit = first_call(serve, type(value), value)
    with pytest.raises(RecordMismatch) as caught:
        replay(serve, annotation, commit)
    assert [name for name in names if name not in str(caught.value)] == []


def test_two_types_of_one_name_are_told_apart_by_their_modules(serve: Serve) -> None:
    commit = first_call(serve, Hold, HOLD) | {"result_type": "shop.Hold", "result": {"id": 1}}
    with pytest.raises(RecordMismatch, match=r"a shop\.Hold \(a dict with the member id\), the annotation now says "
                       r"tests\.unit\.sdk\.typed_values\.Hold:"):  # fmt: skip
        replay(serve, Hold, commit)


def test_a_class_that_was_renamed_replays_as_long_as_the_value_fits(serve: Serve) -> None:
    commit = first_call(serve, Charge, Charge(7))
    assert replay(serve, Refund, commit) == Refund(7)


def test_a_record_without_a_type_still_replays(serve: Serve) -> None:
    commit = first_call(serve, Hold, HOLD)
    del commit["result_type"]
    assert replay(serve, Hold, commit) == HOLD


def test_a_member_that_no_constructor_takes_comes_back_as_it_was(serve: Serve) -> None:
    changed = Scaled(2, 5)
    changed.scaled = 11
    assert replay(serve, Scaled, first_call(serve, Scaled, changed)) == changed


def test_names_on_the_wire_given_by_a_person_are_read_too(serve: Serve) -> None:
    by_hand = {"result": {"streetName": "Main", "zip": {"code": "10115"}}}
    assert replay(serve, type(ADDRESS), by_hand) == ADDRESS


def test_pydantic_is_never_imported_by_the_sdk() -> None:
    program = """
import sys, dataclasses, datetime
from twiceshy._encode import encode_result
from twiceshy._restore import restore
@dataclasses.dataclass
class Hold:
    start: "datetime.date | str"
assert restore(encode_result(Hold("noon")), Hold) == Hold("noon")
print("pydantic" in sys.modules, "attrs" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "False False\n"


def knot() -> object:
    """Return a value that contains itself."""
    loop: list[object] = []
    loop.append(loop)
    return loop


def tower() -> object:
    """Return a value that is nested too deep."""
    value: object = 1
    for _ in range(65):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (knot(), "the value contains itself"),
        (lambda: 1, "a function cannot be written"),
        (iter([1]), "a list_iterator cannot be written"),
        (float("nan"), "NaN and infinities are not numbers"),
        (tower(), "nested more than 64 deep"),
        ("x" * 2**21, "larger than 1048576 bytes"),
    ],
    ids=["cycle", "lambda", "iterator", "nan", "deep", "large"],
)
def test_a_result_that_cannot_be_kept_reaches_its_caller_with_a_warning_and_is_not_replayed(
    serve: Serve, caplog: pytest.LogCaptureFixture, value: object, reason: str
) -> None:
    commit = first_call(serve, object, value)
    assert set(commit["result"]) == {"$opaque"}
    assert reason in caplog.text
    assert "A replay raises ResultNotKept" in caplog.text
    with pytest.raises(ResultNotKept) as caught:
        replay(serve, object, commit)
    assert reason in str(caught.value)
    assert f"({type(value).__module__}.{type(value).__qualname__})" in str(caught.value)


def test_of_a_result_that_is_too_large_size_and_digest_are_kept(serve: Serve) -> None:
    opaque = first_call(serve, str, "x" * 2**21)["result"]["$opaque"]
    assert opaque == {
        "type": "builtins.str",
        "size": 2**21 + 2,
        "sha256": "0314a9c40507c565fa85c44fb6bce895e00955318a66c97e5abc155cc2b89dcd",
        "reason": "it is larger than 1048576 bytes",
    }
