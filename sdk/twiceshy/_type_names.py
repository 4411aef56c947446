"""Types by name: what the record says of a result's type, and how messages show it."""

import sys
from collections.abc import Iterable
from decimal import Decimal
from types import NoneType
from typing import Any, Final
from uuid import UUID

from twiceshy._said import clean

_LONGEST: Final = 200
_PLAIN: Final = frozenset({NoneType, bool, int, float, str, list, dict, bytes, Decimal, UUID})
"""What tagged form tells by itself."""
_MOST_MEMBERS: Final = 8


def qualified(kind: type) -> str:
    """Name a type as `module.Name`; a built-in one by its bare name."""
    name = clean(kind.__qualname__) or "?"
    return (name if kind.__module__ == "builtins" else clean(f"{kind.__module__}.{name}"))[:_LONGEST]


def class_of(name: str) -> type | None:
    """Find a class by its name among the modules that are loaded; nothing is imported for it."""
    module, _, rest = name.rpartition(".")
    found: Any = sys.modules.get(module or "builtins")
    while module and found is None:
        module, _, outer = module.rpartition(".")
        rest = f"{outer}.{rest}"
        found = sys.modules.get(module)
    for part in rest.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def type_of_result(value: object) -> str | None:
    """Name the type of a result where the record would not tell it: `shop.Hold`, `list[shop.Hold]`."""
    kind = type(value)
    members: Iterable[object] = ()
    before = ""
    if kind is dict and isinstance(value, dict):
        members, before = value.values(), "str, "
    elif kind in (list, tuple, set, frozenset) and isinstance(value, Iterable):
        members = value
    kinds = set(map(type, members))
    if len(kinds) == 1 and not kinds <= _PLAIN:
        return f"{kind.__name__}[{before}{qualified(kinds.pop())}]"[:_LONGEST]
    return None if kind in _PLAIN else qualified(kind)


def held(plain: object, name: str | None) -> str:
    """Say what the record holds, for a message: the type that was put in, where known, and what is left of it."""
    what = "None" if plain is None else _with_article(type(plain).__qualname__)
    return what if name is None else f"{_with_article(name)} ({what}{_members(plain)})"


def shown(annotation: object) -> str:
    """Show an annotation as a person wrote it."""
    if annotation is NoneType:
        return "None"
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def shown_beside(annotation: object, name: str | None) -> str:
    """Show an annotation beside a type's name: in full where both would read the same."""
    if name is not None and isinstance(annotation, type) and name.rpartition(".")[2] == annotation.__name__:
        return qualified(annotation)
    return shown(annotation)


def _members(plain: object) -> str:
    """Name the members of a dict, count those of a list."""
    if isinstance(plain, list):
        return f" of {len(plain)}"
    if not isinstance(plain, dict) or not plain:
        return ""
    names = ", ".join(str(name) for name in list(plain)[:_MOST_MEMBERS])
    more = ", …" if len(plain) > _MOST_MEMBERS else ""
    return clean(f" with the member{'s' if len(plain) > 1 else ''} {names}{more}")


def _with_article(name: str) -> str:
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"
