"""Normalisers as code declares them: taken in every shape, and refused in words that say what may be said."""

from types import MappingProxyType
from typing import Any

import pytest

from twiceshy._options import specify
from twiceshy.exceptions import SetupError
from twiceshy_contract.tools import NormaliserWith


def send(to: str) -> None:
    """Send something."""


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("email", "email"),
        ({"phone": "DE"}, NormaliserWith(phone="DE")),
        ({"alias": {"alex": "user-7", "kim": 8}}, NormaliserWith(alias={"alex": "user-7", "kim": 8})),
        (["nfc", "trim_casefold"], ("nfc", "trim_casefold")),
        (("email", {"alias": {"a@b.example": "u"}}), ("email", NormaliserWith(alias={"a@b.example": "u"}))),
        ({"alias": MappingProxyType({"alex": "user-7"})}, NormaliserWith(alias={"alex": "user-7"})),
    ],
)
def test_a_normaliser_is_declared_as_it_is_said(said: Any, taken: object) -> None:
    spec = specify(send, {"normalisers": {"/to": said}})
    assert spec.declaration.arguments.normalisers == {"/to": taken}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("emial", ["'emial' at '/to' is no normaliser", "did you mean 'email'?", "'trim_casefold'", "{'phone': 'DE'}"]),
        (["nfc", "casefold"], ["'casefold' at '/to'", "did you mean 'trim_casefold'?"]),
        ("rot13", ["'rot13' at '/to' is no normaliser. Say 'email'"]),
        ({"fone": "DE"}, ["the normaliser at '/to' cannot be taken: Object contains unknown field `fone`. Say"]),
        ({"phone": "de"}, ["'/to' cannot be taken", "[A-Z]"]),
        ({"phone": "DE", "alias": {"a": "b"}}, ["exactly one of phone, alias"]),
        (["email"], ["length >= 2", "a list of two or more"]),
        (["email", "email"], ["the normalisers of /to name one twice"]),
        ([{"alias": {"a": "b"}}, "email"], ["the alias of /to is the last of its normalisers"]),
        (5, ["'/to' cannot be taken"]),
        (None, ["'/to' cannot be taken"]),
    ],
)
def test_what_is_no_normaliser_is_refused_in_words_for_people(said: Any, words: list[str]) -> None:
    with pytest.raises(SetupError) as caught:
        specify(send, {"normalisers": {"/to": said}})
    assert str(caught.value).startswith("send: ")
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize("said", [["email"], "email", None])
def test_normalisers_that_are_no_mapping_are_refused(said: Any) -> None:
    with pytest.raises(SetupError, match="normalisers are a mapping from JSON Pointers"):
        specify(send, {"normalisers": said})


def test_a_path_that_is_no_pointer_is_refused() -> None:
    with pytest.raises(SetupError, match="send"):
        specify(send, {"normalisers": {"to": "email"}})
