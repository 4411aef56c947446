"""What holds of every normaliser: spellings of one thing have one digest, two things have two, once is enough."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.core.arguments import ArgumentReader
from guard.core.normalisers.declared import NORMALISERS, normaliser_of
from twiceshy_contract.refusals import JsonValue
from twiceshy_contract.tools import ArgumentRoles, Normaliser, NormaliserName, NormaliserWith

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
PEOPLE = {"alex@example.com": "user-7", "al@example.com": "user-7", "kim@example.com": "user-8"}
lawful = settings(max_examples=100, deadline=None, derandomize=True)


def spelled(normaliser: Normaliser, value: JsonValue) -> bytes:
    """Return what names a call with this one argument."""
    return ArgumentReader(ArgumentRoles(normalisers={"/x": normaliser})).read({"x": value}).identity_digest


def cased(text: str) -> st.SearchStrategy[str]:
    pairs = [st.sampled_from([letter.lower(), letter.upper()]) for letter in text]
    return st.tuples(*pairs).map("".join)


@st.composite
def phones(draw: st.DrawFn) -> tuple[str, str]:
    """A number of Berlin, and one of its spellings."""
    line = draw(st.integers(2_000_000, 99_999_999))
    separators = st.sampled_from(["", " ", "-", ".", "/", "\u00a0", " (", ") "])
    grouped = "".join(digit + draw(separators) for digit in str(line))
    start = draw(st.sampled_from(["+49 30 ", "+49 (0)30", "030", "0049-30-", "tel:+49-30-", " (+49) 30"]))
    return f"+4930{line}", start + grouped


@lawful
@given(phones(), phones())
def test_two_spellings_of_a_telephone_number_are_one_and_two_numbers_two(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    region = NormaliserWith(phone="DE")
    assert normaliser_of(region)(one[1]) == one[0]
    assert (spelled(region, one[1]) == spelled(region, other[1])) == (one[0] == other[0])


Place = tuple[str, tuple[str, ...], str]
_WORD = st.text(st.sampled_from("aZ9-._~"), min_size=1, max_size=4).filter(lambda word: word not in (".", ".."))


@st.composite
def places(draw: st.DrawFn) -> tuple[Place, str]:
    """A place in the web, and one of its spellings."""
    host = draw(st.sampled_from(["example.com", "a.example"]))
    steps = tuple(draw(st.lists(_WORD, max_size=3)))
    query = draw(st.sampled_from(["", "?", "?a=1&b=2", "?b=2&a=1", "?a=%2F"]))
    path = "".join(f"/{draw(_detour)}{draw(_encoded(step))}" for step in steps) or draw(st.sampled_from(["", "/"]))
    scheme, port = draw(cased("https")), draw(st.sampled_from(["", ":443", ":", ":00443"]))
    written_query = query.replace("%2F", draw(st.sampled_from(["%2F", "%2f"])))
    return (host, steps, query), f"{scheme}://{draw(cased(host))}{port}{path}{written_query}"


_detour = st.sampled_from(["", "./", "x/../", "%2e/", "y/%2E./"])


def _encoded(word: str) -> st.SearchStrategy[str]:
    forms = [st.sampled_from([letter, f"%{ord(letter):02x}", f"%{ord(letter):02X}"]) for letter in word]
    return st.tuples(*forms).map("".join)


@lawful
@given(places(), places())
def test_two_spellings_of_a_url_are_one_and_two_places_two(one: tuple[Place, str], other: tuple[Place, str]) -> None:
    host, steps, query = one[0]
    assert NORMALISERS["url"](one[1]) == f"https://{host}/{'/'.join(steps)}{query}"
    assert (spelled("url", one[1]) == spelled("url", other[1])) == (one[0] == other[0])


@st.composite
def amounts(draw: st.DrawFn) -> tuple[tuple[int, str], JsonValue]:
    """Cents in a currency, and one of their spellings."""
    cents = draw(st.integers(-10_000_000, 10_000_000))
    currency = draw(st.sampled_from(["EUR", "USD"]))
    exact = Decimal(cents).scaleb(-2)
    code = draw(cased(currency))
    forms: Sequence[JsonValue] = [
        f"{exact} {code}",
        f"{code}{exact}",
        {"amount": str(exact), "currency": code},
        {"currency": code, "amount": float(exact)},
        {"amount": {"$dec": str(exact)}, "currency": code},
        {"amount": {"$dec": f"{cents * 1000}E-5"}, "currency": code},
    ]
    return (cents, currency), draw(st.sampled_from(forms))


@lawful
@given(amounts(), amounts())
def test_two_spellings_of_an_amount_are_one_and_two_amounts_two(
    one: tuple[tuple[int, str], JsonValue], other: tuple[tuple[int, str], JsonValue]
) -> None:
    (cents, currency), written = one
    sign = "-" if cents < 0 else ""
    assert NORMALISERS["money"](written) == f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02} {currency}"
    assert (spelled("money", one[1]) == spelled("money", other[1])) == (one[0] == other[0])


@lawful
@given(
    st.integers(-(10**15), 10**15).map(lambda number: EPOCH + timedelta(microseconds=number)),
    st.integers(-839, 839),
    st.sampled_from(["T", " ", "t"]),
)
def test_one_instant_in_any_offset_is_one(instant: datetime, minutes: int, separator: str) -> None:
    local = instant.astimezone(timezone(timedelta(minutes=minutes))).isoformat().replace("T", separator)
    tagged = instant.isoformat().replace("+00:00", "z")
    assert spelled("utc", local) == spelled("utc", {"$dt": tagged})
    assert spelled("utc", local) != spelled("utc", (instant + timedelta(microseconds=1)).isoformat())


@lawful
@given(
    st.sampled_from([*PEOPLE, "eve@example.com", "user-7", "user-8"]).flatmap(
        lambda one: st.tuples(st.just(one), cased(one))
    ),
    st.sampled_from(["{}", " {} ", "<{}>", "Some One <{}>"]),
)
def test_every_spelling_of_an_address_is_its_user(written: tuple[str, str], form: str) -> None:
    address, spelling = written
    alias: Normaliser = ("email", NormaliserWith(alias={**PEOPLE}))
    if "@" not in address:
        assert normaliser_of(alias)(address) == address
    else:
        assert normaliser_of(alias)(form.format(spelling)) == PEOPLE.get(address, address)


@lawful
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), st.sampled_from(["", " ", "\n\t", "\u3000"]))
def test_trim_and_casefold_see_no_case_and_no_ends(text: str, space: str) -> None:
    assert spelled("trim_casefold", f"{space}{text.casefold()}{space}") == spelled("trim_casefold", text)
    assert spelled("trim_casefold", f"a{space or '.'}a{text}") != spelled("trim_casefold", f"aa{text}")


ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LIKELY: dict[NormaliserName, st.SearchStrategy[JsonValue]] = {
    "email": st.builds("{}@{}.example".format, ANY, ANY),
    "money": amounts().map(lambda amount: amount[1]),
    "nfc": ANY,
    "phone": st.text(st.sampled_from("+0123456789 ()-x"), max_size=20) | st.builds("+49{}".format, st.integers(1)),
    "trim_casefold": ANY,
    "url": st.builds("https://a{}.example/{}?{}#{}".format, ANY, ANY, ANY, ANY),
    "utc": st.datetimes(timezones=st.timezones()).map(datetime.isoformat),
}


@lawful
@given(st.data())
@pytest.mark.parametrize("name", NORMALISERS)
def test_what_a_normaliser_wrote_is_written_so_already(name: NormaliserName, data: st.DataObject) -> None:
    try:
        once = NORMALISERS[name](data.draw(LIKELY[name]))
    except ValueError:
        return
    assert NORMALISERS[name](once) == once
    assert spelled(name, once) == ArgumentReader(ArgumentRoles()).read({"x": once}).identity_digest
