"""One value of each kind of type that the documentation says comes back: `TABLE`, row by row."""

import enum
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
from pydantic.dataclasses import dataclass as pydantic_dataclass

T = TypeVar("T")
HoldId = NewType("HoldId", int)
NOON = datetime(2026, 10, 12, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
BERLIN = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
NAIVE = datetime(2026, 10, 12, 12, 0, 0, 123456)  # noqa: DTZ001 - a result may be naive
SOME_UUID = UUID("12345678-1234-5678-1234-567812345678")


class Colour(enum.StrEnum):
    """Choices that are texts too."""

    RED = "red"


class Size(enum.IntEnum):
    """Choices that are numbers too."""

    LARGE = 3


class Corner(enum.Enum):
    """Choices that are neither."""

    TOP_LEFT = (0, 0)
    BOTTOM_RIGHT = (1, 1)


class Rights(enum.Flag):
    """Choices that go together."""

    READ = 1
    WRITE = 2


class Point(NamedTuple):
    """Two numbers."""

    x: int
    y: Decimal


class Options(TypedDict):
    """A dict with known keys."""

    when: datetime
    note: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Hold:
    """A frozen dataclass with slots."""

    start: datetime
    price: Decimal
    colours: list[Colour] = field(default_factory=list)
    by_day: dict[date, tuple[Size, ...]] = field(default_factory=dict)


@dataclass
class Refund:
    """A dataclass that looks like the next."""

    total: int


@dataclass
class Charge:
    """A dataclass that looks like the one before."""

    total: int


@dataclass
class Booking(Refund):
    """One that inherits, nests, and has unions that no library tells apart."""

    hold: Hold | None = None
    history: list[Hold | Point | str] = field(default_factory=list)


@dataclass
class Scaled:
    """A dataclass whose constructor takes what is no member, and whose member it does not take."""

    amount: int
    factor: InitVar[int]
    scaled: int = field(init=False)

    def __post_init__(self, factor: int) -> None:
        self.scaled = self.amount * factor


@dataclass
class Page(Generic[T]):
    """A generic dataclass."""

    items: list[T]


@attrs.frozen
class Account:
    """An attrs class with a private name, a converter and a member that the constructor does not take."""

    _owner: str
    limit: Decimal = attrs.field(converter=Decimal)
    opened: datetime = attrs.field(init=False, default=NOON)


class Guest(msgspec.Struct, frozen=True, rename="camel", tag="guest"):
    """A struct with other names on the wire."""

    first_name: str
    secret: bytes


class Staff(msgspec.Struct, frozen=True, tag="staff", array_like=False):
    """The other member of a tagged union."""

    first_name: str


class Pair(msgspec.Struct, frozen=True, array_like=True):
    """A struct that is a list on the wire."""

    left: int
    right: UUID


class Address(pydantic.BaseModel):
    """A model whose names on the wire are others, and which computes a member."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    street_name: str = pydantic.Field(alias="streetName")
    zip_code: str = pydantic.Field(validation_alias=pydantic.AliasPath("zip", "code"), serialization_alias="plz")

    @pydantic.computed_field
    def label(self) -> str:
        """Return one line."""
        return f"{self.street_name}, {self.zip_code}"


class Cat(pydantic.BaseModel):
    """One member of a discriminated union."""

    kind: Literal["cat"] = "cat"
    born: date


class Dog(pydantic.BaseModel):
    """The other."""

    kind: Literal["dog"] = "dog"
    born: date


Pet = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


class Order(pydantic.BaseModel):
    """A model with members of every kind."""

    at: datetime
    day: date
    lasts: timedelta
    opens: time
    number: UUID
    seal: bytes
    price: Decimal
    colour: Colour
    tags: set[int]
    by_day: dict[date, Decimal]
    page: pydantic.HttpUrl
    host: ipaddress.IPv4Address
    file: Path
    pets: list[Pet]
    address: Address | None
    hold: Hold
    either: int | str | Decimal


class Box(pydantic.BaseModel, Generic[T]):
    """A generic model."""

    content: T


class Names(pydantic.RootModel[list[str]]):
    """A model that is a list."""


@pydantic_dataclass
class Seat:
    """A dataclass of pydantic, with an alias."""

    row_number: int = pydantic.Field(alias="rowNumber", gt=0)
    price: Decimal = Decimal("9.90")


@pydantic_dataclass
class Stretched:
    """A dataclass of pydantic whose constructor takes what is no member."""

    amount: int
    factor: InitVar[int]
    scaled: int = field(init=False, default=0)

    def __post_init__(self, factor: int) -> None:
        self.scaled = self.amount * factor


HOLD = Hold(NOON, Decimal("2.50"), [Colour.RED], {date(2026, 10, 12): (Size.LARGE,)})
ADDRESS = Address.model_validate({"streetName": "Main", "zip": {"code": "10115"}})
ORDER = Order(
    at=NOON, day=date(2026, 10, 12), lasts=timedelta(days=-1, microseconds=7), opens=time(8, 30, 0, 5, tzinfo=UTC),
    number=SOME_UUID, seal=b"\x00\xff", price=Decimal("1.50"), colour=Colour.RED,
    tags={3, 1, 2}, by_day={date(2026, 10, 12): Decimal("0.10")}, page=pydantic.HttpUrl("https://shop.test/a"),
    host=ipaddress.IPv4Address("10.0.0.1"), file=Path("a/1.pdf"), pets=[Dog(born=date(2020, 1, 1))], address=ADDRESS,
    hold=HOLD, either=Decimal("1.0"),
)  # fmt: skip

TABLE: list[tuple[str, Any, object]] = [
    ("dataclass", Hold, HOLD),
    ("dataclass", Booking, Booking(7, HOLD, [HOLD, Point(1, Decimal("1.0")), "paid"])),
    ("dataclass", Scaled, Scaled(2, 5)),
    ("dataclass", Page[Hold], Page([HOLD])),
    ("attrs class", Account, Account("Ada", "10.00")),
    ("msgspec Struct", Guest, Guest("Ada", b"s")),
    ("msgspec Struct", list[Guest | Staff], [Staff("Bob"), Guest("Ada", b"s")]),
    ("msgspec Struct", Pair, Pair(1, SOME_UUID)),
    ("pydantic model", Order, ORDER),
    ("pydantic model", list[Pet], [Cat(born=date(2020, 1, 1)), Dog(born=date(2021, 1, 1))]),
    ("pydantic model", Box[Address], Box[Address](content=ADDRESS)),
    ("pydantic model", Names, Names(["a", "b"])),
    ("pydantic model", dict[str, Address | None], {"a": ADDRESS, "b": None}),
    ("pydantic model", tuple[Address, Guest, Hold], (ADDRESS, Guest("Ada", b"s"), HOLD)),
    ("pydantic dataclass", Seat, Seat(rowNumber=3)),
    ("pydantic dataclass", list[Stretched], [Stretched(2, 5)]),
    ("`NamedTuple`", Point, Point(1, Decimal("1.50"))),
    ("`TypedDict`", Options, {"when": NOON}),
    ("`Enum`, `IntEnum`, `StrEnum`, `Flag`", Colour, Colour.RED),
    ("`Enum`, `IntEnum`, `StrEnum`, `Flag`", list[Size], [Size.LARGE]),
    ("`Enum`, `IntEnum`, `StrEnum`, `Flag`", Corner, Corner.TOP_LEFT),
    ("`Enum`, `IntEnum`, `StrEnum`, `Flag`", Rights, Rights.READ | Rights.WRITE),
    ("`datetime`, with or without a time zone", datetime, NOON),
    ("`datetime`, with or without a time zone", datetime, BERLIN),
    ("`datetime`, with or without a time zone", datetime, NAIVE),
    ("`date`, `time`, `timedelta`", date, date(2026, 10, 12)),
    ("`date`, `time`, `timedelta`", time, time(14, 30, 0, 7)),
    ("`date`, `time`, `timedelta`", timedelta, timedelta(days=-3, microseconds=1)),
    ("`Decimal`, `UUID`, `bytes`, `bytearray`", Decimal, Decimal("1.500")),
    ("`Decimal`, `UUID`, `bytes`, `bytearray`", UUID, SOME_UUID),
    ("`Decimal`, `UUID`, `bytes`, `bytearray`", bytes, b"\x00\xff"),
    ("`Decimal`, `UUID`, `bytes`, `bytearray`", bytearray, bytearray(b"a")),
    ("`tuple`, `set`, `frozenset`", tuple[int, ...], (1, 2)),
    ("`tuple`, `set`, `frozenset`", tuple[Hold, str], (HOLD, "a")),
    ("`tuple`, `set`, `frozenset`", set[str], {"b", "a"}),
    ("`tuple`, `set`, `frozenset`", frozenset[tuple[int, Colour]], frozenset({(1, Colour.RED)})),
    ("`list`, `dict`, `Sequence`, `Mapping`", dict[int, list[Hold]], {1: [HOLD], 2**60: []}),
    ("`list`, `dict`, `Sequence`, `Mapping`", dict[UUID, set[int]], {SOME_UUID: {2, 1}}),
    ("`list`, `dict`, `Sequence`, `Mapping`", Mapping[Colour, Sequence[Decimal]], {Colour.RED: [Decimal(1)]}),
    ("`list`, `dict`, `Sequence`, `Mapping`", dict[str, int], {"$dec": 2**70, "": 0}),
    ("`Path`, `IPv4Address` and their like", Path, Path("a/b")),
    ("`Path`, `IPv4Address` and their like", list[ipaddress.IPv6Network], [ipaddress.IPv6Network("::/64")]),
    ("`Optional`, unions", Hold | None, None),
    ("`Optional`, unions", Hold | None, HOLD),
    ("`Optional`, unions", Charge | Refund, Refund(1)),
    ("`Optional`, unions", datetime | date | str, date(2026, 10, 12)),
    ("`Optional`, unions", list[Hold | Booking | None], [HOLD, Booking(1), None]),
    ("`Optional`, unions", int | Decimal | str | None, Decimal("1.0")),
    ("`Literal`, `NewType`, `Annotated`", Literal["a", 1, Colour.RED], "a"),
    ("`Literal`, `NewType`, `Annotated`", list[HoldId], [HoldId(3)]),
    ("`Literal`, `NewType`, `Annotated`", Annotated[list[Annotated[Hold, "note"]], "note"], [HOLD]),
    ("a subclass of what is annotated", Refund, Booking(7, HOLD)),
    ("a subclass of what is annotated", Any, {"plain": [1, 2.5, "a", None, True, Decimal("1.0")]}),
]
"""The row of the documentation's table, the return annotation, and what the tool returned."""
