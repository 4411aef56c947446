"""Declarations of tools: what is said on the command line over what holds, and what a declaration changed."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, get_args

import click
import msgspec

from twiceshy_contract.refusals import Refusal
from twiceshy_contract.strict_json import decode
from twiceshy_contract.tools import NormaliserName, NormaliserWith, ToolDeclaration
from twiceshy_contract.wire import read

NORMALISERS: Final = f"{', '.join(get_args(NormaliserName))}, {':…, '.join(NormaliserWith.__struct_fields__)}:…"
"""The names that a normaliser may have, as they are shown."""

Declaration: TypeAlias = Mapping[str, object]
"""A declaration as it came, with what a later service may add to it."""

_PARTS: Final = ("key", "arguments")
_DEFAULTS: Final[Declaration] = msgspec.json.decode(msgspec.json.encode(ToolDeclaration()))


def declared(held: Declaration | None, said: Declaration, roles: Declaration, rule: str | None) -> dict[str, object]:
    """Return the declaration to send: what is said, and for all else what holds (None: the defaults)."""
    base = dict(held or {})
    declaration: dict[str, object] = {**base, **said, "declared_by": "person"}
    if roles:
        declaration["arguments"] = {**_members(base.get("arguments")), **roles}
    if rule is not None:
        declaration["key"] = {**_members(base.get("key")), "rule": rule}
    return declaration


def written(declaration: object, where: str) -> bytes:
    """Write what is a declaration, or say at which place it is none. What a later service added to one passes."""
    body = msgspec.json.encode(declaration)
    try:
        read(body, ToolDeclaration, newer=True)
    except Refusal as error:
        place = f" at {error.path}" if error.path else ""
        raise click.UsageError(f"{where} is not a declaration{place}: {error.reason}.") from error
    return body


def normalisers_of(given: Sequence[str]) -> dict[str, object]:
    """Read `/path=name`, `/path=name:value` and `/path=JSON`; of one path several, in the order given."""
    found: dict[str, list[object]] = {}
    for text in given:
        path, separator, value = text.partition("=")
        if not separator or not path.startswith("/") or not value:
            raise click.UsageError(f"--normaliser {text!r} is not /path=name. Names: {NORMALISERS}.")
        found.setdefault(path, []).extend(_normalisers(text, value))
    return {path: values[0] if len(values) == 1 else values for path, values in found.items()}


def changes(before: Declaration | None, after: Declaration) -> list[str]:
    """Say in lines what a declaration changed, against the defaults where there was none before."""
    old = flat(_DEFAULTS if before is None else before)
    new = flat(after)
    names = [*old, *(name for name in new if name not in old)]
    return [_change(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def flat(declaration: Declaration) -> dict[str, object]:
    """Return the parts of a declaration by name, those of its parts beside the others."""
    parts: dict[str, object] = {}
    for name, value in declaration.items():
        members = value if name in _PARTS and isinstance(value, Mapping) else {name: value}
        parts |= {f"key {member}" if name == "key" else member: held for member, held in members.items()}
    return parts


def shown(value: object) -> str:
    """Write a part of a declaration for a reader."""
    if value is None or value in ([], {}):
        return "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{path}={shown(member)}" for path, member in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value)
    return str(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _normalisers(text: str, value: str) -> list[object]:
    if value[0] not in "{[":
        name, separator, parameter = value.partition(":")
        return [{name: parameter}] if separator else [name]
    try:
        values = decode(value.encode(errors="surrogateescape"))
    except Refusal as error:
        raise click.UsageError(f"--normaliser {text!r} is not JSON behind its `=`: {error.reason}.") from error
    return [*values] if isinstance(values, list) else [values]


def _members(part: object) -> dict[str, object]:
    return part if isinstance(part, dict) else {}


def _change(name: str, old: object, new: object) -> str:
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        gone = [f"-{shown(item)}" for item in old if item not in new]
        come = [f"+{shown(item)}" for item in new if item not in old]
        return f"{name}: {' '.join([*gone, *come]) or shown(new)}"
    return f"{name}: {shown(old)} → {shown(new)}"
