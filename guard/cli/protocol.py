"""The server's HTTP protocol, but for one thing: the head of an answer and its body go out in one piece.

Uvicorn writes them one after the other. That is twice the work for the system on both sides, and wakes the client for
a head that tells it nothing yet.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class OnePiece:
    """A transport that holds a write back until the next one of the same turn of the loop, or that turn's end."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held = b""

    def write(self, data: bytes) -> None:
        """Write what was held back and this together; hold it back where nothing was."""
        if self._held:
            data, self._held = self._held + data, b""
            self._transport.write(data)
        else:
            self._held = data
            self._loop.call_soon(self._let_go)

    def close(self) -> None:
        """Close once everything is written."""
        self._let_go()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _let_go(self) -> None:
        if self._held:
            data, self._held = self._held, b""
            self._transport.write(data)


class OnePieceProtocol(HttpToolsProtocol):
    """Uvicorn's protocol over such a transport."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection."""
        held = OnePiece(cast("asyncio.Transport", transport))
        super().connection_made(cast("asyncio.Transport", held))
