"""Facts of runs as texts: one for equal facts, and what people type."""

import pytest

from twiceshy_contract.facts import fact_text, typed_fact
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import Fact, RunFacts
from twiceshy_contract.wire import read


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (False, "false"), (1, "1"), (1.0, "1"), (-0.0, "0"), (0.5, "0.5"), (1e300, "1e300"),
        ("", '""'), ("true", '"true"'), ("Über\n", '"Über\\n"'), (2**53 - 1, "9007199254740991"),
    ],
)  # fmt: skip
def test_equal_facts_have_one_text(value: Fact, text: str) -> None:
    assert fact_text(value) == text


@pytest.mark.parametrize("value", [2**53, -(2**53), 10**400, "\x01" * 500, "x" * 2000, "\udc80"])
def test_a_fact_that_could_not_be_found_again_is_refused(value: Fact) -> None:
    with pytest.raises(Refusal, match="a fact"):
        fact_text(value)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("escalated=true", "escalated", True), ("escalated=false", "escalated", False), ("score=61", "score", 61),
        ("score=61.5", "score", 61.5), ("outcome=resolved", "outcome", "resolved"), ('code="61"', "code", "61"),
        ("code=061", "code", "061"), ("code=", "code", ""), ("code=a=b", "code", "a=b"), ("code=null", "code", "null"),
        ("code=[1]", "code", "[1]"), ("code=NaN", "code", "NaN"), ("code=1e999", "code", "1e999"),
        ("code=True", "code", "True"),
    ],
)  # fmt: skip
def test_a_typed_fact_is_json_where_it_can_be_and_otherwise_a_text(text: str, name: str, value: Fact) -> None:
    found = typed_fact(text)
    assert found == (name, value)
    assert type(found[1]) is type(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("escalated", "name=value"), ("", "name=value"), ("=x", "not the name of a fact"),
        ("Score=1", "not the name of a fact"), ("a b=1", "not the name of a fact"),
        (f"{'a' * 51}=1", "not the name of a fact"), ("n=9007199254740992", "whole number"),
    ],
)  # fmt: skip
def test_what_is_no_fact_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        typed_fact(text)


@pytest.mark.parametrize(
    ("body", "path", "said"),
    [
        (b'{"facts": {}}', "/facts", "length >= 1"),
        (b'{"facts": {"ok": 1, "Score": 1}}', "/facts/Score", "not the name of a fact"),
        (b'{"facts": {"ok": 1, "score": null}}', "/facts/score", "got null"),
        (b'{"facts": {"score": [1]}}', "/facts/score", "got array"),
        (b'{"fact": {"score": 1}}', "/fact", "not known"),
    ],
)
def test_facts_are_read_strictly_and_a_refusal_names_the_fact(body: bytes, path: str, said: str) -> None:
    with pytest.raises(Refusal, match=said) as caught:
        read(body, RunFacts)
    assert caught.value.path == path
