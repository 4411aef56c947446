"""Python values in tagged form and back."""

import enum
import ipaddress
import typing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twiceshy._encode import encode, encode_result
from twiceshy._restore import Misfit, restore, untag
from twiceshy_contract.canonical import canonical
from twiceshy_contract.refusals import Refusal


@dataclass
class Knot:
    """What may hold itself."""

    other: object = None


class Colour(enum.Enum):
    """A choice."""

    RED = "red"


class Size(enum.IntEnum):
    """A choice that is an int too."""

    LARGE = 3


class Point(NamedTuple):
    """Two numbers."""

    x: int
    y: int


@dataclass(frozen=True)
class Hold:
    """A dataclass with what JSON lacks."""

    start: datetime
    price: Decimal
    colours: list[Colour]
    tags: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """A dataclass that looks like the next."""

    total: int


@dataclass(frozen=True)
class Refund:
    """A dataclass that looks like the one before."""

    total: int


class Guest(msgspec.Struct, frozen=True, rename="camel", tag="guest"):
    """A struct with other names on the wire."""

    first_name: str
    secret: bytes


class Model(pydantic.BaseModel):
    """A pydantic model with another name on the wire, and a serialiser that writes for people."""

    when: datetime = pydantic.Field(alias="at")

    @pydantic.field_serializer("when")
    def _spelt(self, when: datetime) -> str:
        return f"on {when:%A}"


@attrs.define
class Attrs:
    """An attrs class."""

    x: Decimal


NOON = datetime(2026, 10, 12, 12, tzinfo=UTC)
SELF_UUID = UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("value", "tagged"),
    [
        (None, None),
        (True, True),
        (2**53 - 1, 2**53 - 1),
        (2**53, {"$int": "9007199254740992"}),
        (-(2**60), {"$int": "-1152921504606846976"}),
        (1.5, 1.5),
        ("ä", "ä"),
        ([1, (2,)], [1, [2]]),
        ({"$x": 1, "$$y": 2}, {"$$x": 1, "$$$y": 2}),
        (Decimal("1.50"), {"$dec": "1.50"}),
        (NOON, {"$dt": "2026-10-12T12:00:00+00:00"}),
        (b"\x00\xff", {"$b64": "AP8="}),
        (bytearray(b"a"), {"$b64": "YQ=="}),
        (SELF_UUID, {"$uuid": "12345678-1234-5678-1234-567812345678"}),
        (Colour.RED, "red"),
        (Size.LARGE, 3),
        (Point(1, 2), [1, 2]),
        (
            Hold(NOON, Decimal(2), [Colour.RED]),
            {"start": {"$dt": "2026-10-12T12:00:00+00:00"}, "price": {"$dec": "2"}, "colours": ["red"], "tags": {}},
        ),
        (Guest("Ada", b"s"), {"type": "guest", "firstName": "Ada", "secret": {"$b64": "cw=="}}),
        (Model(at=NOON), {"when": {"$dt": "2026-10-12T12:00:00+00:00"}}),
        (Attrs(Decimal("1.50")), {"x": {"$dec": "1.50"}}),
    ],
)
def test_a_value_is_written_in_tagged_form_that_the_contract_takes(value: object, tagged: object) -> None:
    assert encode(value) == tagged
    canonical(encode(value))


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"items": [{"when": datetime(2026, 1, 1)}]}, "/items/0/when", "without a time zone"),  # noqa: DTZ001
        ([float("nan")], "/0", "NaN"),
        ([float("-inf")], "/0", "infinities"),
        ({"a": Decimal("NaN")}, "/a", "NaN"),
        ({"a": {1: 2}}, "/a", "keys are strings"),
        ([{1, 2}], "/0", "sorted list"),
        ([date(2026, 1, 1)], "/0", "isoformat"),
        ([timedelta(1)], "/0", "number of seconds"),
        (["\ud800"], "/0", "surrogate"),
        ([object()], "/0", "a object cannot be written"),
        ([Hold], "/0", "the class Hold"),
        ([PurePosixPath("a")], "/0", "its text"),
        ({"to": ipaddress.IPv4Address("10.0.0.1")}, "/to", "a IPv4Address cannot be written"),
    ],
)
def test_what_has_no_one_meaning_is_refused_with_its_place(value: object, path: str, reason: str) -> None:
    with pytest.raises(Refusal, match=reason) as caught:
        encode(value)
    assert caught.value.path == path


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append({"again": loop})
    with pytest.raises(Refusal, match="contains itself") as caught:
        encode(loop)
    assert caught.value.path == "/0/again"


def test_an_object_that_contains_itself_is_refused() -> None:
    knot = Knot()
    knot.other = knot
    with pytest.raises(Refusal, match="contains itself") as caught:
        encode(knot)
    assert caught.value.path == "/other"


def test_the_same_list_twice_is_no_cycle() -> None:
    shared = [1]
    assert encode([shared, shared]) == [[1], [1]]


def test_nesting_past_64_is_refused() -> None:
    value: object = 1
    for _ in range(64):
        value = [value]
    encode(value)
    with pytest.raises(Refusal, match="64 deep"):
        encode([value])


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (Hold(NOON, Decimal("2.50"), [Colour.RED], {"a": 1}), Hold),
        ([Hold(NOON, Decimal(2), [])], list[Hold]),
        (Guest("Ada", b"s"), Guest),
        (Model(at=NOON), Model),
        ([Model(at=NOON)], list[Model]),
        (Model(at=NOON), Model | None),
        (None, Model | None),
        (None, None),
        (NOON, datetime),
        (datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))), datetime),
        (Decimal("1.50"), Decimal),
        (SELF_UUID, UUID),
        (b"x", bytes),
        (Colour.RED, Colour),
        (Size.LARGE, Size),
        (Point(1, 2), Point),
        ((1, "a"), tuple[int, str]),
        ({"$x": 2**70}, dict[str, int]),
        (2.0, float),
        (Hold(NOON, Decimal(2), []), Hold | Point),
        ({"a": [1]}, Any),
        ("x", typing.Annotated[str, "note"]),
    ],
)
def test_a_value_comes_back_equal_in_type_and_value(value: object, annotation: object) -> None:
    wire = msgspec.json.decode(msgspec.json.encode(encode(value)))
    again = restore(wire, annotation)
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ([date(2026, 10, 12), time(14, 30, 0, 1)], ["2026-10-12", "14:30:00.000001"]),
        (timedelta(days=1, seconds=1.5), "P1DT1.5S"),
        (datetime(2026, 10, 12, 8, 30), "2026-10-12T08:30:00"),  # noqa: DTZ001 - a result may be naive
        ({10, 9, 2**60}, [9, 10, {"$int": "1152921504606846976"}]),
        ({"b", "a", 1, None}, [1, "a", "b", None]),
        ({frozenset({2, 1}), frozenset()}, [[1, 2], []]),
        ({1: "a", SELF_UUID: "b", Colour.RED: "c"}, {"1": "a", str(SELF_UUID): "b", "red": "c"}),
        ({date(2026, 10, 12): {Decimal("1.50"): 1}}, {"2026-10-12": {"1.50": 1}}),
        (PurePosixPath("/a/b"), "/a/b"),
        ([ipaddress.IPv4Address("10.0.0.1")], ["10.0.0.1"]),
        (pydantic.HttpUrl("https://shop.test/a"), "https://shop.test/a"),
    ],
)
def test_a_result_may_hold_what_its_annotation_reads_back(value: object, written: object) -> None:
    assert encode_result(value) == written
    canonical(encode_result(value))


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({1: "a", "1": "b"}, "", "two of its keys are written as the same text"),
        ({"a": {(1, 2): 3}}, "/a", "is a tuple; keys are strings"),
        ({True: 1}, "", "is a bool; keys are strings"),
        ([lambda: 1], "/0", "a function cannot be written"),
        (iter([1]), "", "a list_iterator cannot be written"),
        ({"of": {"card": pydantic.SecretStr("4111")}}, "/of/card", "a SecretStr cannot be written"),
    ],
)
def test_a_result_that_cannot_be_written_is_refused_with_its_place(value: object, path: str, reason: str) -> None:
    with pytest.raises(Refusal, match=reason) as caught:
        encode_result(value)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        ("x", int, "a str, the annotation says int"),
        ({"start": 1}, Hold, "a dict, the annotation says Hold"),
        ([1], Model, "a list, the annotation says Model"),
        ({"$dt": "soon"}, datetime, "cannot be read"),
        ({"a": 1}, Hold | Receipt, "none of its members fits"),
        ({"total": 1}, Receipt | Refund, "several of its members fit"),
        ({"a": 1}, Model, "Field required - at `at`"),
        ([1], tuple[Receipt | Refund, int], "it has 2 items, the record 1"),
    ],
)
def test_a_value_that_does_not_fit_names_both_types(value: object, annotation: object, message: str) -> None:
    with pytest.raises(Misfit, match=message):
        restore(value, annotation)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.uuids()
    | st.binary()
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "$a", "$$", "$dec"]), inner),
    max_leaves=12,
)


@given(plain)
def test_any_plain_value_survives_the_wire(value: object) -> None:
    assert untag(msgspec.json.decode(msgspec.json.encode(encode(value)))) == value
