"""Normalisers on the wire: strict, and one spelling for each meaning."""

import msgspec
import pytest

from twiceshy_contract.canonical import canonical
from twiceshy_contract.tools import ArgumentRoles


def roles(said: str) -> ArgumentRoles:
    return msgspec.json.decode(f'{{"normalisers":{{"/to":{said}}}}}', type=ArgumentRoles)


@pytest.mark.parametrize(
    "said",
    [
        '"utc"',
        '{"phone":"DE"}',
        '{"alias":{"alex@example.com":"user-7","kim@example.com":8}}',
        '["email",{"alias":{"alex@example.com":"user-7"}}]',
        '["nfc","trim_casefold",{"phone":"DE"}]',
    ],
)
def test_a_normaliser_is_read_and_written_to_the_letter(said: str) -> None:
    assert f'"/to":{said}'.encode() in msgspec.json.encode(roles(said))


def test_the_order_of_an_alias_map_is_no_meaning() -> None:
    one, other = roles('{"alias":{"a":"x","b":"y"}}'), roles('{"alias":{"b":"y","a":"x"}}')
    assert one == other
    assert canonical(msgspec.to_builtins(one)) == canonical(msgspec.to_builtins(other))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ('"rot13"', "Invalid enum value 'rot13'"),
        ("5", "Expected `str | object | array`"),
        ("null", "Expected"),
        ("{}", "holds exactly one of phone, alias"),
        ('{"phone":"DE","alias":{"a":"b"}}', "holds exactly one of phone, alias"),
        ('{"phone":"DE","alias":null}', "Expected `object`"),
        ('{"email":{}}', "unknown field `email`"),
        ('{"phone":"de"}', "matching regex"),
        ('{"phone":"DE\\n"}', "matching regex"),
        ('{"phone":null}', "Expected `str`"),
        ('{"alias":{}}', "length >= 1"),
        ('{"alias":{"a":true}}', "got `bool`"),
        ('{"alias":{"a":9007199254740992}}', "<= 9007199254740991"),
        ('{"alias":{"$dec":"1"}}', "matching regex"),
        ("[]", "length >= 2"),
        ('["utc"]', "length >= 2"),
        ('["email",["utc"]]', "got `array`"),
        ('["email","email"]', "the normalisers of /to name one twice"),
        ('["phone",{"phone":"DE"}]', "the normalisers of /to name one twice"),
        ('[{"alias":{"a":"b"}},"email"]', "the alias of /to is the last"),
    ],
)
def test_a_second_spelling_and_what_means_nothing_are_refused(said: str, reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason.replace("|", r"\|")):
        roles(said)
