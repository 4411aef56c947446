"""Arguments as a tool's roles see them."""

import hashlib
from typing import Any

import pytest

from guard.core.arguments import ArgumentReader, arguments_of
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.tools import ArgumentRoles, Normaliser, NormaliserWith


def reader(
    *,
    identity: tuple[str, ...] = (),
    content: tuple[str, ...] = (),
    ignored: tuple[str, ...] = (),
    normalisers: dict[str, Normaliser] | None = None,
) -> ArgumentReader:
    return ArgumentReader(
        ArgumentRoles(identity=identity, content=content, ignored=ignored, normalisers=normalisers or {})
    )


def test_without_roles_every_argument_is_identity() -> None:
    reading = reader().read({"b": 1.0, "a": "x"})
    assert (reading.identity, reading.content) == (b'{"a":"x","b":1}', b"{}")
    assert reading.identity_digest == hashlib.sha256(b'{"a":"x","b":1}').digest()


def test_the_arguments_digest_is_over_length_prefixed_identity_and_content() -> None:
    reading = reader(content=("/t",)).read({"a": 1, "t": "x"})
    text = b"\x00\x00\x00\x07" + b'{"a":1}' + b'{"t":"x"}'
    assert reading.arguments_digest == hashlib.sha256(text).digest()


def test_content_is_what_is_declared_so_and_the_rest_is_identity() -> None:
    reading = reader(content=("/title",)).read({"start": 1, "title": "sync"})
    assert (reading.identity, reading.content) == (b'{"start":1}', b'{"title":"sync"}')


def test_where_identity_is_declared_the_rest_is_content() -> None:
    reading = reader(identity=("/start",)).read({"start": 1, "title": "sync", "notes": []})
    assert (reading.identity, reading.content) == (b'{"start":1}', b'{"notes":[],"title":"sync"}')


def test_ignored_arguments_count_for_nothing_at_any_depth() -> None:
    roles = reader(ignored=("/why", "/a/b/why"))
    with_reasons = roles.read({"why": "x", "a": {"b": {"why": {"deep": [1]}, "c": 2}}})
    without = roles.read({"a": {"b": {"c": 2}}})
    assert with_reasons == without
    assert with_reasons.identity == b'{"a":{"b":{"c":2}}}'


def test_the_longest_path_decides() -> None:
    roles = reader(content=("/a",), identity=("/a/b",), ignored=("/a/b/c",))
    reading = roles.read({"a": {"b": {"c": 1, "d": 2}, "e": 3}})
    assert (reading.identity, reading.content) == (b'{"a":{"b":{"d":2}}}', b'{"a":{"e":3}}')


def test_a_star_stands_for_every_item_of_a_list() -> None:
    roles = reader(content=("/people/*/note",), ignored=("/people/*/id",))
    reading = roles.read({"people": [{"id": 1, "name": "a", "note": "x"}, {"id": 2, "name": "b"}]})
    assert reading.identity == b'{"people":[{"name":"a"},{"name":"b"}]}'
    assert reading.content == b'{"people":[{"note":"x"}]}'


def test_a_star_is_an_ordinary_key_of_an_object() -> None:
    reading = reader(ignored=("/a/*",)).read({"a": {"*": 1, "b": 2}})
    assert reading.identity == b'{"a":{"b":2}}'


def test_a_number_names_one_item_of_a_list_and_an_ordinary_key_of_an_object() -> None:
    roles = reader(ignored=("/a/1",))
    assert roles.read({"a": [7, 8, 9]}).identity == b'{"a":[7,9]}'
    assert roles.read({"a": {"1": 7, "2": 8}}).identity == b'{"a":{"2":8}}'


def test_an_escaped_pointer_names_keys_with_slashes_and_tildes() -> None:
    reading = reader(ignored=("/a~1b", "/c~0d")).read({"a/b": 1, "c~d": 2, "e": 3})
    assert reading.identity == b'{"e":3}'


def test_a_tagged_value_is_one_value_and_has_no_members() -> None:
    reading = reader(content=("/sum/$dec", "/when")).read({"sum": {"$dec": "1.50"}, "when": {"$uuid": f"{5:032x}"}})
    assert reading.identity == b'{"sum":{"$dec":"1.5"}}'
    assert reading.content == b'{"when":{"$uuid":"00000000-0000-0000-0000-000000000005"}}'


def test_a_key_of_the_users_own_that_begins_with_a_dollar_is_no_tag() -> None:
    reading = reader(content=("/a/$$x",)).read({"a": {"$$x": 1}})
    assert (reading.identity, reading.content) == (b'{"a":{}}', b'{"a":{"$$x":1}}')


def test_an_empty_container_belongs_to_its_role() -> None:
    roles = reader(content=("/t",), ignored=("/i",))
    reading = roles.read({"a": [], "t": {}, "i": []})
    assert (reading.identity, reading.content) == (b'{"a":[]}', b'{"t":{}}')


def test_a_path_has_one_role() -> None:
    with pytest.raises(Refusal) as caught:
        reader(identity=("/a",), ignored=("/b", "/a"))
    assert caught.value.path == "/arguments/ignored/1"
    reader(ignored=("/a", "/a"))


def test_a_normaliser_makes_two_spellings_one() -> None:
    roles = reader(normalisers={"/at": "utc", "/to/*": "email"})
    one = roles.read({"at": "2026-10-12T16:00:00+02:00", "to": ["Bob <BOB@example.com>"]})
    other = roles.read({"at": {"$dt": "2026-10-12T14:00:00Z"}, "to": ["bob@example.com"]})
    assert one == other
    assert one.identity == b'{"at":"2026-10-12T14:00:00Z","to":["bob@example.com"]}'


def test_an_absent_value_and_null_are_not_normalised() -> None:
    roles = reader(normalisers={"/at": "utc"})
    assert roles.read({"at": None}).identity == b'{"at":null}'
    assert roles.read({}).identity == b"{}"


@pytest.mark.parametrize("value", ["2026-10-12T14:00:00", 5, "0001-01-01T00:00:00+01:00", ["x"], {"$dec": "1"}])
def test_a_normaliser_refuses_what_it_cannot_read_with_its_place(value: object) -> None:
    with pytest.raises(Refusal) as caught:
        reader(normalisers={"/a/at": "utc"}).read({"a": {"at": value}})
    assert caught.value.path == "/a/at"


def test_what_a_normaliser_wrote_is_one_value_of_its_role() -> None:
    roles = reader(content=("/price",), normalisers={"/price": "money", "/prices/*": "money"})
    reading = roles.read({"price": {"currency": "eur", "amount": 12.5}, "prices": ["EUR 1"]})
    assert (reading.identity, reading.content) == (b'{"prices":["1.00 EUR"]}', b'{"price":"12.50 EUR"}')


@pytest.mark.parametrize(
    "declared", [{"identity": ("/price/amount",)}, {"normalisers": {"/price": "money", "/price/currency": "nfc"}}]
)
def test_no_path_leads_below_a_normaliser(declared: dict[str, Any]) -> None:
    with pytest.raises(Refusal, match="no path leads below it") as caught:
        reader(**{"normalisers": {"/price": "money"}, **declared})
    assert caught.value.path == "/arguments/normalisers/~1price"


def test_a_normaliser_that_can_never_hold_is_refused_with_its_place_in_the_declaration() -> None:
    with pytest.raises(Refusal, match="UK is no region") as caught:
        reader(normalisers={"/a/to": ("trim_casefold", NormaliserWith(phone="UK"))})
    assert caught.value.path == "/arguments/normalisers/~1a~1to/1/phone"


def test_a_normaliser_on_a_list_is_refused_and_on_its_items_is_right() -> None:
    with pytest.raises(Refusal, match="mail address is a string") as caught:
        reader(normalisers={"/to": "email"}).read({"to": ["Bob@example.com"]})
    assert caught.value.path == "/to"
    assert reader(normalisers={"/to/*": "email"}).read({"to": ["Bob@example.com"]}).identity == (
        b'{"to":["bob@example.com"]}'
    )


def test_values_that_a_normaliser_made_one_differ_nowhere() -> None:
    roles = reader(content=("/url",), normalisers={"/to": NormaliserWith(phone="DE"), "/url": "url"})
    one: dict[str, object] = {"to": "030 123456", "url": "https://example.com"}
    other: dict[str, object] = {"to": "+49 30 123456", "url": "HTTPS://EXAMPLE.com:443/"}
    assert roles.read(one) == roles.read(other)
    assert roles.differing_identity(one, other) + roles.differing_content(one, other) == ()
    assert roles.differing_identity(one, other | {"to": "+49 30 123457"}) == ("/to",)


def test_the_place_of_what_is_no_value_is_seen_from_the_arguments() -> None:
    for roles in (reader(), reader(ignored=("/why",))):
        with pytest.raises(Refusal) as caught:
            roles.read({"a": [1, {"$dt": "today"}]})
        assert caught.value.path == "/a/1/$dt"


def test_identity_that_differs_is_named_by_its_paths() -> None:
    roles = reader(content=("/title",), ignored=("/why",))
    one: dict[str, object] = {"a": 1, "b": {"c": [1, 2], "d": 1.0}, "title": "x", "why": 1, "gone": 0}
    other: dict[str, object] = {"a": 2, "b": {"c": [1, 3], "d": 1}, "title": "y", "why": 2, "new/er": 0}
    assert roles.differing_identity(one, other) == ("/gone", "/new~1er", "/a", "/b/c/1")
    assert roles.differing_content(one, other) == ("/title",)


def test_lists_of_other_lengths_differ_as_a_whole() -> None:
    assert reader().differing_identity({"a": [1, 2]}, {"a": [1]}) == ("/a",)
    assert reader().differing_identity({"a": [1]}, {"a": {"0": 1}}) == ("/a",)


def test_equal_calls_differ_nowhere() -> None:
    assert reader(content=("/t",)).differing_identity({"a": 1, "t": 1}, {"a": 1.0, "t": 2}) == ()
    assert reader().differing_content({"a": 1}, {"a": 2}) == ()


def test_true_and_1_differ() -> None:
    assert reader().differing_identity({"a": True}, {"a": 1}) == ("/a",)


def test_recorded_arguments_are_read_from_their_text() -> None:
    assert arguments_of(b'{"a":[1,{"$int":"9007199254740993"}]}') == {"a": [1, {"$int": "9007199254740993"}]}
