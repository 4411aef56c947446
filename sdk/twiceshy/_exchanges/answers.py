"""How a request was answered, as it is kept and as it is served.

    {"status": 200, "headers": {...}, "body": ...}        {"status": 200, "headers": {...}, "stream": {...}}

A body is kept as its text: code may show it to a model, character by character. It is kept as JSON only where that
gives the same bytes again, and as bytes where it is no text. What is served may be JSON too: an override is written so.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from twiceshy._boundaries import plain
from twiceshy._encode import encode
from twiceshy._exchanges.headers import TYPE
from twiceshy._exchanges.secrets import IN_RESPONSES, members_without_secrets
from twiceshy._misfit import Misfit
from twiceshy._raised import read_error
from twiceshy._stream_values import STREAM, StreamEnd, StreamValue
from twiceshy.exceptions import SetupError
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.refusals import JsonValue, Refusal

_STREAM_TYPES: Final = (
    "text/event-stream", "application/x-ndjson", "application/jsonl", "application/jsonlines",
    "application/stream+json", "application/vnd.amazon.eventstream",
)  # fmt: skip
_TRIED_AGAIN: Final = (408, 409, 429)
_json: Final = msgspec.json.Encoder()


class Answer(msgspec.Struct, kw_only=True):
    """An answer out of the record. `end` is how the reading of it ended, `error` what cut it."""

    status: int = 200
    headers: dict[str, str]
    chunks: list[bytes]
    end: StreamEnd = "complete"
    error: BaseException | None = None
    is_stream: bool = False


def is_stream(headers: Mapping[str, str]) -> bool:
    """Say whether an answer is kept chunk by chunk: a type that streams, or parts as they came that are no JSON."""
    kind = headers.get(TYPE, "").lower()
    return kind.startswith(_STREAM_TYPES) or ("chunked" in headers.get("transfer-encoding", "") and "json" not in kind)


def written_body(status: int, headers: dict[str, str], body: bytes, secrets: frozenset[str] = frozenset()) -> JsonValue:
    """Write a whole answer in tagged form."""
    return {"status": status, "headers": dict(headers), "body": _written(body, IN_RESPONSES | secrets)}


def written_stream(
    status: int,
    headers: dict[str, str],
    chunks: Iterable[tuple[int, bytes]],
    end: StreamEnd,
    error: ErrorOutcome | None,
) -> JsonValue:
    """Write an answer of which the chunks matter in tagged form."""
    stream = StreamValue(
        chunks=tuple((at, _as_text(chunk)) for at, chunk in chunks),
        end=end,
        error=msgspec.UNSET if error is None else error,
    )
    return {"status": status, "headers": dict(headers), STREAM: msgspec.to_builtins(stream)}


def read_answer(value: Any, name: str) -> Answer:
    """Read an answer as it is served. What has no status is the JSON body of a good one. Raises SetupError."""
    if not isinstance(value, dict) or not isinstance(value.get("status"), int):
        return Answer(headers={TYPE: "application/json"}, chunks=[_bytes(value)])
    status, headers = value["status"], _read_headers(value.get("headers"), name)
    if status in _TRIED_AGAIN or status >= 500:
        headers.setdefault("retry-after-ms", "1")  # a replay lets no time pass: model clients wait no longer than that
    if STREAM not in value:
        body = value.get("body")
        return Answer(status=status, headers=headers, chunks=[] if body in (None, "", b"") else [_bytes(body)])
    try:
        stream = msgspec.convert(value[STREAM], StreamValue, strict=False)
    except msgspec.ValidationError as misfit:
        raise SetupError(f"{name}: the stream in the place of the answer cannot be read: {misfit}.") from misfit
    return Answer(
        status=status,
        headers=headers,
        chunks=[_bytes(chunk) for _, chunk in stream.chunks],
        end=stream.end,
        is_stream=True,
        error=read_error(stream.error) if isinstance(stream.error, ErrorOutcome) else None,
    )


def restored_answer(value: object, first: str | None) -> object:
    """Return an answer in tagged form as plain JSON, once it is one that can be read. Raises Misfit."""
    answer = plain(value, first)
    try:
        read_answer(answer, "it is no answer of a server")
    except SetupError as error:
        raise Misfit(str(error).rstrip(".")) from error
    return answer


def _read_headers(headers: object, name: str) -> dict[str, str]:
    if not isinstance(headers, dict | None):
        raise SetupError(f"{name}: the headers in the place of the answer are no object; write names and values.")
    return {str(key).lower(): str(value) for key, value in (headers or {}).items()}


def _written(body: bytes, secrets: frozenset[str]) -> JsonValue:
    try:
        value = msgspec.json.decode(body)
        shown = members_without_secrets(value, secrets)
        if shown is not value or (not isinstance(value, str) and _json.encode(value) == body):
            return encode(shown)
    except (msgspec.DecodeError, UnicodeDecodeError, Refusal, RecursionError):  # no JSON, or too deep to be kept so
        pass
    return _as_text(body)


def _as_text(part: bytes) -> JsonValue:
    try:
        return part.decode()
    except UnicodeDecodeError:
        return {"$b64": base64.b64encode(part).decode()}


def _bytes(value: object) -> bytes:
    match value:
        case bytes():
            return value
        case str():
            return value.encode()
        case _:
            return _json.encode(value)
