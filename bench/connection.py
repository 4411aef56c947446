"""One keep-alive connection of HTTP/1.1, one request at a time: what the generator and the stampede are made of."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast

import msgspec

from bench.failure import BadAnswer

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"
_NO_HEADERS: Final[Mapping[str, str]] = {}


class Connection(asyncio.Protocol):
    """A connection; its answers are bodies of successes, all else raises BadAnswer."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def post(self, path: str, body: object, headers: Mapping[str, str] = _NO_HEADERS) -> "asyncio.Future[bytes]":
        """Send a request; the future is the answer's body. It raises BadAnswer."""
        self._answer = asyncio.get_running_loop().create_future()
        content = msgspec.json.encode(body)
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{more}"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        if self._transport is None:
            raise BadAnswer("the connection is not open")
        self._transport.write(head.encode() + content)
        return self._answer

    def data_received(self, data: bytes) -> None:
        """Settle the answer once it is whole."""
        self._received += data
        head, end, content = self._received.partition(_HEAD_END)
        if not end or len(content) < _content_length(head):
            return
        self._received = b""
        status = head[9:12]
        if status[:1] == b"2":
            self._settle(content)
        else:
            self._settle(BadAnswer(f"status {status.decode()}: {content.decode(errors='replace')}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits."""
        self._settle(BadAnswer(f"the connection was closed: {exc}"))

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def _settle(self, answer: bytes | BadAnswer) -> None:
        waiting, self._answer = self._answer, None
        if waiting is None or waiting.done():
            return
        if isinstance(answer, BadAnswer):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    """Open a connection to a port of the loopback."""
    _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    try:
        yield connection
    finally:
        connection.close()


def _content_length(head: bytes) -> int:
    lowered = head.lower()
    at = lowered.find(_LENGTH)
    if at < 0:
        raise BadAnswer(f"an answer without a length: {head.decode(errors='replace')}")
    return int(lowered[at + len(_LENGTH) :].partition(b"\r\n")[0])
