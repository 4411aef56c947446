"""The names of child runs.

A child's name comes from its parent, the scope, its own name and how often that was met before, so that it is the same
when the parent starts again, and another in a fork of the parent.
"""

import hashlib
from itertools import count
from typing import Final

import msgspec

from twiceshy._boundary_names import required_name

_LONGEST: Final = 200
_READABLE: Final = 150
_SEPARATORS: Final = frozenset(".:~")


class Children:
    """How often each child of a run was begun."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], count[int]] = {}

    def name(self, parent: str, scope: str, name: str) -> str:
        """Return the name of the run that the next such child is. Raises SetupError for what is no name."""
        taken = required_name("The child", name)
        occurrence = next(self._begun.setdefault((scope, taken), count(1)))
        return child_name(parent, scope, taken, occurrence)


def child_name(parent: str, scope: str, name: str, occurrence: int) -> str:
    """Name a child: `parent.name`, `parent.scope:name`, `parent.name~2`; with a digest where that is not plain."""
    path = [*scope.split("/"), name] if scope else [name]
    repeat = "" if occurrence == 1 else f"~{occurrence}"
    plain = f"{parent}.{':'.join(path)}{repeat}"
    if len(plain) <= _LONGEST and not any(_SEPARATORS.intersection(part) for part in path):
        return plain
    whole = msgspec.json.encode([parent, scope, name, occurrence])
    return f"{plain[:_READABLE]}~{hashlib.sha256(whole).hexdigest()[:32]}"
