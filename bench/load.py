"""The one load generator for both sides: keep-alive connections that make guarded calls as fast as they are answered.

A guarded call is begin, an empty tool, commit: two requests. Both sides get the same bytes but for the path, and
the generator does the same work for both.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator
from typing import Final, cast
from uuid import uuid4

import msgspec
import uvloop

CONNECTIONS: Final = 32
_STUCK_SECONDS: Final = 30.0
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two that are compared: where it serves, and the paths of begin and commit."""

    port: int
    begin: str
    commit: str


class _Grant(msgspec.Struct, frozen=True):
    """What the generator needs of the answer to begin."""

    decision: str
    key: str
    fence: int


class BadAnswer(Exception):
    """A side answered something else than success: what would be measured is not a guarded call."""


_GRANT: Final = msgspec.json.Decoder(_Grant)


class Generator:
    """Makes guarded calls, no two of them the same, for as long as the bench lives."""

    def __init__(self) -> None:
        self._name: Final = uuid4().hex[:12]
        self._numbers: Final[Iterator[int]] = itertools.count()

    def requests_per_second(self, side: Side, seconds: float) -> float:
        """Load a side for some seconds and return how many requests it answered in each. Raises BadAnswer."""
        return uvloop.run(self._load(side, seconds))

    async def _load(self, side: Side, seconds: float) -> float:
        loop = asyncio.get_running_loop()
        opened = [await loop.create_connection(_Connection, "127.0.0.1", side.port) for _ in range(CONNECTIONS)]
        connections = [connection for _, connection in opened]
        try:
            started = time.perf_counter()
            callers = [
                self._call_until(started + seconds, side, connection, f"bench-{self._name}-{number}")
                for number, connection in enumerate(connections)
            ]
            async with asyncio.timeout(seconds + _STUCK_SECONDS):
                counts = await asyncio.gather(*callers)
            return sum(counts) / (time.perf_counter() - started)
        finally:
            for connection in connections:
                connection.close()

    async def _call_until(self, until: float, side: Side, connection: "_Connection", run: str) -> int:
        """Make one call after the other in one run; return the number of requests."""
        count = 0
        while time.perf_counter() < until:
            attempt = str(uuid4())
            granted = _GRANT.decode(await connection.post(side.begin, self._begin(run, attempt)))
            if granted.decision != "execute":
                raise BadAnswer(f"begin was answered with {granted.decision}")
            commit = {"attempt": attempt, "fence": granted.fence, "result": {"id": count}}
            await connection.post(side.commit.replace("{key}", granted.key), commit)
            count += 2
        return count

    def _begin(self, run: str, attempt: str) -> dict[str, object]:
        arguments = {
            "start_time": "2026-10-12T14:00:00Z",
            "duration_minutes": 30,
            "title": "Strategy Sync with Alex",
            "number": next(self._numbers),
        }
        return {"tool": "create_calendar_hold", "arguments": arguments, "run": run, "attempt": attempt}


class _Connection(asyncio.Protocol):
    """One keep-alive connection of HTTP/1.1, one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def post(self, path: str, body: dict[str, object]) -> "asyncio.Future[bytes]":
        """Send a request; the future is the answer's body. It raises BadAnswer."""
        self._answer = asyncio.get_running_loop().create_future()
        content = msgspec.json.encode(body)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        if self._transport is None:
            raise BadAnswer("the connection is not open")
        self._transport.write(head.encode() + content)
        return self._answer

    def data_received(self, data: bytes) -> None:
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


def _content_length(head: bytes) -> int:
    lowered = head.lower()
    at = lowered.find(_LENGTH)
    if at < 0:
        raise BadAnswer(f"an answer without a length: {head.decode(errors='replace')}")
    return int(lowered[at + len(_LENGTH) :].partition(b"\r\n")[0])
