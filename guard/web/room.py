"""Room for requests: so many are under way at once, and so many bytes of their bodies; beyond that they are put off.

What begins something is put off first. Who waits for another's outcome takes no room: it costs next to nothing. Of who
has not sent its body yet, only what has come takes room: a slow sender keeps nobody out.
"""

from typing import Final

from litestar.types import HTTPReceiveMessage, HTTPScope, Receive
from litestar.types.asgi_types import WebSocketReceiveMessage

from guard.service.queues import Overloaded
from guard.service.use_cases import UseCases

MOST_BEGINS: Final = 4_096
"""Requests that may be under way when another begin comes."""
MOST_REQUESTS: Final = 4 * MOST_BEGINS
"""Requests that may be under way when a report comes."""
MOST_BYTES: Final = 256 * 2**20
"""What the bodies of all requests may hold when a part of another comes."""
SMALL_BYTES: Final = 16 * 2**10
"""A body that is announced as no larger is not counted: as many as there may be requests take no more than that."""


class Room:
    """What one process has under way."""

    def __init__(self) -> None:
        self._requests = 0
        self.bytes = 0

    def check(self, use_cases: UseCases, *, begins: bool) -> None:
        """Say whether there is room for one more request. Raises Overloaded."""
        most = MOST_BEGINS if begins else MOST_REQUESTS
        if self._requests >= most and self._requests - use_cases.waiting >= most:
            use_cases.measures.put_off("requests")
            raise Overloaded(f"{self._requests:,} requests are under way already.", use_cases.retry_after)

    def enter(self, use_cases: UseCases, *, begins: bool) -> None:
        """Take room for a request. Raises Overloaded."""
        self.check(use_cases, begins=begins)
        self._requests += 1

    def leave(self) -> None:
        """Give back the room of a request."""
        self._requests -= 1


class Held:
    """What one request's body takes of the room."""

    __slots__ = ("_room", "_size", "_use_cases")

    def __init__(self, room: Room, use_cases: UseCases) -> None:
        self._room = room
        self._use_cases = use_cases
        self._size = 0

    def take(self, size: int) -> None:
        """Take room for a part that has come. Raises Overloaded."""
        room = self._room
        self._size += size
        room.bytes += size
        if room.bytes > MOST_BYTES and (self._size > SMALL_BYTES or room.bytes > 2 * MOST_BYTES):
            self._use_cases.measures.put_off("bytes")
            raise Overloaded(f"{room.bytes:,} bytes of requests are held already.", self._use_cases.retry_after)

    def watching(self, receive: Receive) -> Receive:
        """Return the same, taking room for what comes."""

        async def watched() -> HTTPReceiveMessage | WebSocketReceiveMessage:
            message = await receive()
            if message["type"] == "http.request":
                self.take(len(message["body"]))
            return message

        return watched

    def give_back(self) -> None:
        """Give back the room of the body."""
        self._room.bytes -= self._size
        self._size = 0


def is_small(scope: HTTPScope) -> bool:
    """Say whether a body is announced as a small one."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return len(value) < 6 and value.isdigit() and int(value) <= SMALL_BYTES
    return False
