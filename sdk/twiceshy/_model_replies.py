"""What was said to a model and by it, out of the requests and responses of the usual interfaces.

Chat completions, responses and messages are known by their members, wherever they come from: of a client's own object,
of a dict, or of the body of an HTTP exchange. Whatever is none of them is left to who shows it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec


class Asked(NamedTuple):
    """A request: how many messages it holds, who wrote the last, and its text."""

    messages: int
    role: str
    text: str


class WantedCall(NamedTuple):
    """A call that a model asks for. `arguments` are None where they cannot be read."""

    name: str
    arguments: Mapping[str, object] | None


class Reply(NamedTuple):
    """What a model answered: its text, and the calls that it asks for."""

    text: str
    calls: tuple[WantedCall, ...]


def asked_of(arguments: Mapping[str, object]) -> Asked | None:
    """Read a request; None where it is in no known form."""
    request = _body(arguments)
    if not isinstance(request, Mapping):
        return None
    messages = request.get("messages", request.get("input"))
    if isinstance(messages, str):
        return Asked(1, "user", messages)
    if not isinstance(messages, list) or not messages:
        prompt = request.get("prompt")
        return Asked(1, "user", prompt) if isinstance(prompt, str) else None
    last = messages[-1]
    if not isinstance(last, Mapping):
        return None
    role = last.get("role", last.get("type", "message"))
    text = _text(last.get("content", last.get("output")))
    return Asked(len(messages), str(role), text)


def reply_of(value: object) -> Reply | None:  # noqa: PLR0911 - one case a form
    """Read a response; None where it is in no known form."""
    response = _body(value)
    if isinstance(response, str):
        return Reply(response, ())
    if not isinstance(response, Mapping):
        return None
    match response:
        case {"choices": [{"message": Mapping() as message}, *_]}:
            return Reply(_text(message.get("content")), tuple(_chat_calls(message)))
        case {"output": [*items]}:
            texts = [_text(item.get("content")) for item in items if isinstance(item, Mapping)]
            return Reply(" ".join(text for text in texts if text), tuple(_calls_among(items)))
        case {"content": [*blocks], "role": _}:
            return Reply(_text(blocks), tuple(_calls_among(blocks)))
        case {"role": _, "content": str() | None}:
            return Reply(_text(response.get("content")), tuple(_chat_calls(response)))
        case _:
            return None


def _body(value: object) -> object:
    """Return the body of an HTTP exchange, anything else as it is."""
    if isinstance(value, Mapping) and isinstance(value.get("body"), Mapping | str):
        body = value["body"]
        return decoded(body) if isinstance(body, str) else body
    if isinstance(value, Mapping) and isinstance(value.get("json"), Mapping):
        return value["json"]
    return value


def _text(content: object) -> str:
    """Return the text of a message's content, which may come in parts."""
    match content:
        case str():
            return content
        case list():
            parts = [_text(part.get("text", part.get("content"))) for part in content if isinstance(part, Mapping)]
            return " ".join(part for part in parts if part)
        case _:
            return ""


def _chat_calls(message: Mapping[str, object]) -> Iterator[WantedCall]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        match call:
            case {"function": {"name": str(name), **rest}}:
                yield WantedCall(name, arguments_of(rest.get("arguments")))
            case _:
                continue


def _calls_among(items: list[object]) -> Iterator[WantedCall]:
    for item in items:
        match item:
            case {"type": "tool_use", "name": str(name), **rest}:
                yield WantedCall(name, arguments_of(rest.get("input")))
            case {"type": "function_call", "name": str(name), **rest}:
                yield WantedCall(name, arguments_of(rest.get("arguments")))
            case _:
                continue


def arguments_of(written: object) -> Mapping[str, object] | None:
    """Read the arguments of a call; None where they are none."""
    value = decoded(written) if isinstance(written, str) else written
    return value if isinstance(value, Mapping) else None


def decoded(text: str) -> object:
    """Read JSON; what is none stays a text."""
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value
