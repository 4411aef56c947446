"""Canonical form: two calls that mean the same have the same bytes, and no two others do.

The form is RFC 8785 (JSON Canonicalization Scheme) over *tagged* JSON. What JSON lacks is written as an
object with one key: `$int`, `$dec`, `$dt`, `$b64`, `$uuid`. A user's own key that begins with `$` is written
with one `$` more. Integers beyond 2^53-1 in size become `$int`, so that 2^53 and 2^53+1 stay apart where a
double would merge them.

Nearly every value takes the fast path: msgspec's sorted encoder writes the same bytes as RFC 8785 except for
unusual floats and for keys outside the Basic Multilingual Plane, which RFC 8785 orders by UTF-16. Those take
the `rfc8785` package. A property test holds both equal.
"""

import base64
import binascii
import hashlib
import math
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec
import rfc8785

from twiceshy_contract.refusals import JsonValue, Refusal, Step
from twiceshy_contract.strict_json import MAX_DEPTH, MAX_DIGITS

MAX_SAFE_INTEGER: Final = 2**53 - 1
MAX_BYTES: Final = 2**20
"""The largest body, and so the largest value, that the service takes."""

_sorted_encoder = msgspec.json.Encoder(order="sorted")
_UNUSUAL = re.compile(rb'"\$|\\|[0-9]{16}|[0-9][.eE]|[\x00-\x1f\x7f\xf0-\xff]')
"""What may be a tag, an escape, an integer beyond 2^53, a float, or a character beyond the Basic Multilingual Plane."""
_plain_floats = (1e-4, 1e15)
_INT = re.compile(rf"-?(0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})\Z")
_DECIMAL = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_DATE_TIME = re.compile(
    r"(?P<date>[0-9]{4}(?:-[0-9]{2}-[0-9]{2}|[0-9]{4}|-?W[0-9]{2}(?:-?[1-7])?))"
    r"(?:[T ](?P<time>[0-9]{2}(?::[0-9]{2}(?::[0-9]{2})?|[0-9]{2}(?:[0-9]{2})?)?)(?:[.,](?P<fraction>[0-9]+))?"
    r"(?P<offset>Z|[+-][0-9]{2}(?::?[0-5][0-9](?::?[0-5][0-9])?)?)?)?"
)
"""The date-times of ISO 8601 whose meaning does not hang on who reads them."""
_UUID = re.compile(
    r"(?:urn:uuid:)?(?:(?P<open>\{)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?(open)\})"
    r"|[0-9a-f]{32})",
    re.IGNORECASE | re.ASCII,
)


def canonical(value: object) -> bytes:
    """Write a tagged JSON value in canonical form. Raises Refusal with the place of what cannot be taken."""
    normal = _Normaliser()
    tree = normal.value(value, 1)
    if normal.is_plain:
        return _sorted_encoder.encode(tree)
    return rfc8785.dumps(tree)


def canonical_of_json(value: JsonValue) -> bytes:
    """Write what was decoded from JSON as `canonical` does, in a quicker way. Raises Refusal.

    Where nothing in the text could be written otherwise, it is canonical as msgspec's sorted encoder writes it.
    """
    text = _sorted_encoder.encode(value)
    is_usual = _UNUSUAL.search(text) is None and text.count(b"{") + text.count(b"[") <= MAX_DEPTH
    return text if is_usual else canonical(value)


def digest(value: object) -> bytes:
    """Return the SHA-256 of the canonical form: 32 bytes."""
    return hashlib.sha256(canonical(value)).digest()


def normal_form(value: object) -> JsonValue:
    """Return the value as its canonical form reads: tags in their one spelling, 1.0 as 1."""
    return _Normaliser().value(value, 1)


def is_tag(value: JsonValue) -> bool:
    """Say whether a value in normal form is a tagged one, which has no members."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    (key,) = value
    return key[:1] == "$" and key[:2] != "$$"


class _Normaliser:
    """Rebuild a tagged value in its one spelling, and note whether the fast path may write it."""

    __slots__ = ("_steps", "is_plain")

    def __init__(self) -> None:
        self.is_plain = True
        self._steps: list[Step] = []

    def value(self, value: object, depth: int) -> JsonValue:
        match value:
            case None | bool():
                return value
            case str():
                return self._string(value)
            case int():
                return value if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else {"$int": self._digits(value)}
            case float():
                return self._float(value)
            case list() | tuple():
                return self._list(value, depth)
            case dict():
                return self._dict(value, depth)
            case _:
                raise Refusal(f"a {type(value).__name__} is not JSON; tag it first", self._steps)

    def _string(self, value: str) -> str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise Refusal("a lone surrogate is not a character", self._steps) from error
        return str(value)

    def _digits(self, value: int) -> str:
        try:
            return str(value)
        except ValueError as error:
            raise Refusal(f"the integer has more than {MAX_DIGITS} digits", self._steps) from error

    def _float(self, value: float) -> JsonValue:
        if value.is_integer() and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return int(value)
        if not _plain_floats[0] <= abs(value) <= _plain_floats[1]:
            if not math.isfinite(value):
                raise Refusal("NaN and infinities are not numbers of JSON", self._steps)
            self.is_plain = False
        return value

    def _list(self, items: list[object] | tuple[object, ...], depth: int) -> JsonValue:
        self._enter(depth)
        steps = self._steps
        result: list[JsonValue] = []
        for index, item in enumerate(items):
            steps.append(index)
            result.append(self.value(item, depth + 1))
            steps.pop()
        return result

    def _dict(self, members: dict[object, object], depth: int) -> JsonValue:
        self._enter(depth)
        steps = self._steps
        result: dict[str, JsonValue] = {}
        for key, member in members.items():
            if not isinstance(key, str):
                raise Refusal(f"the key {key!r} is a {type(key).__name__}; JSON keys are strings", steps)
            steps.append(key)
            if key[:1] == "$" and key[:2] != "$$":
                tagged = self._tag(key, member, len(members))
                steps.pop()
                return tagged
            if not key.isascii():
                self._string(key)
                if max(key) > "\uffff":
                    self.is_plain = False
            result[key] = self.value(member, depth + 1)
            steps.pop()
        return result

    def _enter(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Refusal(f"nested more than {MAX_DEPTH} deep", self._steps)

    def _tag(self, key: str, payload: object, members: int) -> JsonValue:
        try:
            return spelled(key, payload, members)
        except ValueError as error:
            raise Refusal(str(error), self._steps) from error


def spelled(tag: str, payload: object, members: int = 1) -> JsonValue:
    """Write a tagged value, which is all of its object's `members`, in its one spelling. Raises ValueError."""
    spell = _TAGS.get(tag)
    if spell is None:
        raise ValueError(f"{tag} is not a tag; write a key of your own as ${tag}")
    if members != 1:
        raise ValueError(f"the tag {tag} must be the only key of its object")
    if not isinstance(payload, str):
        raise ValueError(f"the tag {tag} holds a string")
    return spell(payload)


def _spell_int(text: str) -> JsonValue:
    if not _INT.match(text):
        raise ValueError(f"a $int is decimal digits without leading zeros, at most {MAX_DIGITS}")
    value = int(text)
    return value if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else {"$int": str(value)}


def _spell_decimal(text: str) -> JsonValue:
    return {"$dec": decimal(text)}


def decimal(text: str) -> str:
    """Write a decimal number in its one spelling: `12.5` for `12.50`. Raises ValueError where it is not one."""
    if not _DECIMAL.match(text):
        raise ValueError("a $dec is a finite decimal number such as 12.50 or 1E-7")
    try:
        sign, digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation as error:
        raise ValueError("the exponent of this $dec is out of all bounds") from error
    significant = "".join(map(str, digits)).lstrip("0")
    shortened = significant.rstrip("0")
    if not shortened:
        return "0"
    power = int(exponent) + len(significant) - len(shortened)
    return _plain_decimal("-" if sign else "", shortened, power)


def _plain_decimal(sign: str, digits: str, power: int) -> str:
    """Write digits·10^power: plainly while it is short, else with an exponent."""
    if abs(power) > 40:
        return f"{sign}{digits}E{power:+d}"
    if power >= 0:
        return f"{sign}{digits}{'0' * power}"
    whole = digits[:power] or "0"
    return f"{sign}{whole}.{digits[power:].rjust(-power, '0')}"


def _spell_datetime(text: str) -> JsonValue:
    return {"$dt": utc(text)}


def utc(text: str) -> str:
    """Write an ISO 8601 date-time with offset as UTC, `2026-10-12T14:00:00Z`. Raises ValueError, naive or unread."""
    written = _DATE_TIME.fullmatch(text.upper())
    if written is None:
        raise ValueError("this is not an ISO 8601 date-time such as 2026-10-12T14:00:00Z")
    if written["time"] is None:
        raise ValueError("a date alone is not a date-time")
    if written["offset"] is None:
        raise ValueError("a date-time without an offset names no instant; add 'Z' or an offset")
    fraction = (written["fraction"] or "").rstrip("0")
    if len(fraction) > 6:
        raise ValueError("a date-time has at most six digits after the second")
    time = written["time"].replace(":", "")
    if fraction and len(time) < 6:
        raise ValueError("a date-time has a fraction of the second alone; write the seconds")
    if time[:2] == "24" or time[4:] == "60":
        raise ValueError("a date-time has hours 00 to 23 and seconds 00 to 59; write the instant that follows")
    return _in_utc(f"{written['date']}T{time}{'.' + fraction if fraction else ''}{written['offset']}")


def _in_utc(text: str) -> str:
    try:
        value = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("this date-time is in no calendar") from error
    try:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError as error:
        raise ValueError("in UTC this date-time is outside the years 1 to 9999") from error


def _spell_bytes(text: str) -> JsonValue:
    try:
        value = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("a $b64 is standard base64 with padding") from error
    return {"$b64": base64.b64encode(value).decode()}


def _spell_uuid(text: str) -> JsonValue:
    if _UUID.fullmatch(text) is None:
        raise ValueError("a $uuid is 32 hexadecimal digits, such as 0192f5b0-7c3a-7000-8000-000000000001")
    return {"$uuid": str(uuid.UUID(text.lower()))}


_TAGS: Final[dict[str, Callable[[str], JsonValue]]] = {
    "$int": _spell_int,
    "$dec": _spell_decimal,
    "$dt": _spell_datetime,
    "$b64": _spell_bytes,
    "$uuid": _spell_uuid,
}
