"""What pydantic found wrong, error by error: kept as data, and made a ValidationError again where it says the same."""

import importlib
import itertools
from typing import Any, Final

import msgspec

from twiceshy._encode import encode_result
from twiceshy._restore import untag
from twiceshy._said import message_of
from twiceshy_contract.refusals import JsonValue, Refusal

_LIBRARY: Final = "pydantic_core"
_MOST_LINES: Final = 50
_MOST_BYTES: Final = 8192


def written_lines(error: Any) -> dict[str, JsonValue]:
    """Return what a ValidationError of pydantic found, as far as JSON takes it; nothing of any other error."""
    if type(error).__module__.partition(".")[0] != _LIBRARY or not hasattr(error, "errors"):
        return {}
    lines = [
        {name: _plain(member) for name, member in line.items()}
        for line in error.errors(include_url=False)[:_MOST_LINES]
    ]
    for kept in (lines, [{name: line[name] for name in ("type", "loc", "msg")} for line in lines]):
        try:
            written = encode_result(kept)
        except Refusal:
            continue
        if len(msgspec.json.encode(written)) <= _MOST_BYTES:
            return {"title": str(error.title), "errors": written}
    return {}


def made_of_lines(kind: Any, title: str, lines: Any, message: str) -> Any:
    """Return a ValidationError with the recorded message. Raises ValueError where none can be made."""
    core = importlib.import_module(_LIBRARY)
    details = [_detail(core, untag(line)) for line in lines]
    for hides_input, input_type in itertools.product((False, True), ("python", "json")):
        again = kind.from_exception_data(title, details, input_type, hides_input)
        if message_of(again) == message:
            return again
    raise ValueError("what is kept of it does not say the same")


def _detail(core: Any, line: Any) -> dict[str, Any]:
    name, context = line["type"], dict(line.get("ctx") or {})
    if name in ("value_error", "assertion_error"):
        context = {"error": (ValueError if name == "value_error" else AssertionError)(context.get("error", ""))}
    detail: dict[str, Any] = {"loc": tuple(line["loc"]), "input": line["input"]}
    try:
        core.PydanticKnownError(name, context or None)
    except KeyError:  # it is the author's own
        return {**detail, "type": core.PydanticCustomError(name, line["msg"], context or None)}
    return {**detail, "type": name, **({"ctx": context} if context else {})}


def _plain(member: Any) -> Any:
    if not isinstance(member, dict):
        return member
    return {name: message_of(part) if isinstance(part, BaseException) else part for name, part in member.items()}
