"""What expressions are about: a name that is not known where one is evaluated would quietly be null for ever."""

from collections.abc import Collection, Iterator
from typing import Any, Final

from guard.core.templates import check_template, compiled, expressions
from twiceshy_contract.refusals import JsonValue, Refusal, Step
from twiceshy_contract.variables import did_you_mean

ARGUMENTS: Final = "arguments"
OF_CALL: Final = (ARGUMENTS, "key", "run", "step", "tool")
OF_EFFECT: Final = (*OF_CALL, "downstream_key")
_FIRST_ALONE: Final = frozenset(
    {"filter_projection", "flatten", "index_expression", "pipe", "projection", "value_projection"}
)
"""Nodes whose first child alone is looked up in what is known, and the others in what that finds."""


def check_expression_names(expression: str, known: Collection[str], *place: Step) -> None:
    """Check that an expression is one, and about what is known. Raises Refusal with its place in the declaration."""
    for name in _names(compiled(expression, *place).parsed):
        if name not in known:
            near = did_you_mean(name, known)
            if near == "." and ARGUMENTS in known:
                near = f"; an argument is `arguments.{name}`."
            raise Refusal(f"`{name}` is nothing that is known here{near} Known: {', '.join(sorted(known))}", place)


def check_template_names(template: JsonValue, known: Collection[str], *place: Step) -> None:
    """Check a template and that all of its expressions are about what is known. Raises Refusal with its place."""
    check_template(template, *place)
    _check_members(template, known, place)


def _check_members(template: JsonValue, known: Collection[str], place: tuple[Step, ...]) -> None:
    match template:
        case str():
            for expression in expressions(template):
                check_expression_names(expression, known, *place)
        case list():
            for number, item in enumerate(template):
                _check_members(item, known, (*place, number))
        case dict():
            for name, member in template.items():
                _check_members(member, known, (*place, name))
        case _:
            pass


def _names(node: Any) -> Iterator[str]:
    """Yield the names that an expression looks up in what is known."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        yield node["value"]
    elif kind == "subexpression":
        is_current = children[0]["type"] == "current"
        yield from _names(children[1] if is_current else children[0])
    elif kind in _FIRST_ALONE:
        yield from _names(children[0])
    elif kind != "expref":
        for child in children:
            yield from _names(child)
