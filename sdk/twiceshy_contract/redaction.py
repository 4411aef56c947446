"""Redaction: what must not be stored is left out of the arguments before they reach the store.

A record holds a mark in its place. What is recorded is read again, or run again, beside a call that means the same, and
the call's own values fill the marks.

What may be a secret is never stored: where a value has another shape than a path expects, all of it is left out. Only a
member that is missing, and null, leave nothing out.
"""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from twiceshy_contract.canonical import is_tag
from twiceshy_contract.refusals import JsonValue, Step, pointer, steps_of

REDACTED: Final = "[redacted]"
"""What a record holds in the place of a redacted value."""
_EVERY: Final = "*"


def redacted(arguments: dict[str, object], pointers: Sequence[str]) -> dict[str, object]:
    """Return arguments with the mark at these places (JSON Pointers, `*` for every member of a list or an object)."""
    result = arguments
    for path in pointers:
        first, *rest = steps_of(path) or (_EVERY,)
        result = _members(result, first, tuple(rest))
    return result


def restored(recorded: dict[str, object], current: dict[str, object]) -> dict[str, object]:
    """Return recorded arguments with the current call's values in the place of the marks; what it lacks stays one."""
    return cast("dict[str, object]", _filled(recorded, current))


def marks(recorded: object) -> tuple[str, ...]:
    """Name the places that hold the mark."""
    return tuple(pointer(steps) for steps in _marks(recorded, ()))


def missing(recorded: dict[str, object], current: dict[str, object]) -> tuple[str, ...]:
    """Name the marks that a call cannot fill: it has nothing at their place."""
    return tuple(pointer(steps) for steps in _marks(recorded, ()) if not _has(current, steps))


def _marked(value: object, steps: tuple[str, ...]) -> object:
    if not steps:
        return REDACTED
    step, rest = steps[0], steps[1:]
    is_number = step.isdecimal()
    if isinstance(value, dict) and not is_tag(cast("JsonValue", value)) and (step in value or not is_number):
        return _members(value, step, rest)
    if isinstance(value, list) and (step == _EVERY or is_number):
        wanted = range(len(value)) if step == _EVERY else (int(step),)
        return [_marked(item, rest) if at in wanted else item for at, item in enumerate(value)]
    return None if value is None else REDACTED


def _members(value: dict[str, object], step: str, rest: tuple[str, ...]) -> dict[str, object]:
    """Mark the members that a step means; a name of one's own that begins with `$` is written with one more."""
    return {
        name: _marked(member, rest) if step == _EVERY or name in (step, f"${step}") else member
        for name, member in value.items()
    }


def _filled(recorded: object, current: object) -> object:
    if recorded == REDACTED:
        return current
    if isinstance(recorded, dict) and isinstance(current, dict):
        return {name: _filled(member, current.get(name, member)) for name, member in recorded.items()}
    if isinstance(recorded, list) and isinstance(current, list):
        return [_filled(item, current[at]) if at < len(current) else item for at, item in enumerate(recorded)]
    return recorded


def _marks(value: object, steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    if value == REDACTED:
        yield steps
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _marks(member, (*steps, name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _marks(item, (*steps, at))


def _has(value: object, steps: tuple[Step, ...]) -> bool:
    if not steps:
        return True
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        return step in value and _has(value[step], rest)
    return isinstance(value, list) and isinstance(step, int) and step < len(value) and _has(value[step], rest)
