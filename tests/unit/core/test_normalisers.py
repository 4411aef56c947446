"""Normalisers: one spelling for what is written in several ways, and never one spelling for two things."""

from contextlib import suppress
from typing import get_args

import pytest

from guard.core.normalisers.declared import NORMALISERS
from guard.core.normalisers.instants import utc_instant
from guard.core.normalisers.mail import email_address
from guard.core.normalisers.texts import composed, trimmed_casefold
from twiceshy_contract.refusals import JsonValue
from twiceshy_contract.tools import NormaliserName


def test_every_name_of_the_contract_has_its_normaliser() -> None:
    assert list(NORMALISERS) == ["email", "money", "nfc", "phone", "trim_casefold", "url", "utc"]
    assert set(NORMALISERS) == set(get_args(NormaliserName))


@pytest.mark.parametrize("name", NORMALISERS)
@pytest.mark.parametrize("value", [[], ["x"], {}, {"a": "x"}, {"$uuid": f"{5:032x}"}, True, 1.5, None])
def test_a_normaliser_reads_one_value_of_its_kind_and_refuses_containers(
    name: NormaliserName, value: JsonValue
) -> None:
    with pytest.raises(ValueError, match=r"^[a-z].*[^.]$"):
        NORMALISERS[name](value)


@pytest.mark.parametrize("name", NORMALISERS)
@pytest.mark.parametrize("bulk", [" ", "1", "a", "@", "(", "-", "%41", "\u00e9", "/..", "<"])
def test_a_megabyte_of_anything_is_read_or_refused_in_time(name: NormaliserName, bulk: str) -> None:
    """A pattern that goes back and forth would need minutes, and the suite's patience with it."""
    for text in (bulk * 300_000, f"https://{bulk * 300_000}", f"{bulk * 300_000}!"):
        with suppress(ValueError):
            assert isinstance(NORMALISERS[name](text), str)


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
        (" Bob Smith <bob@example.com> ", "bob@example.com"),
        ("bob@example.com.", "bob@example.com"),
        ("bob+tag@example.com", "bob+tag@example.com"),
        ("bob@b\u00fccher.example", "bob@xn--bcher-kva.example"),
        ("bob@B\u00dcCHER.example", "bob@xn--bcher-kva.example"),
        ("bob@XN--BCHER-KVA.example", "bob@xn--bcher-kva.example"),
    ],
)
def test_a_mail_address_is_written_in_lower_case_without_its_name(written: str, spelling: str) -> None:
    assert email_address(written) == spelling


def test_two_mailboxes_are_never_made_one() -> None:
    assert email_address("stra\u00dfe@example.com") == "stra\u00dfe@example.com"
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
        "bob@stra\u00dfe.example",
        "bob@a\uff20b.example",
        "bob@\u2100.example",
        "",
        5,
        None,
        ["bob@example.com"],
    ],
)
def test_what_is_no_mail_address_is_refused(written: JsonValue) -> None:
    with pytest.raises(ValueError, match="mail address"):
        email_address(written)


@pytest.mark.parametrize(
    ("written", "spelling"),
    [
        ("  Alex\t\n", "alex"),
        ("\u00a0STRASSE\u3000", "strasse"),
        ("stra\u00dfe", "strasse"),
        ("two  words", "two  words"),
        ("\u03a3\u03a3", "\u03c3\u03c3"),
        ("\u03c3\u03c2", "\u03c3\u03c3"),
        ("\u00c9", "\u00e9"),
        ("E\u0301", "e\u0301"),
        ("", ""),
    ],
)
def test_trim_and_casefold_leave_the_inside_and_unicodes_forms_alone(written: str, spelling: str) -> None:
    assert trimmed_casefold(written) == spelling


@pytest.mark.parametrize(
    ("written", "spelling"),
    [("e\u0301", "\u00e9"), ("\u212b", "\u00c5"), ("\ufb01", "\ufb01"), (" E ", " E "), ("\u00e9", "\u00e9")],
)
def test_nfc_composes_what_is_canonically_equal_and_nothing_more(written: str, spelling: str) -> None:
    assert composed(written) == spelling


@pytest.mark.parametrize("address", ["\u212aate@x.de", "Bob <bob@x.de", "bob@x.de>"])
def test_an_address_that_is_not_what_it_looks_like_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="mail address"):
        email_address(address)
