"""A request as a boundary of its run: under which name, and with which arguments it is kept and matched.

A JSON body's members stand beside `method`, `url` and `headers`, so that a conversation is kept message by message.
What changes by itself is no part of it: of the headers only a few are kept, and the boundary of a form has one name.
"""

import base64
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from twiceshy._boundaries import Boundary
from twiceshy._boundary_names import told_name
from twiceshy._encode import encode
from twiceshy._exchanges.answers import restored_answer
from twiceshy._exchanges.options import HttpOptions
from twiceshy._exchanges.secrets import (
    IN_REQUESTS,
    fields_without_secrets,
    members_without_secrets,
    without_secrets,
)
from twiceshy_contract.refusals import JsonValue, Refusal

_KEPT_HEADERS: Final = ("accept", "content-type")
_FORM: Final = "application/x-www-form-urlencoded"
_PARTS: Final = re.compile(r'boundary="?([^";,]+)"?', re.IGNORECASE)
_ONE_BOUNDARY: Final = "boundary"
_CREDENTIAL: Final = re.compile(r"auth|cookie|credential|key|passw|secret|signature|token")
"""What the name of a header with a secret has in it."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request, whatever the library. `credentials` are the values of headers that hold one; they are not kept."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    credentials: tuple[str, ...] = ()

    @classmethod
    def of(cls, method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes) -> "Asked":
        """Return a request with the headers that are kept."""
        kept = [(name.lower(), value) for name, value in headers]
        return cls(
            method=method.upper(),
            url=url,
            headers=tuple((name, value) for name, value in kept if name in _KEPT_HEADERS),
            body=body,
            credentials=tuple(value for name, value in kept if _CREDENTIAL.search(name)),
        )


def boundary_of(asked: Asked, options: HttpOptions) -> Boundary:
    """Return the boundary that a request passes."""
    url = without_secrets(asked.url, options.secrets)
    headers, body = _with_one_boundary(dict(asked.headers), asked.body)
    about: dict[str, JsonValue] = {"method": asked.method, "url": url}
    if headers:
        about["headers"] = dict(headers)
    members = _members(body, headers.get("content-type", ""), options.secrets)
    arguments = {"body": members["body"]} if set(members) == {"body"} else members
    if set(members) & set(about):
        arguments = {"body": members}
    is_model = options.is_model_call(asked.method, asked.url)
    model = members.get("model") if is_model else None
    name = model if isinstance(model, str) and model else f"{asked.method} {urlsplit(url).netloc}"
    return Boundary(
        kind="llm_call" if is_model else "custom",
        name=told_name(name),
        arguments={**about, **arguments},
        restore=restored_answer,
    )


def _members(body: bytes, kind: str, more: frozenset[str]) -> dict[str, JsonValue]:
    """Return a body's members in tagged form; what is no JSON object is one member, `body`."""
    if not body:
        return {}
    if not kind.lower().startswith(_FORM):
        try:
            read: Any = members_without_secrets(msgspec.json.decode(body), IN_REQUESTS | more)
            written: Any = encode(read)
        except (msgspec.DecodeError, UnicodeDecodeError, Refusal, RecursionError):  # no JSON, or too deep to be kept
            pass
        else:
            return written if isinstance(read, dict) else {"body": written}
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {"body": {"$b64": base64.b64encode(body).decode()}}
    return {"body": fields_without_secrets(text, more) if kind.lower().startswith(_FORM) else text}


def _with_one_boundary(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """Give the parts of a form the same boundary each time: libraries draw one by chance."""
    kind = headers.get("content-type", "")
    found = _PARTS.search(kind) if kind.lower().startswith("multipart/") else None
    if found is None:
        return headers, body
    drawn = found.group(1)
    return {**headers, "content-type": kind.replace(drawn, _ONE_BOUNDARY)}, body.replace(
        drawn.encode(), _ONE_BOUNDARY.encode()
    )
