"""Telephone numbers: one form for one line, and never one for two."""

import pytest

from guard.core.normalisers.phone import phone_number, phone_number_of
from twiceshy_contract.refusals import JsonValue


@pytest.mark.parametrize(
    "written",
    [
        "+49 30 123456",
        "+4930123456",
        " (+49) 30 12 34 56 ",
        "+49 (0) 30 123456",
        "+49 30/123-456",
        "+49.30.123456",
        "tel:+49-30-123456",
        "+49\u00a030\u2011123456",
    ],
)
def test_a_number_with_its_country_code_is_written_in_e164(written: str) -> None:
    assert phone_number(written) == "+4930123456"
    assert phone_number_of("US")(written) == "+4930123456"


@pytest.mark.parametrize("written", ["030 123456", "(030) 123456", "0049 30 123456", "030/123456"])
def test_a_national_number_is_one_of_its_region(written: str) -> None:
    assert phone_number_of("DE")(written) == "+4930123456"


def test_one_national_number_is_another_line_in_another_region() -> None:
    assert phone_number_of("DE")("020 79460018") == "+492079460018"
    assert phone_number_of("GB")("020 79460018") == "+442079460018"
    assert phone_number_of("US")("(650) 253-0000") == "+16502530000"


@pytest.mark.parametrize(
    "written",
    ["+1 650 253 0000;ext=05", "+1 650 253 0000 ext. 05", "+1 650 253 0000 x05", "+1 650 253 0000#05"],
)
def test_an_extension_is_part_of_the_number(written: str) -> None:
    assert phone_number(written) == "+16502530000;ext=05"


def test_the_zero_of_italy_and_the_trunk_zero_of_others_are_told_apart() -> None:
    assert phone_number("+39 06 1234567") == "+39061234567"
    assert phone_number("+39 6 1234567") == "+3961234567"
    assert phone_number("+44 (0)20 7946 0018") == "+442079460018"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("030 123456", "without its country code"),
        ("4930123456", "without its country code"),
        ("+999 1234567", "of no country"),
        ("+49", "of no country"),
        ("+1 253 0000", "too short or too long"),
        ("+49 110", "too short or too long"),
        ("+1 650 253 0000 0000", "too short or too long"),
        ("+1 650 253 0000 or +1 650 253 0001", "not a telephone number"),
        ("+1 650 253 0000 x5 x6", "not a telephone number"),
        ("+1-800-FLOWERS", "not a telephone number"),
        ("++49 30 123456", "not a telephone number"),
        ("+49 30 123456" + " " * 100, "not a telephone number"),
        ("call me", "not a telephone number"),
        ("", "not a telephone number"),
        (4930123456, "is a string"),
        (None, "is a string"),
        (["+49 30 123456"], "is a string"),
    ],
)
def test_what_names_no_one_line_is_refused_and_says_why(written: JsonValue, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        phone_number(written)


@pytest.mark.parametrize("region", ["UK", "XX", "EU"])
def test_a_region_without_telephone_numbers_is_refused_where_it_is_declared(region: str) -> None:
    with pytest.raises(ValueError, match=f"^{region} is no region"):
        phone_number_of(region)
