"""Texts: what differs to the eye of a machine alone. Nothing of this is done unless a tool asks."""

import unicodedata

from twiceshy_contract.refusals import JsonValue


def trimmed_casefold(value: JsonValue) -> JsonValue:
    """Write a text without white space at its ends and in one case (Unicode's full case folding)."""
    return _text(value).strip().casefold()


def composed(value: JsonValue) -> JsonValue:
    """Write a text in Unicode's normal form C: `é` is one character."""
    return unicodedata.normalize("NFC", _text(value))


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is a string")
    return value
