"""A receiver of webhooks that does nothing: it reads a request and answers 200, as fast as a protocol can."""

import asyncio
import sys
from typing import Final, cast

import uvloop

_ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_LENGTH: Final = b"content-length:"


class _Receiver(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._unread = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note where to answer."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            head = self._unread[:end].lower()
            at = head.find(_LENGTH)
            length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._unread) < end + 4 + length:
                return
            self._unread = self._unread[end + 4 + length :]
            if self._transport is not None:
                self._transport.write(_ANSWER)


async def main() -> None:
    """Serve on a free port, and print the address."""
    server = await asyncio.get_running_loop().create_server(_Receiver, "127.0.0.1", 0, backlog=2048)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
