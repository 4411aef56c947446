"""A request to one of the hot verbs, read without the framework: headers, body, and what the line will say of it."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec
from litestar.types import Receive, Scope

from guard.core.effects import RunId
from guard.service.use_cases import UseCases
from guard.web.problems import Unreadable
from twiceshy_contract.canonical import MAX_BYTES
from twiceshy_contract.wire import CONTRACT_HEADER, CONTRACT_VERSION, KEY_HEADER, read

LARGE_BYTES: Final = 128 * 2**10
"""A larger body is read in a thread, for the loop has others to serve."""

_MessageT = TypeVar("_MessageT", bound=msgspec.Struct)
_CONTENT_TYPE: Final = b"content-type"
_CONTRACT: Final = CONTRACT_HEADER.lower().encode()
_KEY: Final = KEY_HEADER.lower().encode()


class Exchange:
    """One request. `facts` are what the verb says of it for the canonical log line; a `fork` is who drives it."""

    __slots__ = ("body", "facts", "fork", "headers", "use_cases")

    def __init__(
        self,
        use_cases: UseCases,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes,
        facts: dict[str, object],
        fork: RunId | None = None,
    ) -> None:
        self.use_cases: Final = use_cases
        self.headers: Final = headers
        self.body: Final = body
        self.facts: Final = facts
        self.fork: Final = fork

    @property
    def is_newer(self) -> bool:
        """Whether the sender speaks a later version of the contract."""
        return is_newer(self.header(_CONTRACT))

    @property
    def is_large(self) -> bool:
        """Whether the body is read and checked in a thread."""
        return len(self.body) > LARGE_BYTES

    @property
    def idempotency_keys(self) -> list[str]:
        """Every Idempotency-Key header."""
        return [value.decode("latin-1") for name, value in self.headers if name == _KEY]

    def message(self, kind: type[_MessageT]) -> _MessageT:
        """Read the body as a wire struct. Raises Refusal, and Unreadable for another content type."""
        if not is_json(self.header(_CONTENT_TYPE)):
            raise Unreadable("unsupported-media-type")
        return read(self.body, kind, newer=self.is_newer)

    def header(self, wanted: bytes) -> str:
        """Return the first header of a name in lower case, or nothing."""
        for name, value in self.headers:
            if name == wanted:
                return value.decode("latin-1")
        return ""


def is_json(content_type: str) -> bool:
    """Say whether a Content-Type header means JSON."""
    return content_type == "application/json" or content_type.partition(";")[0].strip().lower() == "application/json"


def is_newer(version: str) -> bool:
    """Say whether a Twiceshy-Contract header names a later version."""
    return version.isdecimal() and int(version[:9]) > CONTRACT_VERSION


async def body_of(scope: Scope, receive: Receive, hold: Callable[[int], None] | None = None) -> bytes | None:
    """Read a body; None where the client has gone. Raises Unreadable beyond the largest size, and what `hold` raises.

    `hold` is told how many bytes have come with each part.
    """
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > MAX_BYTES:
            raise Unreadable("too-large")
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        if message["type"] == "http.request":
            part = message["body"]
            if hold is not None:
                hold(len(part))
            body = body + part if body else part
            if len(body) > MAX_BYTES:
                raise Unreadable("too-large")
            if not message["more_body"]:
                return body
