"""YAML says what JSON can say, and nothing else."""

import pytest

from twiceshy._commands.yaml_values import Flaw, Loader, value_of


def read(text: str) -> object:
    return value_of(Loader(text).get_single_node())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", {"a": "yes"}),
        ("no: off", {"no": "off"}),
        ("a: 12:30", {"a": "12:30"}),
        ("a: 2026-10-12", {"a": "2026-10-12"}),
        ("a: 007", {"a": "007"}),
        ("a: 0x1f", {"a": "0x1f"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: .inf", {"a": ".inf"}),
        ("a: +5", {"a": "+5"}),
        ("200: ok", {"200": "ok"}),
        ("a: -5", {"a": -5}),
        ("a: 1.50", {"a": 1.5}),
        ("a: 1e3", {"a": 1000.0}),
        ("a: '1'", {"a": "1"}),
        ("a: !!str 1", {"a": "1"}),
        ("a: !!int 1", {"a": 1}),
        ("[true, false, null, ~, True]", [True, False, None, None, "True"]),
        ("a:", {"a": None}),
        ("&x a: &y [1]\nb: *y", {"a": [1], "b": [1]}),
        ('a: "\\ud83d\\ude00"', {"a": "\U0001f600"}),
        ("'<<': 1", {"<<": 1}),
        ("text", "text"),
    ],
)
def test_plain_words_are_what_json_takes_them_for_and_else_texts(text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("a: 1\na: 2", "the key 'a' stands twice in one mapping, first in line 1", (2, 1)),
        ("1: a\n'1': b", "the key '1' stands twice", (2, 1)),
        ("? [a]\n: 1", "a key is a text", (1, 3)),
        ("<<: {a: 1}", "merge keys", (1, 1)),
        ("a: !!binary aGk=", "is not read", (1, 4)),
        ("a: !mine {}", "is not read", (1, 4)),
        ("a: !!set {b}", "is not read", (1, 4)),
        ("a: !!int x", "is not of the type of its tag", (1, 4)),
        ("a: 1e999", "larger than any double", (1, 4)),
        ("a: " + "9" * 5000, "too many digits", (1, 4)),
        ('a: "\\ud800"', "lone surrogate", (1, 4)),
        ("&a [*a]", "nested more than 64 deep", (1, 1)),
        ("[" * 70 + "]" * 70, "nested more than 64 deep", (1, 66)),
        ("", "the document is empty", None),
    ],
)
def test_what_json_cannot_say_is_refused_by_its_place(text: str, message: str, at: tuple[int, int] | None) -> None:
    with pytest.raises(Flaw, match=message.replace("(", r"\(")) as caught:
        read(text)
    assert caught.value.at == at


def test_aliases_that_stand_for_billions_of_values_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(Flaw, match="more than 1,000,000 values"):
        read("\n".join(lines))
