"""How structs travel: strict reading of bodies into wire structs, and the names of headers."""

import re
from typing import Final, NewType, TypeVar

import msgspec
import msgspec.inspect

from twiceshy_contract.names import FACT_FORM, NAME_FORM, NO_CONTROL, REASON_FORM
from twiceshy_contract.policies import POINTER_FORM
from twiceshy_contract.refusals import JsonValue, Refusal, Step
from twiceshy_contract.strict_json import ENVELOPE_DEPTH, MAX_DEPTH, decode

CONTRACT_VERSION: Final = 5
"""Grows with every field that is added to a wire struct."""

CONTRACT_HEADER: Final = "Twiceshy-Contract"
REPLAYED_HEADER: Final = "Idempotent-Replayed"
KEY_HEADER: Final = "Idempotency-Key"
REQUEST_ID_HEADER: Final = "X-Request-Id"
PROBLEM_JSON: Final = "application/problem+json"

EffectKey = NewType("EffectKey", str)
"""64 lower-case hex digits: what names an effect on the wire."""

_SOME_MEMBER: Final = "..."
_A_KEY: Final = "key` in `"
_IN_WORDS: Final = {
    f"Expected `str` matching regex {POINTER_FORM!r}": "this is not a JSON Pointer, such as `/title` or `/lines/*/sku`",
    f"Expected `str` matching regex {NAME_FORM!r}": "this is not a name: it has no control characters and no slashes",
    f"Expected `str` matching regex {REASON_FORM!r}": "say why, in words: this is blank, or has a null character",
    f"Expected `str` matching regex {NO_CONTROL!r}": "this text has control characters",
    f"Expected `str` matching regex {FACT_FORM!r}": (
        "this is not the name of a fact: it has lower-case letters, digits and underscores, and begins with a letter"
    ),
}
_MOST_TRIED: Final = 2000
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
        said = str(error)
        raise _named(value, refusal_of(said), message, said) from error


def _named(value: JsonValue, refusal: Refusal, message: type[msgspec.Struct], said: str) -> Refusal:
    """Return a refusal with the names of those members of which the decoder says no more than `...`."""
    named: list[Step] = []
    for step in refusal.steps:
        name = step
        if step == _SOME_MEMBER:
            name, value = _failing_member(value, named, message, said)
        named.append(name)
    return Refusal(refusal.reason, named)


def _failing_member(
    value: JsonValue, place: list[Step], message: type[msgspec.Struct], said: str
) -> tuple[Step, JsonValue]:
    """Find the member of an object that fails without the others too; return its name, and the value without them."""
    for name in _members(value, place)[:_MOST_TRIED]:
        alone = _with_only(value, place, name)
        try:
            msgspec.convert(alone, message, strict=True)
        except msgspec.ValidationError as error:
            if str(error) == said:
                return name, alone
    return _SOME_MEMBER, value


def _members(value: JsonValue, place: list[Step]) -> list[str]:
    for step in place:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list):
            value = value[int(step)]
    return [*value] if isinstance(value, dict) else []


def _with_only(value: JsonValue, place: list[Step], name: str) -> JsonValue:
    """Return a value whose object at a place has one member."""
    if not place and isinstance(value, dict):
        return {name: value[name]}
    step, *rest = place
    if isinstance(value, dict):
        return {**value, str(step): _with_only(value[str(step)], rest, name)}
    if isinstance(value, list):
        return [_with_only(item, rest, name) if at == int(step) else item for at, item in enumerate(value)]
    return value


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


def refusal_of(text: str) -> Refusal:
    """Read what the decoder says: its reason, in words, and the place."""
    at = _AT.search(text)
    reason = text[: at.start()] if at else text
    places = _PLACE.finditer(at["place"]) if at else ()
    steps: list[Step] = [part["name"] or part["index"] for part in places]
    if at and at["place"].startswith(_A_KEY):
        steps.append(_SOME_MEMBER)
    field = _FIELD.search(reason)
    if field:
        steps.append(field["field"])
        reason = "this field is missing" if "missing" in reason else _UNKNOWN
    return Refusal(_IN_WORDS.get(reason, reason).replace("`", ""), steps)
