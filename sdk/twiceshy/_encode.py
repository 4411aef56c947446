"""Python values in tagged form: what JSON lacks is tagged, what has no one meaning is refused with its place."""

import base64
import dataclasses
import math
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Final
from uuid import UUID

import msgspec

from twiceshy_contract.canonical import MAX_SAFE_INTEGER, utc
from twiceshy_contract.refusals import JsonValue, Refusal, Step
from twiceshy_contract.strict_json import MAX_DEPTH

_HINTS: Final[dict[type, str]] = {
    set: "a set has no order; pass a sorted list",
    frozenset: "a set has no order; pass a sorted list",
    date: "a date names no instant; pass its isoformat() text, or an aware datetime",
    time: "a time of day names no instant; pass its isoformat() text",
    timedelta: "pass a duration as a number of seconds",
    complex: "pass a complex number as its two parts",
}


def encode(value: object, *, depth: int = 1) -> JsonValue:
    """Write a value in tagged form. Raises Refusal with the place of what cannot be taken."""
    return _Encoder(dates=False).value(value, depth)


def encode_result(value: object, *, depth: int = 1) -> JsonValue:
    """Write what a tool returned: as `encode`, and dates, times and durations as ISO 8601 text.

    A result names no intent, and the return annotation tells the text from a text.
    """
    return _Encoder(dates=True).value(value, depth)


class _Encoder:
    """Walk a value and remember the way, for the refusal."""

    __slots__ = ("_dates", "_steps", "_within")

    def __init__(self, *, dates: bool) -> None:
        self._dates = dates
        self._steps: list[Step] = []
        self._within: set[int] = set()

    def value(self, value: object, depth: int) -> JsonValue:  # noqa: PLR0911 - one case a kind of value
        match value:
            case None | bool():
                return value
            case Enum():
                return self.value(value.value, depth)
            case str():
                return self._string(value)
            case int():
                return self._integer(int(value))
            case float():
                return self._float(float(value))
            case dict():
                return self._nested(value, depth, lambda: self._dict(value, depth))
            case list() | tuple():
                return self._nested(value, depth, lambda: self._list(value, depth))
            case _:
                return self._tagged(value) or self._members(value, depth)

    def _string(self, value: str) -> str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise Refusal("a lone surrogate is not a character", self._steps) from error
        return str.__str__(value)

    def _integer(self, value: int) -> JsonValue:
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return value
        try:
            return {"$int": str(value)}
        except ValueError as error:
            raise Refusal("the integer has too many digits", self._steps) from error

    def _float(self, value: float) -> float:
        if not math.isfinite(value):
            raise Refusal("NaN and infinities are not numbers of JSON; pass None or a text", self._steps)
        return value

    def _tagged(self, value: object) -> JsonValue:
        match value:
            case datetime():
                return {"$dt": self._instant(value)}
            case Decimal():
                if not value.is_finite():
                    raise Refusal("NaN and infinities are not numbers of JSON; pass None or a text", self._steps)
                return {"$dec": str(value)}
            case bytes() | bytearray() | memoryview():
                return {"$b64": base64.b64encode(value).decode()}
            case UUID():
                return {"$uuid": str(value)}
            case date() | time() | timedelta() if self._dates:
                return str(msgspec.to_builtins(value))
            case _:
                return None

    def _instant(self, value: datetime) -> str:
        if value.utcoffset() is None:
            raise Refusal(
                "a datetime without a time zone names no instant; give it one, for instance value.replace(tzinfo=UTC)",
                self._steps,
            )
        text = value.isoformat()
        try:
            utc(text)
        except (ValueError, OverflowError) as error:
            raise Refusal(str(error), self._steps) from error
        return text

    def _nested(self, value: object, depth: int, write: Callable[[], JsonValue]) -> JsonValue:
        if id(value) in self._within:
            raise Refusal("the value contains itself", self._steps)
        if depth > MAX_DEPTH:
            raise Refusal(f"nested more than {MAX_DEPTH} deep", self._steps)
        self._within.add(id(value))
        written = write()
        self._within.discard(id(value))
        return written

    def _dict(self, value: dict[object, object], depth: int) -> JsonValue:
        written: dict[str, JsonValue] = {}
        for key, member in value.items():
            if not isinstance(key, str):
                raise Refusal(f"the key {key!r} is a {type(key).__name__}; keys are strings", self._steps)
            self._steps.append(key)
            name = self._string(key)
            written[f"${name}" if name.startswith("$") else name] = self.value(member, depth + 1)
            self._steps.pop()
        return written

    def _list(self, items: Iterable[object], depth: int) -> JsonValue:
        written: list[JsonValue] = []
        for index, item in enumerate(items):
            self._steps.append(index)
            written.append(self.value(item, depth + 1))
            self._steps.pop()
        return written

    def _members(self, value: object, depth: int) -> JsonValue:
        """Write an object of a declared shape as its members; refuse any other."""
        if isinstance(value, type):
            raise Refusal(f"the class {value.__name__} is not a value", self._steps)
        if isinstance(value, msgspec.Struct):
            return self.value(_struct_members(value), depth)
        if dataclasses.is_dataclass(value):
            return self.value({f.name: getattr(value, f.name) for f in dataclasses.fields(value)}, depth)
        if callable(dump := getattr(value, "model_dump", None)):
            return self.value(dump(by_alias=True), depth)
        attributes = getattr(type(value), "__attrs_attrs__", None)
        if attributes is not None:
            return self.value({a.name: getattr(value, a.name) for a in attributes}, depth)
        raise Refusal(_why_not(value), self._steps)


def _struct_members(value: msgspec.Struct) -> object:
    config = value.__struct_config__
    members = {field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(value)}
    given = {name: member for name, member in members.items() if member is not msgspec.UNSET}
    if config.array_like:
        return list(given.values()) if config.tag is None else [config.tag, *given.values()]
    return given if config.tag is None else {str(config.tag_field): config.tag, **given}


def _why_not(value: object) -> str:
    for kind in type(value).__mro__:
        if kind in _HINTS:
            return _HINTS[kind]
    return (
        f"a {type(value).__qualname__} cannot be written as JSON; pass plain values, a dataclass, a msgspec "
        "Struct, a pydantic model or an attrs class"
    )
