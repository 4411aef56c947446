"""Telephone numbers in the form of E.164, read by the numbering plans that the `phonenumbers` package holds.

The package is loaded where a tool first names it: it costs 25 ms and 1 to 4 ms for each country.
"""

import re
from collections.abc import Callable
from typing import Final

from twiceshy_contract.refusals import JsonValue

_NUMBER: Final = re.compile(
    r"(?:tel:)?(?P<number>\(?\+?[0-9\s()./\-\u2010-\u2015\u2212]+?)"
    r"(?:\s*(?:;ext=|ext\.?|x|#)\s*(?P<extension>[0-9]{1,7}))?",
    re.IGNORECASE,
)


_LONGEST: Final = 100


def phone_number(value: JsonValue) -> JsonValue:
    """Write a number with its country code in E.164, `+4930123456`, and with `;ext=5` where it has an extension."""
    return _e164(value, None)


def phone_number_of(region: str) -> Callable[[JsonValue], JsonValue]:
    """Return the normaliser that reads a number without country code as one of the region. Raises ValueError."""
    from phonenumbers import SUPPORTED_REGIONS

    if region not in SUPPORTED_REGIONS:
        raise ValueError(f"{region} is no region of ISO 3166 that has telephone numbers")
    return lambda value: _e164(value, region)


def _e164(value: JsonValue, region: str | None) -> str:
    from phonenumbers import (
        NumberParseException,
        PhoneNumberFormat,
        ValidationResult,
        format_number,
        is_possible_number_with_reason,
        parse,
    )

    if not isinstance(value, str):
        raise ValueError("a telephone number is a string")
    written = _NUMBER.fullmatch(value.strip()) if len(value) <= _LONGEST else None
    if written is None:
        raise ValueError("this is not a telephone number such as +49 30 123456")
    if region is None and "+" not in written["number"]:
        raise ValueError("a telephone number without its country code names none; write it with + or declare a region")
    try:
        number = parse(written["number"], region)
    except NumberParseException as error:
        raise ValueError("this telephone number is of no country's plan") from error
    if is_possible_number_with_reason(number) != ValidationResult.IS_POSSIBLE:
        raise ValueError("this telephone number is too short or too long for its country's plan")
    extension = f";ext={written['extension']}" if written["extension"] else ""
    return format_number(number, PhoneNumberFormat.E164) + extension
