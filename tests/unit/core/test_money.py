"""Amounts of money: the same amount has the same text, and nothing is guessed or rounded."""

import iso4217
import pytest

from guard.core.normalisers.currencies import MINOR_DIGITS
from guard.core.normalisers.money import money
from twiceshy_contract.refusals import JsonValue


def of(amount: JsonValue, currency: JsonValue = "EUR") -> JsonValue:
    return {"amount": amount, "currency": currency}


def test_the_currencies_are_those_of_iso_4217_that_have_a_unit() -> None:
    listed = {code: str(entry["CcyMnrUnts"]) for code, entry in iso4217.raw_table.items() if code}
    assert {code: int(digits) for code, digits in listed.items() if digits.isdigit()} == MINOR_DIGITS
    assert (MINOR_DIGITS["EUR"], MINOR_DIGITS["JPY"], MINOR_DIGITS["KWD"]) == (2, 0, 3)


@pytest.mark.parametrize(
    "written",
    [
        "12.50 EUR",
        "12.5 EUR",
        "12.5EUR",
        "EUR 12.50",
        "eur12.5",
        " 12.50 EUR ",
        "012.5000 EUR",
        of("12.50"),
        of(" 12.5 ", " eur "),
        of(12.5),
        of({"$dec": "12.5"}),
        of({"$dec": "12.500"}),
    ],
)
def test_one_amount_has_one_text(written: JsonValue) -> None:
    assert money(written) == "12.50 EUR"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("1200 JPY", "1200 JPY"),
        ("1500.00 JPY", "1500 JPY"),
        ("1.500 KWD", "1.500 KWD"),
        ("1.5 KWD", "1.500 KWD"),
        ("2 CLF", "2.0000 CLF"),
        ("-3 EUR", "-3.00 EUR"),
        ("EUR -0.00", "0.00 EUR"),
        (of(0), "0.00 EUR"),
        (of(1200), "1200.00 EUR"),
        (of(0.1), "0.10 EUR"),
        (of(-0.07), "-0.07 EUR"),
        (of(1234567890123.45), "1234567890123.45 EUR"),
        (of({"$int": "9007199254740993"}), "9007199254740993.00 EUR"),
        (of({"$dec": "123456789012345678901234567890.12"}), "123456789012345678901234567890.12 EUR"),
        (of({"$dec": "1E+3"}), "1000.00 EUR"),
    ],
)
def test_an_amount_has_the_digits_of_its_currency(written: JsonValue, text: str) -> None:
    assert money(written) == text


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("$12.50", "sign of a currency"),
        ("12.50 \u20ac", "sign of a currency"),
        ("US$12.50", "sign of a currency"),
        ("12,50 EUR", "separators"),
        ("1,500.00 EUR", "separators"),
        ("1.500,00 EUR", "separators"),
        ("1 500.00 EUR", "separators"),
        ("1'500.00 CHF", "separators"),
        (of("1,500"), "separators"),
        ("1.500 EUR", "point may stand before thousands"),
        ("1.500 JPY", "point may stand before thousands"),
        (of("12.345"), "point may stand before thousands"),
        ("12.50", "names no currency"),
        ("12.5055 EUR", "at most 2 digits"),
        ("1200.5 JPY", "at most 0 digits"),
        (of({"$dec": "12.345"}), "at most 2 digits"),
        (of(12.345), "at most 2 digits"),
        (of(0.001), "at most 2 digits"),
        (of(0.1 + 0.2), "more digits than a double keeps"),
        (of(12345678901234.25), "more digits than a double keeps"),
        (of({"$dec": "1E+50"}), "of this size"),
        (of({"$dec": "1E-50"}), "of this size"),
        ("12.50 XXX", "none of ISO 4217"),
        ("12.50 XAU", "none of ISO 4217"),
        ("12.50 BTC", "none of ISO 4217"),
        (of("12.50", 978), "none of ISO 4217"),
        (of("12.50", "\u00e9"), "none of ISO 4217"),
        (of("12.50", None), "none of ISO 4217"),
        ("EUR 12.50 EUR", "not an amount"),
        ("twelve EUR", "not an amount"),
        ("1e3 EUR", "not an amount"),
        (".5 EUR", "not an amount"),
        ("\u0661 EUR", "not an amount"),
        ("", "not an amount"),
        (of(""), "not an amount"),
        ({"amount": True, "currency": "EUR"}, "not a truth"),
        (of(None), "a string, a number"),
        (of([1]), "a string, a number"),
        (of({"$uuid": "x"}), "a string, a number"),
        ({"amount": 1}, "an amount of money is"),
        ({"amount": 1, "currency": "EUR", "note": "x"}, "an amount of money is"),
        ({"$dec": "12.5"}, "an amount of money is"),
        (12.5, "an amount of money is"),
    ],
)
def test_what_could_be_another_amount_is_refused_and_says_why(written: JsonValue, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        money(written)
