"""Normalisers as a tool declares them: by name, with what they need, in order, and as an alias map."""

import msgspec
import pytest

from guard.core.normalisers.declared import Normalise, normaliser_of
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.tools import Normaliser

PEOPLE = {"alex@example.com": "user-7", "al@example.com": "user-7", "kim@example.com": "user-8"}


def declared(said: object) -> Normalise:
    normaliser: Normaliser = msgspec.convert(said, Normaliser)
    return normaliser_of(normaliser)


def test_a_name_is_the_normaliser_of_that_name() -> None:
    assert declared("email")("Bob@Example.com") == "bob@example.com"


def test_a_region_reads_national_numbers() -> None:
    assert declared({"phone": "DE"})("030 123456") == "+4930123456"


def test_several_are_applied_in_their_order() -> None:
    assert declared(["nfc", "trim_casefold"])(" E\u0301 ") == "\u00e9"
    assert declared(["trim_casefold", {"phone": "DE"}])("TEL:030 123456 ") == "+4930123456"


@pytest.mark.parametrize(
    ("written", "meaning"),
    [
        ("alex@example.com", "user-7"),
        ("Alex Smith <Alex@Example.com> ", "user-7"),
        ("al@example.com", "user-7"),
        ("user-7", "user-7"),
        ("kim@example.com", "user-8"),
        ("Bob@example.com", "bob@example.com"),
    ],
)
def test_an_alias_is_what_its_spelling_means_and_any_other_value_stays(written: str, meaning: str) -> None:
    assert declared(["email", {"alias": PEOPLE}])(written) == meaning


def test_a_value_that_is_neither_a_meaning_nor_readable_is_refused_as_without_the_map() -> None:
    with pytest.raises(ValueError, match="not a mail address"):
        declared(["email", {"alias": PEOPLE}])("user-9")


def test_an_alias_alone_looks_the_value_up_to_the_letter() -> None:
    alias = declared({"alias": {"Alex": 7, "Kim": 1}})
    values: list[JsonValue] = ["Alex", 7, "alex", "7", 8, True, 1, 1.5, {"$uuid": f"{5:032x}"}]
    read: list[JsonValue] = [7, 7, "alex", "7", 8, True, 1, 1.5, {"$uuid": f"{5:032x}"}]
    assert [(alias(value), type(alias(value))) for value in values] == [(value, type(value)) for value in read]


@pytest.mark.parametrize("value", [[], ["Alex"], {}, {"name": "Alex"}, {"$$x": "Alex"}])
def test_an_alias_stands_for_no_container(value: JsonValue) -> None:
    with pytest.raises(ValueError, match="one value"):
        declared({"alias": {"Alex": 7}})(value)


@pytest.mark.parametrize(
    ("said", "path", "reason"),
    [
        ({"phone": "UK"}, "/phone", "UK is no region"),
        (["trim_casefold", {"phone": "UK"}], "/1/phone", "UK is no region"),
        (["email", {"alias": {"Alex@example.com": "u"}}], "/1/alias/Alex@example.com", "'alex@example.com'"),
        (["email", {"alias": {"alex": "u"}}], "/1/alias/alex", "not a mail address"),
        ({"alias": {"a": "b", "b": "c"}}, "/alias/a", "a spelling of the map itself"),
        ({"alias": {"a": "a"}}, "/alias/a", "a spelling of the map itself"),
    ],
)
def test_a_declaration_that_can_never_hold_is_refused_with_its_place(said: object, path: str, reason: str) -> None:
    with pytest.raises(Refusal, match=reason) as caught:
        declared(said)
    assert caught.value.path == path


def test_a_meaning_that_callers_would_see_written_otherwise_is_refused() -> None:
    with pytest.raises(Refusal, match=r"is written 'b@x\.de'") as caught:
        declared(["email", {"alias": {"a@x.de": "B@x.de"}}])
    assert caught.value.path == "/1/alias/a@x.de"


def test_an_amount_of_money_is_looked_up_however_it_is_written() -> None:
    read = declared(["money", {"alias": {"12.50 EUR": "standard"}}])
    assert [read("12.5 EUR"), read({"amount": 12.5, "currency": "EUR"}), read("13 EUR")] == [
        "standard",
        "standard",
        "13.00 EUR",
    ]
