"""Facts of runs as texts: equal facts have one text, by which they are kept and found; people type them shorter."""

import math
from typing import Final

import msgspec

from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import Fact, FactName

MAX_FACT_BYTES: Final = 2000
_MOST: Final = 2**53 - 1
"""Up to here every whole number is one and the same in every reader of JSON."""
_typed: Final = msgspec.json.Decoder(bool | int | float | str)


def fact_text(value: Fact) -> str:
    """Return the JSON of a fact; 1 and 1.0 are the same. Raises Refusal for what is too large to be found by."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MOST:
        value = int(value)
    if isinstance(value, int) and abs(value) > _MOST:
        raise Refusal(f"a fact that is a whole number lies within ±{_MOST}; say a larger one as a text")
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise Refusal("a fact has characters that are no Unicode text") from error
    if len(text) > MAX_FACT_BYTES:
        raise Refusal(f"a fact has at most {MAX_FACT_BYTES} bytes as JSON")
    return text.decode()


def typed_fact(text: str) -> tuple[str, Fact]:
    """Read `name=value`: true, false, a number or a text in quotes as JSON has them; all else is a text as it stands.

    Raises Refusal.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise Refusal("a fact is said as name=value, such as escalated=true")
    try:
        msgspec.convert(name, FactName)
    except msgspec.ValidationError as error:
        raise Refusal(
            f"{name!r} is not the name of a fact: it has up to 50 lower-case letters, digits and underscores, and "
            "begins with a letter"
        ) from error
    fact = _value_of(value)
    fact_text(fact)
    return name, fact


def _value_of(text: str) -> Fact:
    try:
        value = _typed.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text
    return text if isinstance(value, float) and not math.isfinite(value) else value
