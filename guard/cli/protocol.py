"""The server's HTTP protocol, but for two things. The head of an answer and its body go out in one piece.

Uvicorn writes them one after the other. That is twice the work for the system on both sides, and wakes the client for
a head that tells it nothing yet. Whoever has a whole answer may hand it over as one (`guard.web.answer.WHOLE`), and
spares the server what it does for answers that come in parts.

And a server that is to end cuts nobody off: each connection hears with its next answer that it is the last, and one on
which nothing comes is closed after a moment of quiet. Uvicorn closes it at once, under a request that is on its way.
"""

import asyncio
from typing import Any, Final, cast

from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from guard.web.answer import WHOLE

QUIET_SECONDS: Final = 0.5
"""How long nothing must have come on a connection before a server that is to end closes it unasked."""
LAST_ANSWER: Final = (b"connection", b"close")
"""The header of every answer of a server that is to end: the client is to ask elsewhere from then on."""


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
        # Of the connection and not of a request: one that knew its request would keep it from being freed at once.
        self._extensions: dict[str, dict[object, object]] = {WHOLE: cast("dict[object, object]", self._answer)}
        self._is_ending = LAST_ANSWER in self.server_state.default_headers
        held = OnePiece(cast("asyncio.Transport", transport))
        super().connection_made(cast("asyncio.Transport", held))

    def on_message_begin(self) -> None:
        """Begin a request, whose answer may come whole."""
        super().on_message_begin()
        self.scope["extensions"] = self._extensions

    def shutdown(self) -> None:
        """Let the answer that is under way be the last, or the next one; or close after a moment in which none is."""
        self._is_ending = True
        self.timeout_keep_alive = 1  # after an answer that had begun before, and so did not say that it is the last
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete:
            self._unset_keepalive_if_required()  # as does uvicorn, when anything comes
            self.timeout_keep_alive_task = self.loop.call_later(QUIET_SECONDS, self.timeout_keep_alive_handler)
        elif not cycle.response_started:
            cycle.keep_alive = False

    @property
    def unfinished(self) -> tuple[object, int] | None:
        """What has begun on this connection and waits for the other side; the same as long as nothing moves."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        unread = self.transport.get_write_buffer_size()
        if unread or self.transport.is_closing():
            return cycle, unread
        if cycle is not None and cycle.response_complete:
            is_waiting = self.timeout_keep_alive_task is None  # else it is idle, and closed in its time
        else:
            is_waiting = cycle is None or cycle.more_body
        return (cycle, 0) if is_waiting else None

    def cut(self) -> None:
        """Close it at once, whatever is not read."""
        self.transport.abort()

    def _answer(self, scope: HTTPScope, status: int, head: bytes, body: bytes) -> bool:
        """Write a whole answer and let the next request come; say no where it has to go the usual way."""
        cycle = self.cycle
        is_over = cycle.scope is not scope or cycle.disconnected or self._is_ending
        if is_over or not cycle.keep_alive or cycle.flow.write_paused or scope["method"] == "HEAD":
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[status], head, body))
        cycle.message_event.set()
        cycle.on_response()
        return True
