"""Ask a provider whether a doubtful effect was applied: what is sent, and what its answer proves.

Everything that is not proof leaves the doubt as it is: a redirect, a provider that is busy, broken or does not let us
in, an answer about another key, one that says both or neither, one that is no JSON where an expression reads its body.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, cast
from urllib.parse import quote

import msgspec

from guard.core.arguments import arguments_of
from guard.core.effects import SECOND, Duration, Effect
from guard.core.keys import downstream_key
from guard.core.templates import (
    Known,
    as_tagged,
    compiled,
    is_true,
    rendered_plain,
    rendered_text,
    tagged_value_of,
    unfound,
    value_of,
)
from twiceshy_contract.canonical import canonical
from twiceshy_contract.policies import HttpProbe
from twiceshy_contract.redaction import REDACTED
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.strict_json import decode
from twiceshy_contract.variables import SECRET_PREFIX
from twiceshy_contract.wire import EffectKey

MAX_ANSWER_BYTES: Final = 2**20
SECRET: Final = "[secret]"
"""What stands in the place of a secret that a provider sends back."""
_MOST_AT_ONCE: Final = 64
_MOST_OF_A_TOOL: Final = 2
_KEPT: Final = 16
"""Of the questions that may be under way at once, those for tools with none under way, and no provider that hangs."""
_LONGEST_PAUSE: Final = 300
_PROVES_NOTHING: Final = frozenset({401, 403, 407, 408, 425, 429})
"""Whoever is not let in, or told to come back, has not been answered."""


class ProbeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent; `url` is written out and is sent as it is."""

    method: Literal["GET", "HEAD", "POST"]
    url: str
    headers: dict[str, str]
    body: bytes | None
    timeout_seconds: float


class ProbeReply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. Names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Applied(msgspec.Struct, frozen=True):
    """It was applied; `result` is what the tool would have returned, where the answer says so."""

    result: object = msgspec.UNSET


class NotApplied(msgspec.Struct, frozen=True):
    """It was not applied when the provider answered."""


class Unproven(msgspec.Struct, frozen=True):
    """Nobody knows more than before."""

    reason: str


Finding = Applied | NotApplied | Unproven


def pause(tries: int) -> Duration:
    """Return how long to wait after so many questions: doubled with each, five minutes at most."""
    return Duration(min(2 ** min(max(tries - 1, 0), 16), _LONGEST_PAUSE) * SECOND)


def request_of(probe: HttpProbe, effect: Effect, secrets: Mapping[str, str]) -> ProbeRequest:
    """Fill in the templates of a probe. Raises Refusal where an expression finds nothing or fails."""
    known = _known(effect)
    allowed: JsonValue = {name: value for name, value in secrets.items() if name.startswith(SECRET_PREFIX)}
    private = {**known, "env": allowed}
    headers = {name: _header(name, template, private) for name, template in probe.headers.items()}
    body = None
    if probe.body is not None:
        _require_found(probe.body, known, "body")
        body = msgspec.json.encode(rendered_plain(probe.body, known))
        _require_stored(body.decode(), "body")
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
    _require_found(probe.url, known, "url")
    return ProbeRequest(
        method=probe.method,
        url=rendered_text(probe.url, known, _in_url),
        headers=headers,
        body=body,
        timeout_seconds=probe.timeout_seconds,
    )


def room(under_way: int, of_the_tool: int, *, is_silent: bool) -> int:
    """Say how many more questions a tool may ask; `is_silent` says that its provider gave no answer to the last."""
    free = _MOST_AT_ONCE - under_way
    beside_the_kept = min((1 if is_silent else _MOST_OF_A_TOOL) - of_the_tool, free - _KEPT)
    first = min(1, free) if of_the_tool == 0 and not is_silent else 0
    return max(beside_the_kept, first, 0)


def secrets_in(request: ProbeRequest, secrets: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets that a request takes to its provider, longest first."""
    headers = request.headers.values()
    sent = {secret for secret in secrets.values() if secret and any(secret in header for header in headers)}
    return tuple(sorted(sent, key=lambda secret: (-len(secret), secret)))


def without_secrets(finding: Finding, secrets: Sequence[str]) -> Finding:
    """Return what is known without the secrets that a provider was sent, and may have sent back."""
    match finding:
        case Unproven(reason=reason):
            return Unproven(_hidden_text(reason, secrets))
        case Applied(result=result) if result is not msgspec.UNSET:
            return Applied(_hidden(cast("JsonValue", result), secrets))
        case _:
            return finding


def _hidden(value: JsonValue, secrets: Sequence[str]) -> JsonValue:
    match value:
        case str():
            return _hidden_text(value, secrets)
        case list():
            return [_hidden(item, secrets) for item in value]
        case dict():
            return {_hidden_text(name, secrets): _hidden(member, secrets) for name, member in value.items()}
        case _:
            return value


def _hidden_text(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, SECRET)
    return text


def read_reply(probe: HttpProbe, effect: Effect, reply: ProbeReply) -> Finding:
    """Say what an answer proves."""
    if not 200 <= reply.status < 300 and not (400 <= reply.status < 500 and reply.status not in _PROVES_NOTHING):
        return Unproven(f"status {reply.status} proves nothing")
    known: dict[str, JsonValue] = {"status": reply.status, "headers": as_tagged(dict(reply.headers))}
    try:
        if any(_reads_body(expression) for expression in _expressions(probe)):
            known["body"] = as_tagged(_body(reply))
        return _finding(probe, effect, known)
    except Refusal as refusal:
        return Unproven(f"status {reply.status}, and the answer cannot be read: {refusal.reason}")


def _finding(probe: HttpProbe, effect: Effect, known: Known) -> Finding:
    is_applied, is_not_applied = is_true(probe.applied, known), is_true(probe.not_applied, known)
    if is_applied == is_not_applied:
        which = "says both that it was applied and that it was not" if is_applied else "says neither"
        return Unproven(f"status {known['status']}, and the answer {which}")
    if probe.echo is not None and value_of(probe.echo, known) != _downstream_key(effect):
        return Unproven(f"status {known['status']}, and the answer is about another key")
    return Applied(_result(probe, known)) if is_applied else NotApplied()


def _result(probe: HttpProbe, known: Known) -> object:
    """Return the result, unless the answer holds none or one that no record takes."""
    if probe.result is None:
        return msgspec.UNSET
    try:
        result = tagged_value_of(probe.result, known)
        canonical(result)
    except Refusal:
        return msgspec.UNSET
    return msgspec.UNSET if result is None else result


def _known(effect: Effect) -> dict[str, JsonValue]:
    """Return what an expression of the request sees."""
    intent = effect.intent
    arguments = arguments_of(intent.arguments if effect.edited is None else effect.edited)
    return {
        "arguments": cast("JsonValue", arguments),
        "key": EffectKey(intent.key.hex()),
        "downstream_key": _downstream_key(effect),
        "run": intent.run,
        "step": intent.step,
        "tool": intent.tool,
    }


def _downstream_key(effect: Effect) -> str:
    return downstream_key(effect.intent.key, effect.life.epoch)


def _header(name: str, template: str, known: Known) -> str:
    _require_found(template, known, "headers", name)
    value = rendered_text(template, known)
    _require_stored(value, "headers", name)
    if not (value.isascii() and value.isprintable()):
        raise Refusal("a header holds one line of ASCII", ("headers", name))
    return value


def _in_url(value: str) -> str:
    """Write a value into an address, so that it stays one part of it."""
    _require_stored(value, "url")
    if value in ("", ".", ".."):
        raise Refusal(f"{value!r} would be another address", ("url",))
    return quote(value, safe="")


def _require_found(template: JsonValue, known: Known, *place: str) -> None:
    """Refuse a template with an expression that finds nothing: the question would be another one."""
    for where, expression in unfound(template, known, *place):
        raise Refusal(f"the expression {expression!r} finds nothing", where)


def _require_stored(text: str, *place: str) -> None:
    """Refuse what the record holds no more: the question would be about something else."""
    if REDACTED in text:
        raise Refusal("it needs an argument that is redacted", place)


def _expressions(probe: HttpProbe) -> Iterator[str]:
    yield probe.applied
    yield probe.not_applied
    if probe.echo is not None:
        yield probe.echo


def _reads_body(expression: str) -> bool:
    return _names_body(compiled(expression).parsed)


def _names_body(node: object) -> bool:
    """Say whether a syntax tree of JMESPath names a field `body` anywhere, or looks at all there is."""
    if isinstance(node, dict):
        is_body = node.get("type") == "field" and node.get("value") == "body"
        is_all = node.get("type") in ("current", "value_projection")
        return is_body or is_all or any(_names_body(child) for child in node["children"])
    return False


def _body(reply: ProbeReply) -> JsonValue:
    try:
        return decode(reply.body)
    except Refusal as refusal:
        raise Refusal(f"its body is not the JSON that an expression reads ({refusal.reason})") from refusal
