"""One connection to one server: whoever asks writes at once, and answers come in the order of the questions.

The client library reads every answer through several layers, which cost more than everything else that an entry costs.
A pipe is never mended: what fails on it ends it.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import hiredis

from guard.accelerator.address import Address, Host
from guard.accelerator.replies import Refusal, Replies, Unreadable

Command = tuple[bytes | str | int, ...]
Lost = Callable[[str], None]
Told = Callable[[bytes], None]

_pack: Final = cast("Callable[[Command], bytes]", hiredis.pack_command)


class Pipe(asyncio.Protocol):
    """Commands out, answers in; `lost` hears why the connection ended, unless it was closed.

    On a pipe that has subscribed, `told` hears what is published.
    """

    def __init__(self, lost: Lost, told: Told | None = None) -> None:
        self._lost = lost
        self._told = told
        self._replies = Replies()
        self._asked: deque[_Asked] = deque()
        self._transport: asyncio.Transport | None = None
        self._is_closed = False

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands together; return each one's answer in its place. Raises ConnectionError."""
        if self._transport is None or self._is_closed:
            raise ConnectionError("the connection is closed")
        asked = _Asked(len(commands), asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        self._transport.write(b"".join(map(_pack, commands)))
        return await asked.answers

    def close(self) -> None:
        """End it; nobody hears of that."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take what came, and hand out the answers that are complete."""
        if self._is_closed:
            return
        try:
            for reply in self._replies.feed(data):
                self._hand_out(reply)
        except Unreadable as error:
            self._end(f"what answers is no Redis: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of all who wait."""
        self._end(f"the connection was lost: {exc}" if exc else "the connection was closed by the other side")

    def _hand_out(self, reply: Any) -> None:
        if self._told is not None and isinstance(reply, list) and reply[:1] == [b"message"]:
            if len(reply) == 3 and isinstance(reply[2], bytes):
                self._told(reply[2])
            return
        if not self._asked:
            raise Unreadable("an answer to nothing")
        asked = self._asked[0]
        asked.replies.append(reply)
        if len(asked.replies) == asked.count:
            self._asked.popleft()
            if not asked.answers.done():
                asked.answers.set_result(asked.replies)

    def _end(self, why: str) -> None:
        waiting, self._asked = self._asked, deque()
        for asked in waiting:
            if not asked.answers.done():
                asked.answers.set_exception(ConnectionError(why))
                asked.answers.exception()  # seen, even where who asked has gone
        if not self._is_closed:
            self.close()
            self._lost(why)


class _Asked:
    """Commands whose answers are awaited."""

    __slots__ = ("answers", "count", "replies")

    def __init__(self, count: int, answers: asyncio.Future[list[Any]]) -> None:
        self.count = count
        self.answers = answers
        self.replies: list[Any] = []


async def connected(address: Address, host: Host | None, lost: Lost, told: Told | None = None) -> Pipe:
    """Return a pipe to a server, or to the file of an address, that has logged in and answers.

    Raises OSError, and Refusal where the server lets nobody in like that.
    """
    loop = asyncio.get_running_loop()
    if host is None:
        _, pipe = await loop.create_unix_connection(lambda: Pipe(lost, told), address.path)
    else:
        tls = ssl.create_default_context(cafile=address.ca) if address.is_encrypted else None
        _, pipe = await loop.create_connection(lambda: Pipe(lost, told), *host, ssl=tls)
    try:
        answers = await pipe.ask(_login(address))
    except BaseException:
        pipe.close()
        raise
    for answer in answers:
        if isinstance(answer, Refusal):
            pipe.close()
            raise answer
    return pipe


def _login(address: Address) -> list[Command]:
    commands: list[Command] = [("PING",)]
    if address.db:
        commands.insert(0, ("SELECT", address.db))
    if address.password is not None:
        user = () if address.user is None else (address.user,)
        commands.insert(0, ("AUTH", *user, address.password))
    return commands
