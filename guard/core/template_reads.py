"""Which arguments a template's expressions read: their places, as far as the text of an expression says."""

from collections.abc import Iterator
from typing import Any, Final

from guard.core.templates import compiled, expressions

_ARGUMENTS: Final = "arguments"
_ANY_ITEM: Final = "*"
_PROJECTIONS: Final = frozenset({"filter_projection", "flatten", "pipe", "projection", "value_projection"})


def read_of_arguments(template: str) -> Iterator[tuple[str, ...]]:
    """Name the places in the arguments that a text reads, all that lies below them included; `*` is any item."""
    for expression in expressions(template):
        yield from _read(compiled(expression).parsed)


def _read(node: Any) -> Iterator[tuple[str, ...]]:
    steps, is_all = _leading(node)
    if steps[:1] == (_ARGUMENTS,) or (is_all and not steps):
        yield steps[1:]
    elif not steps:
        for child in node["children"]:
            yield from _read(child)


def _leading(node: Any) -> tuple[tuple[str, ...], bool]:
    """Return the names and numbers that an expression begins with, and whether they are all of it."""
    kind, children = node["type"], node["children"]
    if kind in ("field", "index"):
        return (str(node["value"]) if kind == "field" else _ANY_ITEM,), True
    if kind == "current":
        return (), True
    if kind in _PROJECTIONS:
        return _leading(children[0])[0], False
    steps: tuple[str, ...] = ()
    for child in children if kind in ("index_expression", "subexpression") else ():
        more, is_all = _leading(child)
        steps += more
        if not is_all:
            return steps, False
    return steps, bool(steps)
