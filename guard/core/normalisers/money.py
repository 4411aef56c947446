"""Amounts of money in a currency of ISO 4217, in its main unit: `12.50 EUR`.

Nothing is guessed and nothing rounded. A JSON number is read as the decimal that was written, which a double keeps
up to 15 digits; beyond them it is refused.
"""

import re
import unicodedata
from typing import Final

from guard.core.normalisers.currencies import MINOR_DIGITS
from twiceshy_contract.canonical import decimal
from twiceshy_contract.refusals import JsonValue

_AMOUNT: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_MONEY: Final = re.compile(
    rf"(?:(?P<before>[A-Za-z]{{3}})\s*(?P<amount>{_AMOUNT.pattern})|(?P<sum>{_AMOUNT.pattern})\s*(?P<after>[A-Za-z]{{3}}))"
)
_SEPARATED: Final = re.compile(r"[0-9][,'_\s\u2019][0-9]")
_DOUBLE_DIGITS: Final = 15
_THOUSAND: Final = 3


def money(value: JsonValue) -> JsonValue:
    """Write an amount with its currency as one text, with the digits that the currency has after the point."""
    if isinstance(value, dict) and value.keys() == {"amount", "currency"}:
        return _written(value["amount"], value["currency"])
    if not isinstance(value, str):
        raise ValueError('an amount of money is a string such as 12.50 EUR or {"amount": "12.50", "currency": "EUR"}')
    parts = _MONEY.fullmatch(value.strip())
    if parts is None:
        raise ValueError(_reason(value))
    return _written(parts["amount"] or parts["sum"], parts["before"] or parts["after"])


def _written(amount: JsonValue, currency: JsonValue) -> str:
    code = currency.strip().upper() if isinstance(currency, str) and currency.isascii() else ""
    digits = MINOR_DIGITS.get(code)
    if digits is None:
        raise ValueError("the currency is none of ISO 4217 such as EUR")
    whole, _, fraction = _decimal(amount, digits).partition(".")
    if "E" in whole + fraction:
        raise ValueError("there is no amount of money of this size")
    if len(fraction) > digits:
        raise ValueError(f"an amount in {code} has at most {digits} digits after the point")
    return f"{whole}.{fraction.ljust(digits, '0')} {code}" if digits else f"{whole} {code}"


def _decimal(amount: JsonValue, digits: int) -> str:
    match amount:
        case str():
            return _as_text(amount.strip(), digits)
        case {"$dec": str() as text} | {"$int": str() as text}:
            return decimal(text)
        case bool():
            raise ValueError("an amount of money is a number, not a truth")
        case int():
            return decimal(str(amount))
        case float():
            return _as_written(amount)
        case _:
            raise ValueError("an amount of money is a string, a number, or a $dec")


def _as_text(amount: str, digits: int) -> str:
    if _AMOUNT.fullmatch(amount) is None:
        raise ValueError(_reason(amount))
    if len(amount.partition(".")[2]) == _THOUSAND != digits:
        raise ValueError("the point may stand before thousands; write 1500.00, or 1.50")
    return decimal(amount)


def _as_written(amount: float) -> str:
    text = decimal(repr(amount))
    if len(text.lstrip("-0.").replace(".", "")) > _DOUBLE_DIGITS:
        raise ValueError("this number has more digits than a double keeps; send the amount as a string")
    return text


def _reason(text: str) -> str:
    if any(unicodedata.category(character) == "Sc" for character in text):
        return "the sign of a currency may mean several; write its code of ISO 4217, such as 12.50 EUR"
    if _SEPARATED.search(text):
        return "separators in an amount are read differently; write digits and one point, such as 1500.00"
    if _AMOUNT.fullmatch(text.strip()):
        return "the amount names no currency; write it, such as 12.50 EUR"
    return "this is not an amount of money such as 12.50 EUR"
