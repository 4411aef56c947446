"""Which arguments the text of a template reads."""

import pytest

from guard.core.template_reads import read_of_arguments


@pytest.mark.parametrize(
    ("template", "places"),
    [
        ("plain", []),
        ("room-${arguments.room}-${key}", [("room",)]),
        ('${arguments."a b".c}${arguments.d}', [("a b", "c"), ("d",)]),
        ("${arguments.rooms[0].name}", [("rooms", "*", "name")]),
        ("${arguments.rooms[*].name}", [("rooms",)]),
        ("${arguments.rooms[?floor == `2`].name}", [("rooms",)]),
        ("${arguments.rooms | [0]}", [("rooms",)]),
        ("${arguments.*.name}", [()]),
        ("${arguments.[a, b]}", [()]),
        ("${arguments}", [()]),
        ("${values(arguments)}", [()]),
        ("${@}", [()]),
        ("${@.arguments.x}", [("x",)]),
        ("${arguments.x || run}", [("x",)]),
        ("${join('-', [arguments.a, arguments.b.c])}", [("a",), ("b", "c")]),
    ],
)
def test_the_places_that_a_text_reads_are_named(template: str, places: list[tuple[str, ...]]) -> None:
    assert list(read_of_arguments(template)) == places
