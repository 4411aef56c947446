"""Recorded values in a few words, for people: what they are, not how they are written.

A value is cut to what fits on a line; what it holds is never guessed. Texts come from models and providers, so that
what would move a cursor is written out.
"""

import base64
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from twiceshy._restore import OPAQUE, is_opaque, untag

SHORT: Final = 72
"""How many characters a value takes on a line."""
_FEWEST: Final = 12
_MOST_MEMBERS: Final = 6


def brief(value: object, room: int = SHORT) -> str:
    """Say in `room` characters, more or less, what a value in tagged form is."""
    if isinstance(value, dict) and is_opaque(value):
        return _not_kept(value[OPAQUE])
    try:
        return shown(untag(value), room)
    except (ValueError, ArithmeticError):  # a tag that holds something else is shown as it is written
        return shown(value, room)


def side_by_side(left: object, right: object, room: int = SHORT) -> tuple[str, str]:
    """Say what two values are that differ; of long texts that begin alike, what is around their first difference."""
    if isinstance(left, str) and isinstance(right, str) and max(len(left), len(right)) > room:
        parted = (at for at, (one, other) in enumerate(zip(left, right, strict=False)) if one != other)
        start = next(parted, min(len(left), len(right))) - room // 3
        if start > 0:
            return quoted(f"…{left[start:]}", room), quoted(f"…{right[start:]}", room)
    return brief(left, room), brief(right, room)


def returned(value: object, room: int = SHORT) -> str:
    """Say what a result is; one that holds nothing says which kind of nothing."""
    match value:
        case None:
            return "nothing"
        case "":
            return "nothing (empty text)"
        case []:
            return "nothing (empty list)"
        case dict() if not value:
            return "nothing (empty object)"
        case _:
            return brief(value, room)


def named(arguments: Mapping[str, object], room: int = SHORT) -> str:
    """List arguments by their names: `jurisdiction 'GB-SCT', limit 3`."""
    parts = [f"{printable(name.removeprefix('$'))} {brief(value, room)}" for name, value in arguments.items()]
    return _listed(parts, 2 * room)


def shown(value: object, room: int) -> str:  # noqa: PLR0911 - one case a kind of value
    """Say what a plain value is."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value, room)
        case int() | float() | Decimal() | UUID():
            return cut(str(value), room)
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S%z}".replace("+0000", "Z")
        case bytes():
            return f"{len(value)} bytes" if len(value) > _FEWEST else f"bytes {base64.b64encode(value).decode()}"
        case dict():
            return _object(value, room)
        case list() | tuple():
            return _list(value, room)
        case _:
            return cut(printable(str(value)), room)


def quoted(text: str, room: int = SHORT) -> str:
    """Put a text between quotation marks, cut to its room."""
    return f"'{cut(printable(text), room)}'"


def cut(text: str, room: int) -> str:
    """Cut a text, and show that it was cut."""
    return text if len(text) <= room else f"{text[: max(room - 1, 1)]}…"


def printable(text: str) -> str:
    """Write out what would move the cursor or change the terminal; the end of a line becomes a mark."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else "⏎" if character == "\n" else _escaped(character)
        for character in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()


def _object(value: Mapping[str, object], room: int) -> str:
    if not value:
        return "{}"
    each = max(room // max(len(value), 1), _FEWEST)
    parts = [f"{printable(str(name))}: {shown(member, each)}" for name, member in value.items()]
    return f"{{{_listed(parts, room)}}}"


def _list(items: Iterable[object], room: int) -> str:
    whole = list(items)
    if not whole:
        return "[]"
    each = max(room // min(len(whole), _MOST_MEMBERS), _FEWEST)
    parts = [shown(item, each) for item in whole[:_MOST_MEMBERS]]
    return f"[{_listed(parts, room, among=len(whole))}]"


def _listed(parts: list[str], room: int, among: int | None = None) -> str:
    """Join as many parts as fit, one at least, and say how many there are beside them."""
    total = len(parts) if among is None else among
    taken: list[str] = []
    used = 0
    for part in parts[:_MOST_MEMBERS]:
        used += len(part) + 2
        if taken and used > room:
            break
        taken.append(part)
    left = total - len(taken)
    return ", ".join(taken) + (f", … {left} more" if left else "")


def _not_kept(opaque: object) -> str:
    kept = opaque if isinstance(opaque, dict) else {}
    kind, reason = kept.get("type", "value"), kept.get("reason", "the record does not say why")
    return f"a {printable(str(kind))} that was not kept ({cut(printable(str(reason)), SHORT)})"
