"""The answer of a server that an error carries, as clients of HTTP raise it: kept in short, and made again.

It is told by its shape, so that no library is imported for it. Of its headers those are kept that are kept of recorded
requests too, and of its body the beginning, as text; what was not read of it is not read for the record either.
"""

from http.client import responses
from typing import Any, Final

import msgspec

from twiceshy._exchanges.headers import kept_headers
from twiceshy._exchanges.secrets import IN_RESPONSES, members_without_secrets, without_secrets
from twiceshy._type_names import class_of, qualified
from twiceshy_contract.refusals import JsonValue

_MOST_BODY: Final = 8192
_MOST_BYTES: Final = 16384


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer whose type this process does not know."""

    status_code: int
    headers: dict[str, str]
    text: str

    @property
    def content(self) -> bytes:
        """The body as it was kept."""
        return self.text.encode()

    def json(self) -> Any:
        """Return the body as the JSON that it is."""
        return msgspec.json.decode(self.content)


def written_answer(error: BaseException) -> dict[str, JsonValue]:
    """Return what is kept of an error's `response` and `request`, as far as it has them."""
    parts: dict[str, JsonValue] = {}
    for name, written in (("request", _request), ("response", _response)):
        try:
            part = written(getattr(error, name, None))
            if part is not None and len(msgspec.json.encode(part)) <= _MOST_BYTES:
                parts[name] = part
        except Exception:  # noqa: BLE001, S112 - a property of the error's own may raise anything
            continue
    return parts


def give_answer(error: BaseException, data: dict[str, Any]) -> None:
    """Give an error the answer and the request that the record has of it."""
    request = _made_request(data["request"]) if "request" in data else None
    for name, part in (
        ("request", request),
        ("response", _made_response(data["response"], request) if "response" in data else None),
    ):
        if part is not None:
            setattr(error, name, part)


def _request(request: Any) -> JsonValue:
    method, url = getattr(request, "method", None), getattr(request, "url", None)
    if not isinstance(method, str) or url is None:
        return None
    return {"type": qualified(type(request)), "method": method, "url": without_secrets(str(url))}


def _response(response: Any) -> JsonValue:
    status = getattr(response, "status_code", None)
    if not isinstance(status, int):
        return None
    kept: dict[str, JsonValue] = {"type": qualified(type(response)), "status": int(status)}
    headers = kept_headers([(str(name), str(value)) for name, value in response.headers.items()])
    body = _body(vars(response).get("_content"))  # what `content` would read where it was not read yet
    return {**kept, "headers": dict(headers), **({} if body is None else {"body": body})}


def _body(content: object) -> str | None:
    """Return the beginning of a body that is text, without the secrets at its top."""
    if not isinstance(content, bytes):
        return None
    try:
        value = msgspec.json.decode(content)
        shown = members_without_secrets(value, IN_RESPONSES)
        content = content if shown is value else msgspec.json.encode(shown)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # it is no JSON
        pass
    try:
        content.decode()
    except UnicodeDecodeError:
        return None
    return content[:_MOST_BODY].decode(errors="ignore")


def _made_request(kept: dict[str, Any]) -> Any:
    kind: Any = class_of(kept["type"].replace("PreparedRequest", "Request"))
    if kind is None:
        return None
    request = kind(kept["method"], kept["url"])
    return request.prepare() if hasattr(request, "prepare") else request


def _made_response(kept: dict[str, Any], request: object) -> object:
    kind: Any = class_of(kept["type"])
    status, headers, body = kept["status"], dict(kept.get("headers", {})), kept.get("body", "")
    if kind is not None and kind.__module__.partition(".")[0] == "requests":
        return _of_requests(kind(), kept, request)
    try:
        more = {} if request is None else {"request": request}
        return kind(status, headers=headers, content=body.encode(), **more)
    except Exception:  # noqa: BLE001 - a foreign type may refuse anything
        return RecordedAnswer(status_code=status, headers=headers, text=body)


def _of_requests(response: Any, kept: dict[str, Any], request: Any) -> object:
    status = kept["status"]
    response.status_code, response.encoding, response.request = status, "utf-8", request
    response.reason = responses.get(status)
    response.url = getattr(request, "url", None)
    response.headers.update(kept.get("headers", {}))
    vars(response).update(_content=kept.get("body", "").encode(), _content_consumed=True)
    return response
