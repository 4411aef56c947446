"""Python values in tagged form and back."""

import enum
import typing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twiceshy._encode import encode, encode_result
from twiceshy._restore import Misfit, restore, untag
from twiceshy_contract.canonical import canonical
from twiceshy_contract.refusals import Refusal


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


class Model:
    """What looks like a pydantic model."""

    def __init__(self, when: datetime) -> None:
        self.when = when

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.when == self.when

    def __hash__(self) -> int:
        return hash(self.when)

    def model_dump(self, *, by_alias: bool) -> dict[str, object]:
        """Return the members."""
        assert by_alias
        return {"when": self.when}

    @classmethod
    def model_validate(cls, value: dict[str, Any]) -> "Model":
        """Take the members."""
        return cls(value["when"])


class Attribute(NamedTuple):
    """What attrs says of a member."""

    name: str


class Attrs:
    """What looks like an attrs class."""

    __attrs_attrs__: ClassVar = (Attribute("x"),)

    def __init__(self) -> None:
        self.x = Decimal("1.50")


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
        (Model(NOON), {"when": {"$dt": "2026-10-12T12:00:00+00:00"}}),
        (Attrs(), {"x": {"$dec": "1.50"}}),
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
        (Model(NOON), Model),
        ([Model(NOON)], list[Model]),
        (Model(NOON), Model | None),
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
    ("value", "annotation"),
    [
        ([date(2026, 10, 12)], list[date]),
        ((time(14, 30),), tuple[time]),
        (timedelta(days=1, seconds=1.5), timedelta),
    ],
)
def test_a_result_may_hold_dates_times_and_durations(value: object, annotation: object) -> None:
    assert restore(encode_result(value), annotation) == value


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        ("x", int, "a str, the annotation says int"),
        ({"start": 1}, Hold, "a dict, the annotation says Hold"),
        ([1], Model, "a list, the annotation says Model"),
        ({"$dt": "soon"}, datetime, "cannot be read"),
        ({"a": 1}, Hold | Receipt, "none of its members fits"),
        ({"total": 1}, Receipt | Refund, "several of its members fit"),
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
