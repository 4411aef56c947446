"""Python values in tagged form: what JSON lacks is tagged, what has no one meaning is refused with its place.

Arguments name an intent, so only what names one thing is taken. A result names none, and its return annotation
reads it back: more is written there, as text that the annotation tells from a text.
"""

import base64
import dataclasses
import ipaddress
import math
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, TypeGuard
from uuid import UUID

import msgspec

from twiceshy_contract.canonical import MAX_SAFE_INTEGER, utc
from twiceshy_contract.refusals import JsonValue, Refusal, Step
from twiceshy_contract.strict_json import MAX_DEPTH

TEXTS: Final = (
    PurePath, ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
    ipaddress.IPv4Interface, ipaddress.IPv6Interface,
)  # fmt: skip
"""Types of the standard library whose text says everything, and which take it back."""

_HINTS: Final[dict[type, str]] = {
    set: "a set has no order; pass a sorted list",
    frozenset: "a set has no order; pass a sorted list",
    date: "a date names no instant; pass its isoformat() text, or an aware datetime",
    time: "a time of day names no instant; pass its isoformat() text",
    timedelta: "pass a duration as a number of seconds",
    complex: "pass a complex number as its two parts",
    PurePath: "pass a path as its text",
}


def encode(value: object, *, depth: int = 1) -> JsonValue:
    """Write a value in tagged form. Raises Refusal with the place of what cannot be taken."""
    return value if _is_written(value) else _Encoder().value(value, depth)


def encode_result(value: object, *, depth: int = 1) -> JsonValue:
    """Write what a tool returned: as `encode`, and more kinds of values as text or list.

    Dates, times, durations and naive datetimes are ISO 8601 text, paths and addresses their own text, sets sorted
    lists, and keys that are no strings their text.
    """
    return _ResultEncoder().value(value, depth)


def _is_written(value: object) -> TypeGuard[str | int | None]:
    """Say whether a value is its own tagged form at a glance."""
    if type(value) is str:
        return value.isascii()
    if type(value) is int:
        return -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER
    return value is None or value is True or value is False


class _Encoder:
    """Walk a value and remember the way, for the refusal."""

    __slots__ = ("_steps", "_within")

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._within: set[int] = set()

    def value(self, value: object, depth: int) -> JsonValue:  # noqa: PLR0911 - one case a kind of value
        if _is_written(value):
            return value
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
                return self._tagged(value) or self._untagged(value, depth)

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
                return self._instant(value)
            case Decimal():
                if not value.is_finite():
                    raise Refusal("NaN and infinities are not numbers of JSON; pass None or a text", self._steps)
                return {"$dec": str(value)}
            case bytes() | bytearray() | memoryview():
                return {"$b64": base64.b64encode(value).decode()}
            case UUID():
                return {"$uuid": str(value)}
            case _:
                return None

    def _instant(self, value: datetime) -> JsonValue:
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
        return {"$dt": text}

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
            name = self._string(key if isinstance(key, str) else self._key(key))
            self._steps.append(name)
            written[f"${name}" if name.startswith("$") else name] = self.value(member, depth + 1)
            self._steps.pop()
        if len(written) != len(value):
            raise Refusal("two of its keys are written as the same text", self._steps)
        return written

    def _key(self, key: object) -> str:
        raise Refusal(f"the key {key!r} is a {type(key).__name__}; keys are strings", self._steps)

    def _list(self, items: Iterable[object], depth: int) -> list[JsonValue]:
        written: list[JsonValue] = []
        for index, item in enumerate(items):
            self._steps.append(index)
            written.append(self.value(item, depth + 1))
            self._steps.pop()
        return written

    def _untagged(self, value: object, depth: int) -> JsonValue:
        """Write an object of a declared shape as its members; refuse any other."""
        if isinstance(value, type):
            raise Refusal(f"the class {value.__name__} is not a value", self._steps)
        if hasattr(type(value), "model_fields") and hasattr(value, "__pydantic_serializer__"):
            return self._nested(value, depth, lambda: self._model(value, depth))
        members = _members_of(value)
        if members is None:
            raise Refusal(_why_not(value), self._steps)
        return self._nested(value, depth, lambda: self.value(members, depth))

    def _model(self, value: Any, depth: int) -> JsonValue:
        """Write a pydantic model as what it can be made from again: its members as they are, by their own names.

        What it computes is left out, and so are its serialisers, which write for readers of their own; only where a
        member cannot be written as it is, the model's own dump is asked.
        """
        steps, within = [*self._steps], {*self._within}
        try:
            return self.value(_model_members(value), depth)
        except Refusal:
            self._steps, self._within = steps, within
            return self.value(value.model_dump(by_alias=False, round_trip=True, warnings=False), depth)


class _ResultEncoder(_Encoder):
    """Write also what only an annotation can read back."""

    __slots__ = ()

    def _untagged(self, value: object, depth: int) -> JsonValue:
        match value:
            case set() | frozenset():
                return self._nested(value, depth, lambda: sorted(self._list(value, depth), key=_place))
            case date() | time() | timedelta():
                return str(msgspec.to_builtins(value))
            case _:
                text = _text_of(value)
                return super()._untagged(value, depth) if text is None else self._string(text)

    def _instant(self, value: datetime) -> JsonValue:
        return value.isoformat() if value.utcoffset() is None else super()._instant(value)

    def _key(self, key: object) -> str:
        match key:
            case Enum():
                return key.value if isinstance(key.value, str) else self._key(key.value)
            case bool():
                return super()._key(key)
            case int() | Decimal() | UUID():
                return str(key)
            case date() | time():
                return key.isoformat()
            case _:
                return super()._key(key)


def _members_of(value: object) -> object:
    """Return the members of an object of a declared shape, None for any other."""
    if isinstance(value, msgspec.Struct):
        return _struct_members(value)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    attributes = getattr(type(value), "__attrs_attrs__", None)
    return None if attributes is None else {each.name: getattr(value, each.name) for each in attributes}


def _model_members(value: Any) -> object:
    """Return the members of a pydantic model. Those that its author excludes from every dump stay out of the record."""
    fields = type(value).model_fields
    if "root" in fields:
        return value.root
    kept = {name for name, field in fields.items() if field.exclude is not True}
    return {name: member for name, member in vars(value).items() if name in kept} | (value.model_extra or {})


def _struct_members(value: msgspec.Struct) -> object:
    config = value.__struct_config__
    members = {field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(value)}
    given = {name: member for name, member in members.items() if member is not msgspec.UNSET}
    if config.array_like:
        return list(given.values()) if config.tag is None else [config.tag, *given.values()]
    return given if config.tag is None else {str(config.tag_field): config.tag, **given}


def _text_of(value: object) -> str | None:
    """Return the text of a value whose text says everything: a path, an address, a URL of pydantic."""
    is_text = isinstance(value, TEXTS) or any(kind.__module__ == "pydantic.networks" for kind in type(value).__mro__)
    return str(value) if is_text else None


def _place(item: JsonValue) -> tuple[bool, float, bytes]:
    """Return where an item of a set stands: numbers by their size, then everything else by its text."""
    if isinstance(item, int | float):
        return (False, item, b"")
    return (True, 0, msgspec.json.encode(item, order="sorted"))


def _why_not(value: object) -> str:
    for kind in type(value).__mro__:
        if kind in _HINTS:
            return _HINTS[kind]
    return (
        f"a {type(value).__qualname__} cannot be written as JSON; pass plain values, a dataclass, a msgspec "
        "Struct, a pydantic model or an attrs class"
    )
