"""Templates: values of expressions in JSON, and refusals that say what is wrong without the value."""

import pytest

from guard.core.templates import as_tagged, check_template, is_true, rendered, rendered_plain, rendered_text, value_of
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


TAGGED: dict[str, JsonValue] = {
    "arguments": {
        "amount": {"$dec": "5000"},
        "fee": {"$dec": "0.10"},
        "count": {"$int": "9007199254740993"},
        "at": {"$dt": "2026-10-12T14:00:00Z"},
        "id": {"$uuid": "0192f5b0-7c3a-7000-8000-000000000001"},
        "blob": {"$b64": ""},
        "huge": {"$dec": "1E+400"},
        "$$own": {"$$int": "5"},
        "items": [{"price": {"$dec": "12.50"}}, {"price": {"$dec": "1"}}],
        "plain": 5,
    }
}


@pytest.mark.parametrize(
    "condition",
    [
        "arguments.amount > `100`",
        "arguments.amount == `5000`",
        "arguments.fee == `0.1`",
        "arguments.huge > `100`",
        "arguments.count == `9007199254740993`",
        "arguments.at > '2026-10-01'",
        "starts_with(arguments.id, '0192f5b0')",
        "arguments.blob == ''",
        """arguments."$own"."$int" == '5'""",
        "sum(arguments.items[].price) == `13.5`",
        "type(arguments.amount) == 'number' && type(arguments.at) == 'string'",
        "length(arguments.items[?price > `2`]) == `1`",
    ],
)
def test_a_condition_sees_plain_values(condition: str) -> None:
    assert is_true(condition, TAGGED)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("${arguments.amount}", {"$dec": "5000"}),
        ("${arguments.count}", {"$int": "9007199254740993"}),
        ("${arguments.huge}", {"$dec": "1E+400"}),
        ("${arguments.at}", {"$dt": "2026-10-12T14:00:00Z"}),
        ("${arguments.blob}", {"$b64": ""}),
        ("${arguments.items[?price > `2`].price | [0]}", {"$dec": "12.50"}),
        ('${arguments."$own"}', {"$$int": "5"}),
        ("${arguments.missing || arguments.fee}", {"$dec": "0.10"}),
        ("${arguments.plain}", 5),
        ("${sum(arguments.items[].price)}", 13.5),
        (
            "${arguments.count} of ${arguments.amount}, ${arguments.at}",
            "9007199254740993 of 5000, 2026-10-12T14:00:00Z",
        ),
    ],
)
def test_a_template_passes_a_value_on_under_its_tag_and_writes_it_out_in_words(
    template: JsonValue, value: JsonValue
) -> None:
    assert rendered(template, TAGGED) == value


def test_who_knows_no_tags_is_given_plain_values() -> None:
    template: JsonValue = {"a": "${arguments.fee}", "b": "${arguments.count}", "c": ["${arguments.at}"]}
    plain = {"a": 0.1, "b": 9007199254740993, "c": ["2026-10-12T14:00:00Z"]}
    assert rendered_plain(template, TAGGED) == plain
    assert rendered_plain('${arguments."$own"}', TAGGED) == {"$int": "5"}
    with pytest.raises(Refusal, match="too large"):
        rendered_plain("${arguments.huge}", TAGGED)


def test_plain_json_of_others_is_tagged_so_that_it_reads_the_same() -> None:
    assert as_tagged({"$int": [{"$x": 1.5}], "a": 2**70, "b": None}) == {
        "$$int": [{"$$x": 1.5}], "a": {"$int": "1180591620717411303424"}, "b": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("arguments.secret > `3`", "it puts together values of kinds that do not go together"),
        ("arguments.list[::0]", "it cannot be evaluated (ValueError)"),
        ("&arguments", "an expression has a value that is no JSON"),
        ("arguments.broken", "it cannot be evaluated (InvalidOperation)"),
    ],
)
def test_whatever_goes_wrong_in_an_expression_is_a_refusal(expression: str, reason: str) -> None:
    known: dict[str, JsonValue] = {"arguments": {"secret": "sesam", "list": [1]}}
    if "broken" in expression:
        known = {"arguments": {"broken": {"$dec": "sesam"}}}
    with pytest.raises(Refusal) as caught:
        value_of(expression, known)
    assert caught.value.reason == f"the expression {expression!r} fails: {reason}"


def test_an_expression_that_is_nested_too_deep_to_read_is_refused() -> None:
    with pytest.raises(Refusal, match="RecursionError"):
        check_template("${" + "[" * 900 + "a" + "]" * 900 + "}")


def test_what_looks_like_a_tag_and_is_none_is_left_as_it_is() -> None:
    assert is_true("""arguments."$opaque".type == 'Socket'""", {"arguments": {"$opaque": {"type": "Socket"}}})


def test_a_number_without_backticks_is_told_where_numbers_stand() -> None:
    with pytest.raises(Refusal) as caught:
        check_template("${arguments.amount > 50}")
    assert caught.value.reason.endswith('token "50" (NUMBER); numbers stand in backticks: amount > `50`')
