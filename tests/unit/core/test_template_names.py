"""Expressions are about what is known where they are evaluated; anything else would be null for ever."""

import pytest

from guard.core.template_names import OF_CALL, OF_EFFECT, check_expression_names, check_template_names
from twiceshy_contract.refusals import JsonValue, Refusal


@pytest.mark.parametrize(
    "expression",
    [
        "arguments.amount > `50`",
        "length(arguments.lines[?price > `5`].price) > `1` && !run",
        "arguments.lines[*].price | [0]",
        "arguments.lines[].price || step",
        "arguments.*.price",
        "arguments.lines[0:2].price",
        "sort_by(arguments.lines, &price)[0].name",
        "[arguments.a, tool]",
        "{a: arguments.a, of: key}",
        "@.arguments.a",
        "@",
        "[0]",
        "'amount'",
        "arguments.items[?amount == tax].{a: amount}",
    ],
)
def test_an_expression_over_the_call_is_taken(expression: str) -> None:
    check_expression_names(expression, OF_CALL)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("amount > `50`", "amount"),
        ("arguments.a && amount", "amount"),
        ("amount.value", "amount"),
        ("amount[0]", "amount"),
        ("amount[*].x", "amount"),
        ("amount | x", "amount"),
        ("max([amount, tool])", "amount"),
        ("{a: amount}", "amount"),
        ("@.amount.x", "amount"),
        ("amount[?arguments]", "amount"),
    ],
)
def test_a_name_that_is_not_known_is_refused_with_the_way_to_an_argument(expression: str, name: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_expression_names(expression, OF_CALL, "approval", "when")
    assert (caught.value.path, caught.value.reason) == (
        "/approval/when",
        (
            f"`{name}` is nothing that is known here; an argument is `arguments.{name}`. "
            "Known: arguments, key, run, step, tool"
        ),
    )


@pytest.mark.parametrize(
    ("template", "place", "reason"),
    [
        ("${reslt.id}", "/compensation", "`reslt` is nothing that is known here; did you mean result?"),
        (
            {"a": ["x", 1, {"b": "to ${argument.to}"}]},
            "/compensation/a/2/b",
            "`argument` is .* did you mean arguments?",
        ),
        ({"a": "${arguments.}"}, "/compensation/a", "no JMESPath expression"),
        ({"a": "${arguments.x"}, "/compensation/a", "begins an expression"),
    ],
)
def test_a_template_is_refused_at_its_place(template: JsonValue, place: str, reason: str) -> None:
    with pytest.raises(Refusal, match=reason) as caught:
        check_template_names(template, (*OF_EFFECT, "result"), "compensation")
    assert caught.value.path == place


def test_where_there_are_no_arguments_none_is_named() -> None:
    with pytest.raises(Refusal) as caught:
        check_expression_names("boby.id", ("body", "headers", "status"))
    assert (
        caught.value.reason == "`boby` is nothing that is known here; did you mean body? Known: body, headers, status"
    )
    with pytest.raises(Refusal) as caught:
        check_expression_names("amount", ("body", "headers", "status"))
    assert caught.value.reason == "`amount` is nothing that is known here. Known: body, headers, status"
