"""How structs travel: strict reading of bodies into wire structs, and the names of headers."""

import re
from collections.abc import Sequence
from typing import Final, NewType, TypeVar

import msgspec

from twiceshy_contract.refusals import JsonValue, Refusal, Step
from twiceshy_contract.strict_json import ENVELOPE_DEPTH, MAX_DEPTH, decode

CONTRACT_VERSION: Final = 1
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
    while True:
        try:
            return msgspec.convert(value, message, strict=True)
        except msgspec.ValidationError as error:
            refusal = _refusal(str(error))
            if not newer or refusal.reason != _UNKNOWN:
                raise refusal from error
            value = _without(value, refusal.steps)


def _without(value: JsonValue, steps: Sequence[Step]) -> JsonValue:
    """Return the value without the member at a place."""
    step, *deeper = steps
    if isinstance(value, dict):
        kept = {name: member for name, member in value.items() if deeper or name != step}
        return kept | ({str(step): _without(value[str(step)], deeper)} if deeper else {})
    if isinstance(value, list):
        return [_without(item, deeper) if index == int(step) else item for index, item in enumerate(value)]
    return value


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
