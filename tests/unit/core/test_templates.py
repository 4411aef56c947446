"""Templates: values of expressions in JSON, and refusals that say what is wrong without the value."""

import pytest

from guard.core.templates import check_template, is_true, rendered, rendered_text, value_of
from twiceshy_contract.refusals import JsonValue, Refusal

KNOWN: dict[str, JsonValue] = {"arguments": {"to": "bob", "amount": 5, "secret": "sesam"}, "run": None}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("${arguments.amount}", 5),
        ("pay ${arguments.to} ${arguments.amount}", "pay bob 5"),
        ("${run}", None),
        ("of ${run}", "of "),
        (["${arguments.to}", {"a": "${arguments}"}, 7], ["bob", {"a": KNOWN["arguments"]}, 7]),
        ("plain", "plain"),
    ],
)
def test_a_template_is_rendered(template: JsonValue, value: JsonValue) -> None:
    check_template(template)
    assert rendered(template, KNOWN) == value


def test_values_within_a_text_may_be_quoted() -> None:
    assert rendered_text("/${arguments.to}/", KNOWN, str.upper) == "/BOB/"


def test_only_true_is_true() -> None:
    assert is_true("arguments.amount > `4`", KNOWN)
    assert not is_true("arguments.to", KNOWN)


def test_what_is_no_expression_is_refused_with_its_place() -> None:
    with pytest.raises(Refusal, match="this is no JMESPath expression") as caught:
        check_template({"a": ["x", "${b..c}"]}, "summary")
    assert caught.value.path == "/summary/a/1"


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("abs(arguments.secret)", "the expression 'abs(arguments.secret)' fails: abs() takes number, not string"),
        ("contains(arguments.amount, 'x')", "fails: contains() takes array or string, not number"),
        ("unknown(arguments.secret)", "fails: Unknown function: unknown()"),
    ],
)
def test_a_refusal_never_says_the_value(expression: str, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        value_of(expression, KNOWN)
    assert reason in caught.value.reason
    assert "sesam" not in caught.value.reason
