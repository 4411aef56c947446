"""Errors in the record, and out of it: raised again with their own type as far as this process knows that type.

What is kept are the arguments and the attributes that JSON takes, the members of a group, what pydantic found, and the
answer of a server that a client raised. An error is made again as pickle would, or else without its constructor; where
it does not come to the same type, message and arguments, it is a RecordedError with the same attributes.
"""

from collections.abc import Callable, Iterator
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

import msgspec

from twiceshy._encode import encode_result
from twiceshy._raised_answers import give_answer, written_answer
from twiceshy._raised_lines import made_of_lines, written_lines
from twiceshy._recording_errors import RecordedError
from twiceshy._restore import untag
from twiceshy._said import message_of
from twiceshy._type_names import class_of, qualified
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.refusals import JsonValue

_MOST_BYTES: Final = 8192
_MOST_OF_GROUP: Final = 24576
_DEEPEST_GROUP: Final = 4
_MOST_MEMBERS: Final = 100
_SLOTS: Final = (MemberDescriptorType, GetSetDescriptorType)
_UNKEPT: Final = ("args", "obj")
"""Slots that are kept otherwise, or not at all: an AttributeError holds the whole object that it was looked for in."""


def written_error(error: BaseException, *, depth: int = 0) -> ErrorOutcome:
    """Write an error: the name of its type, its message, and the rest of it as far as JSON takes that."""
    kind = error.type if isinstance(error, RecordedError) else qualified(type(error))
    data: dict[str, Any] = {"args": _taken(_args(error)), "state": _taken(_state(error))}
    data["notes"] = _taken([note for note in getattr(error, "__notes__", ()) if isinstance(note, str)])
    data |= _group(error, depth) | _lines(error) | written_answer(error)
    return ErrorOutcome(
        type=kind, message=message_of(error), data={name: part for name, part in data.items() if part} or None
    )


def read_error(error: ErrorOutcome) -> BaseException:
    """Return an error of the record in its own type, else a RecordedError."""
    kind = class_of(error.type)
    data = error.data if isinstance(error.data, dict) else {}
    if kind is not None and issubclass(kind, Exception):
        for make in _WAYS:
            try:
                again = make(kind, error, data)
                _complete(again, data)
                if type(again) is kind and message_of(again) == error.message and _has_args(again, data):
                    return _noted(again, data)
            except Exception:  # noqa: BLE001, S112 - a foreign type may refuse anything
                continue
    return _noted(_unknown(error, data), data)


def _noted(error: BaseException, data: dict[str, Any]) -> BaseException:
    """Give an error the notes that it had."""
    for note in data.get("notes") or ():
        error.add_note(note)
    return error


def _unknown(error: ErrorOutcome, data: dict[str, Any]) -> RecordedError:
    """Return an error whose type cannot be had, with the attributes that were kept of it."""
    again = RecordedError(error.message, type=error.type)
    try:
        state = untag(data.get("state", {}))
        if isinstance(state, dict):
            vars(again).update({name: member for name, member in state.items() if name != "type"})
        if "errors" in data:
            vars(again)["errors"] = untag(data["errors"])
        if "group" in data:
            vars(again)["exceptions"] = tuple(_members(data))
        give_answer(again, data)
    except Exception as broken:  # noqa: BLE001 - whatever stands in the record, its message is told
        again.add_note(f"Not all that the record has of it can be read: {message_of(broken)}")
    return again


def _of_group(kind: Any, _error: ErrorOutcome, data: dict[str, Any]) -> Any:
    return kind(data["args"][0], _members(data))


def _of_lines(kind: Any, error: ErrorOutcome, data: dict[str, Any]) -> Any:
    again = made_of_lines(kind, data["title"], data["errors"], error.message)
    again.args = ()  # it has none where a model raised it
    return again


def _called(kind: Any, error: ErrorOutcome, data: dict[str, Any]) -> Any:
    return kind(*_recorded_args(error, data))


def _without_constructor(kind: Any, error: ErrorOutcome, data: dict[str, Any]) -> Any:
    args = _recorded_args(error, data)
    again = kind.__new__(kind, *args)
    again.args = tuple(args)
    return again


_WAYS: Final[tuple[Callable[[Any, ErrorOutcome, dict[str, Any]], Any], ...]] = (
    _of_group,
    _of_lines,
    _called,
    _without_constructor,
)


def _recorded_args(error: ErrorOutcome, data: dict[str, Any]) -> list[Any]:
    args = untag(data.get("args", [error.message] if error.message else []))
    return args if isinstance(args, list) else []


def _has_args(again: BaseException, data: dict[str, Any]) -> bool:
    return "args" not in data or _taken(_args(again)) == data["args"]


def _complete(again: BaseException, data: dict[str, Any]) -> None:
    """Give an error the attributes that it had."""
    state = untag(data.get("state", {}))
    for name, member in state.items() if isinstance(state, dict) else ():
        if not isinstance(getattr(type(again), name, None), _SLOTS):
            vars(again)[name] = member
        elif getattr(again, name, None) != member:
            setattr(again, name, member)
    give_answer(again, data)


def _members(data: dict[str, Any]) -> list[BaseException]:
    return [read_error(msgspec.convert(member, ErrorOutcome)) for member in data["group"]]


def _group(error: BaseException, depth: int) -> dict[str, JsonValue]:
    """Write the errors in a group; without their attributes where it is large."""
    if not isinstance(error, BaseExceptionGroup) or depth >= _DEEPEST_GROUP or len(error.exceptions) > _MOST_MEMBERS:
        return {}
    members = [written_error(member, depth=depth + 1) for member in error.exceptions]
    for kept in (members, [ErrorOutcome(type=member.type, message=member.message) for member in members]):
        if len(msgspec.json.encode(kept)) <= _MOST_OF_GROUP:
            return {"group": msgspec.to_builtins(kept)}
    return {}


def _lines(error: BaseException) -> dict[str, JsonValue]:
    try:
        return written_lines(error)
    except Exception:  # noqa: BLE001 - what it was given may raise anything
        return {}


def _args(error: BaseException) -> list[Any]:
    return [error.message] if isinstance(error, BaseExceptionGroup) else list(error.args)


def _state(error: BaseException) -> dict[str, object]:
    own = {**dict(_in_slots(error)), **vars(error)}
    return {name: member for name, member in own.items() if name[:1] != "_" and _taken(member) is not None}


def _in_slots(error: BaseException) -> Iterator[tuple[str, object]]:
    """Yield what an error has in slots and not among its arguments, such as the name of a file."""
    for kind in type(error).__mro__:
        for name, slot in vars(kind).items():
            if not isinstance(slot, _SLOTS) or name[:1] == "_" or name in _UNKEPT:
                continue
            member = getattr(error, name, None)
            if member is not None and not any(member is each for each in error.args):
                yield name, member


def _taken(value: object) -> Any:
    """Return a value in tagged form; None where it cannot be written, or is large."""
    try:
        written = encode_result(value)
    except Exception:  # noqa: BLE001 - a property of the value's own may raise anything
        return None
    return written if len(msgspec.json.encode(written)) <= _MOST_BYTES else None
