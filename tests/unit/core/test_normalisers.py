"""Normalisers: one spelling for what is written in several ways, and never one spelling for two things."""

import pytest

from guard.core.normalisers import NORMALISERS, email_address, utc_instant
from twiceshy_contract.refusals import JsonValue


def test_the_normalisers_are_utc_and_email() -> None:
    assert set(NORMALISERS) == {"utc", "email"}


@pytest.mark.parametrize(
    ("written", "spelling"),
    [
        ("2026-10-12T14:00:00Z", "2026-10-12T14:00:00Z"),
        ("2026-10-12T16:00:00+02:00", "2026-10-12T14:00:00Z"),
        ("2026-10-12 09:30:00-04:30", "2026-10-12T14:00:00Z"),
        ("20261012T140000Z", "2026-10-12T14:00:00Z"),
        ("2026-10-12T14:00Z", "2026-10-12T14:00:00Z"),
        ("2026-10-12T14:00:00.250000Z", "2026-10-12T14:00:00.250000Z"),
        ("2026-10-12T14:00:00,25Z", "2026-10-12T14:00:00.250000Z"),
    ],
)
def test_a_date_time_is_written_in_utc(written: str, spelling: str) -> None:
    assert utc_instant(written) == spelling
    assert utc_instant({"$dt": written}) == spelling


@pytest.mark.parametrize(
    "written",
    [
        "2026-10-12T14:00:00",
        "2026-10-12",
        "2026-10-12T14:00:00.1234567Z",
        "2026-10-12T14:00:00,1234567Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "2026-02-30T00:00:00Z",
        "tomorrow",
        "",
        5,
        True,
        None,
        ["2026-10-12T14:00:00Z"],
        {"$dec": "1"},
        {"$dt": 5},
    ],
)
def test_what_names_no_one_instant_is_refused(written: JsonValue) -> None:
    with pytest.raises(ValueError, match=r"date-time|\$dt"):
        utc_instant(written)


@pytest.mark.parametrize(
    ("written", "spelling"),
    [
        ("bob@example.com", "bob@example.com"),
        ("BOB@Example.COM", "bob@example.com"),
        ("Bob Smith <bob@example.com>", "bob@example.com"),
        ("<bob@example.com>", "bob@example.com"),
        ("  bob@example.com ", "bob@example.com"),
        ("bob@example.com.", "bob@example.com"),
        ("bob+tag@example.com", "bob+tag@example.com"),
        ("bob@bücher.example", "bob@xn--bcher-kva.example"),
        ("bob@BÜCHER.example", "bob@xn--bcher-kva.example"),
        ("bob@xn--bcher-kva.example", "bob@xn--bcher-kva.example"),
    ],
)
def test_a_mail_address_is_written_in_lower_case_without_its_name(written: str, spelling: str) -> None:
    assert email_address(written) == spelling


def test_two_mailboxes_are_never_made_one() -> None:
    assert email_address("straße@example.com") == "straße@example.com"
    assert email_address("strasse@example.com") == "strasse@example.com"


@pytest.mark.parametrize(
    "written",
    [
        "bob",
        "bob@",
        "@example.com",
        "a@b@c",
        "bob smith@example.com",
        "bob@a..example",
        "bob@example.com..",
        "bob@.",
        f"bob@{'x' * 64}.example",
        "bob@straße.example",
        "",
        5,
        None,
        ["bob@example.com"],
    ],
)
def test_what_is_no_mail_address_is_refused(written: JsonValue) -> None:
    with pytest.raises(ValueError, match="mail address"):
        email_address(written)
