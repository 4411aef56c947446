"""Normalisers as code declares them, checked where they are said, in words for people."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeAlias, TypedDict, get_args

import msgspec

from twiceshy.exceptions import SetupError
from twiceshy_contract.tools import ArgumentRoles, Normaliser, NormaliserName


class PhoneOf(TypedDict):
    """`{"phone": "DE"}`: telephone numbers; one without a country code is of that region."""

    phone: str


class AliasOf(TypedDict):
    """`{"alias": {"alex@example.com": "user-7"}}`: what each spelling means."""

    alias: Mapping[str, str | int]


SingleNormaliser: TypeAlias = NormaliserName | PhoneOf | AliasOf
NormaliserOption: TypeAlias = SingleNormaliser | Sequence[SingleNormaliser]


def checked_normalisers(tool: str, said: Mapping[str, NormaliserOption]) -> dict[str, Normaliser]:
    """Read the normalisers of a tool. Raises SetupError that names the path and what may be said."""
    if not isinstance(said, Mapping):
        raise SetupError(f"{tool}: normalisers are a mapping from JSON Pointers, such as {{'/to': 'email'}}.")
    return {path: _checked(tool, path, option) for path, option in said.items()}


def _checked(tool: str, path: str, option: NormaliserOption) -> Normaliser:
    for name in _names(option):
        if name not in get_args(NormaliserName):
            raise SetupError(f"{tool}: {name!r} at {path!r} is no normaliser{_nearest(name)}. {_choice()}")
    try:
        roles = msgspec.convert({"normalisers": {path: option}}, ArgumentRoles)
    except msgspec.ValidationError as error:
        reason = str(error).partition(" - at ")[0]
        raise SetupError(f"{tool}: the normaliser at {path!r} cannot be taken: {reason}. {_choice()}") from error
    return roles.normalisers[path]


def _names(option: object) -> Iterable[str]:
    """Return what is said as a name, at the top or in a list; a mapping's only key is the name of its normaliser."""
    parts = option if isinstance(option, (list, tuple)) else [option]
    return (part for part in parts if isinstance(part, str))


def _nearest(name: str) -> str:
    found = get_close_matches(name, get_args(NormaliserName), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def _choice() -> str:
    names = ", ".join(repr(name) for name in get_args(NormaliserName))
    return f"Say {names}, {{'phone': 'DE'}}, {{'alias': {{'alex@example.com': 'user-7'}}}}, or a list of two or more."
