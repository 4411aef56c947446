"""POST requests to one URL, each written once: what is known of each is known to the byte.

Connections, TLS, names and the parser are aiohttp's. Its session is left out: it does not tell whether anything was
written, it drops a status with the body that breaks the rules, and it costs more than all the rest together.
"""

import asyncio
import contextlib
import functools
import select
import ssl
from collections.abc import Callable
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import BadHttpMessage
from multidict import CIMultiDict
from yarl import URL

from outbox_relay.dialling import Attempt, DialGuard
from outbox_relay.names import Names

MAX_ANSWER_BYTES: Final = 2**16
"""What is read of an answer's body at the most; a connection that holds more is closed."""
ANSWER_SECONDS: Final = 1.0
"""How long a body is waited for at the most: the status has decided already."""
IDLE_SECONDS: Final = 1.0
"""How long an unused connection is kept. A receiver that closes one as it is used leaves a message unknown, and many
close theirs after two seconds or more."""
DNS_SECONDS: Final = 10
"""How long the addresses of a name are kept. Each is judged whenever it is dialled."""
_HEAD_BYTES: Final = 2**16
"""What is read at the most until an answer's head is whole, interim answers (1xx) and all."""
_HEADERS: Final = 2**11
_INTERIM_ANSWERS: Final = 16
_PIECE_BYTES: Final = 2**13
"""What is parsed at once of an answer whose head is not whole yet: whoever pours answers keeps nobody else waiting."""
_Answer = tuple[RawResponseMessage, aiohttp.StreamReader]


class Poster:
    """Posts to one URL from one event loop, over connections that are kept for a moment."""

    def __init__(
        self,
        url: URL,
        guard: DialGuard,
        limit: int,
        *,
        seconds: float,
        resolver: AbstractResolver | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        """Take whom to post to, over how many connections, and how long a post may take. Needs a running event loop."""
        loop = asyncio.get_running_loop()
        self._connector = _Connector(
            socket_factory=guard.open_socket,
            limit=limit,
            resolver=resolver or Names(),
            ttl_dns_cache=DNS_SECONDS,
            ssl=certificates or True,
            keepalive_timeout=IDLE_SECONDS,
        )
        self._connector.keep_what_is_heard(loop)
        self._place = aiohttp.ClientRequest("POST", url, loop=loop)
        self._first_lines = f"POST {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"
        self._loop = loop
        self._seconds = seconds
        self._connecting = aiohttp.ClientTimeout(connect=seconds, ceil_threshold=seconds)

    async def post(self, attempt: Attempt, headers: CIMultiDict[str], body: bytes) -> tuple[RawResponseMessage, bytes]:
        """Post once, and return the head of the answer and the beginning of its body.

        Raises what stands in the way of a head, TimeoutError where it takes too long, and ValueError for a header that
        is none. What stands in the way of a body is not told.
        """
        request = self._written(headers, len(body)) + body
        deadline = self._loop.time() + self._seconds
        connection = await self.connect()
        alarm = self._loop.call_at(deadline, _end_in_time, connection)  # a tenth of what `asyncio.timeout` costs
        try:
            message, content = await _exchange(attempt, connection, request)
        except BaseException:
            _break(connection)
            raise
        finally:
            alarm.cancel()
        try:
            if content.is_eof():
                return message, content.read_nowait(MAX_ANSWER_BYTES)
            return message, await _beginning(content, min(deadline, self._loop.time() + ANSWER_SECONDS))
        finally:
            if _has_unwritten(connection):
                _break(connection)  # it was answered before it was read: the next request would come behind the rest
            connection.release()  # which closes one that has more to say

    async def connect(self) -> Connection:
        """Take a kept connection that can be used, or make one. Raises TimeoutError where that takes too long."""
        while True:
            connection = await self._connector.connect(self._place, [], self._connecting)
            handler = connection.protocol
            if not isinstance(handler, _Handler) or not handler.heard or not handler.is_stale():
                return connection
            connection.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._connector.close()

    def _written(self, headers: CIMultiDict[str], length: int) -> bytes:
        """Return the head of a request. Raises ValueError for a header that would write another."""
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
            raise ValueError("a header holds a line break")
        return f"{self._first_lines}{lines}Content-Length: {length}\r\n\r\n".encode("ascii")


class _Connector(aiohttp.TCPConnector):
    """A connector whose connections keep the beginning of what they hear."""

    def keep_what_is_heard(self, loop: asyncio.AbstractEventLoop) -> None:
        handler: type[ResponseHandler] = _Handler
        self._factory = functools.partial(handler, loop=loop)


class _Handler(ResponseHandler):
    """A connection that keeps the beginning of what it heard since the latest request.

    The parser drops an answer's head where what comes with it breaks the rules, such as a body that is longer than
    its `Content-Length` says; its status was said nevertheless.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.heard = bytearray()
        self._is_answered = True
        self._interim = 0
        self._before_head = 0
        self._readable: Callable[[int], list[tuple[int, int]]] | None = None

    def is_stale(self) -> bool:
        """Say whether it ended, or heard something unasked, be it that the event loop has not seen that yet.

        What is heard unasked would be taken for the answer to the next request.
        """
        return self.should_close or self._has_more()

    def _has_more(self) -> bool:
        if self._readable is None:
            if self.transport is None:
                return True
            poll = select.poll()
            poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
            self._readable = poll.poll
        return bool(self._readable(0))

    def await_answer(self) -> None:
        """Begin to hear the answer to a request."""
        self.heard.clear()
        self._is_answered = False
        self._interim = self._before_head = 0

    def data_received(self, data: bytes) -> None:
        """Keep the beginning, as a copy: what is received stands in a large piece of memory that is used again."""
        if len(self.heard) < _HEAD_BYTES:
            self.heard += data
        begin, is_over = 0, False
        while not is_over:
            end = len(data) if self._is_answered else begin + _PIECE_BYTES
            self._hear(data[begin:end])
            begin, is_over = end, end >= len(data) or self.is_eof()

    def _hear(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answered:
            return
        self._before_head += len(data)
        if self._interim > _INTERIM_ANSWERS or self._before_head > _HEAD_BYTES:
            self.give_up(BadHttpMessage("it does not come to an end before its status"))

    def feed_data(self, data: _Answer, size: int = 0) -> None:
        """Take a head; an interim one (1xx) says nothing yet, and is only counted."""
        if _is_interim(data[0]):
            self._interim += 1
        else:
            self._is_answered = True
            super().feed_data(data, size)

    def give_up(self, why: Exception) -> None:
        """Close the connection at once; who waits for an answer that has not come hears why."""
        if not self.is_eof():
            self.set_exception(why)
        if self.transport is not None:
            self.transport.abort()


async def _exchange(attempt: Attempt, connection: Connection, request: bytes) -> _Answer:
    """Write a request, and read the head of its answer."""
    handler = connection.protocol
    if not isinstance(handler, _Handler) or handler.transport is None or not handler.is_connected():
        raise aiohttp.ServerDisconnectedError
    handler.await_answer()
    attempt.heard = handler.heard
    handler.set_response_params(
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=_HEAD_BYTES,
        max_field_size=_HEAD_BYTES,
        max_headers=_HEADERS,
    )
    attempt.may_have_left = True
    handler.transport.write(request)
    return await handler.read()


def _end_in_time(connection: Connection) -> None:
    handler = connection.protocol
    if isinstance(handler, _Handler):
        handler.give_up(TimeoutError())


def _is_interim(message: RawResponseMessage) -> bool:
    return message.code != 101 and 100 <= message.code < 200


def _has_unwritten(connection: Connection) -> bool:
    transport = connection.transport
    return transport is not None and transport.get_write_buffer_size() > 0


def _break(connection: Connection) -> None:
    """Close a connection at once, without waiting until somebody takes what was written to it."""
    if connection.transport is not None:
        connection.transport.abort()
    connection.close()


async def _beginning(content: aiohttp.StreamReader, deadline: float) -> bytes:
    """Read what a receipt may show, and all of a small body: its connection is used again.

    The status is known, and no body can change what it says: one that breaks off or does not end is let go.
    """
    read = bytearray()
    with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with asyncio.timeout_at(deadline):
            while len(read) < MAX_ANSWER_BYTES and (chunk := await content.readany()):
                read += chunk
    return bytes(read[:MAX_ANSWER_BYTES])
