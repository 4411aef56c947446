"""How structs travel: strict reading of bodies into wire structs, and the names of headers."""

import re
from typing import Final, NewType, TypeVar

import msgspec
import msgspec.inspect

from twiceshy_contract.refusals import JsonValue, Refusal, Step
from twiceshy_contract.strict_json import ENVELOPE_DEPTH, MAX_DEPTH, decode

CONTRACT_VERSION: Final = 2
"""Grows with every field that is added to a wire struct."""

CONTRACT_HEADER: Final = "Twiceshy-Contract"
REPLAYED_HEADER: Final = "Idempotent-Replayed"
KEY_HEADER: Final = "Idempotency-Key"
REQUEST_ID_HEADER: Final = "X-Request-Id"
PROBLEM_JSON: Final = "application/problem+json"

EffectKey = NewType("EffectKey", str)
"""64 lower-case hex digits: what names an effect on the wire."""

_UNKNOWN: Final = "this field is not known"
_MessageT = TypeVar("_MessageT", bound=msgspec.Struct)
_AT = re.compile(r" - at `(?P<place>.*)`\Z", re.DOTALL)
_FIELD = re.compile(r"(?:missing required field|contains unknown field) `(?P<field>.*)`\Z", re.DOTALL)
_PLACE = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")


def read(body: bytes, message: type[_MessageT], *, newer: bool = False) -> _MessageT:
    """Decode a body strictly: no coercion, no unknown field. Raises Refusal with the place.

    `newer` says that the sender speaks a later contract version, whose fields are then passed over.
    """
    value = decode(body, max_depth=MAX_DEPTH + ENVELOPE_DEPTH)
    return convert(value, message, newer=newer)


def convert(value: JsonValue, message: type[_MessageT], *, newer: bool = False) -> _MessageT:
    """Turn decoded JSON into a wire struct. Raises Refusal with the place."""
    if newer:
        value = _known(value, msgspec.inspect.type_info(message))
    try:
        return msgspec.convert(value, message, strict=True)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from error


def _known(value: JsonValue, kind: msgspec.inspect.Type) -> JsonValue:
    """Return the value without the members that no struct of its type has."""
    match kind, value:
        case msgspec.inspect.StructType(), dict():
            fields = {field.encode_name: field.type for field in kind.fields}
            return {name: _known(member, fields[name]) for name, member in value.items() if name in fields}
        case msgspec.inspect.UnionType(), _:
            fitting = [member for member in kind.types if _may_be(value, member)]
            return _known(value, fitting[0]) if len(fitting) == 1 else value
        case msgspec.inspect.DictType(), dict():
            return {name: _known(member, kind.value_type) for name, member in value.items()}
        case ((msgspec.inspect.VarTupleType() | msgspec.inspect.ListType()), list()):
            return [_known(item, kind.item_type) for item in value]
        case _:
            return value


def _may_be(value: JsonValue, kind: msgspec.inspect.Type) -> bool:
    """Say whether a value has the JSON form of a type that can hold members."""
    if isinstance(value, dict):
        return isinstance(kind, (msgspec.inspect.StructType, msgspec.inspect.DictType))
    return isinstance(value, list) and isinstance(kind, (msgspec.inspect.VarTupleType, msgspec.inspect.ListType))


def _refusal(text: str) -> Refusal:
    at = _AT.search(text)
    reason = text[: at.start()] if at else text
    places = _PLACE.finditer(at["place"]) if at else ()
    steps: list[Step] = [part["name"] or part["index"] for part in places]
    field = _FIELD.search(reason)
    if field:
        steps.append(field["field"])
        reason = "this field is missing" if "missing" in reason else _UNKNOWN
    return Refusal(reason.replace("`", ""), steps)
