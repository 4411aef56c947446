"""What the sinks of brokers share: one connection, opened when it is needed and again after it was lost.

A message leaves only over an open connection. Whatever ends before is therefore proof that the receiver does not have
it; whatever ends after, without an answer, is unknown. That holds for whatever a client raises, foreseen or not.

The addresses of a broker are judged before each connection. A client that speaks in the clear is given the judged
address itself; over TLS it is given the name, which the server's certificate must prove.
"""

import asyncio
import os
import ssl
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Literal, TypeVar

from outbox_relay.networks import Networks
from outbox_relay.resolving import HostRefused, HostUnknown, judged_addresses
from outbox_relay.sinks.base import Outgoing, Permanent, Reached, Result, Retryable, SinkRefused, Unknown

Connection = TypeVar("Connection")
Dialled = TypeVar("Dialled")
_LONGEST_WORDS: Final = 300
_DEEPEST: Final = 10
_CLOSING_SECONDS: Final = 2.0
_ENDING_TIMES: Final = 3
"""How many times the bound of a send a lost connection may take to end, in the background."""


class NotSent(Exception):
    """A message did not leave: `result` says why, and whether a later try may do better.

    `seen` is what a check says of it: a check may be asked for by those who are not to read what a peer says.
    """

    def __init__(self, result: Retryable | Permanent, seen: str | None = None) -> None:
        super().__init__(result.why)
        self.result = result
        self.seen = result.why if seen is None else seen


class ConnectedSink(ABC, Generic[Connection]):
    """A destination behind one connection that all sends share."""

    def __init__(self, name: str, timeout_seconds: float, networks: Networks) -> None:
        self._name = name
        self._seconds = timeout_seconds
        self._networks = networks
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._endings: set[asyncio.Task[None]] = set()

    @property
    @abstractmethod
    def capability(self) -> Literal["deduplicates", "sends_blindly"]:
        """Whether what may have arrived may be sent again with the same identity."""

    @abstractmethod
    async def _open(self) -> Connection:
        """Connect and authenticate, with secrets read anew. Raises NotSent."""

    @abstractmethod
    def _is_open(self, connection: Connection) -> bool:
        """Say whether the connection still stands, as far as is known here."""

    @abstractmethod
    async def _end(self, connection: Connection) -> None:
        """Close the connection and give up what is under way on it."""

    @abstractmethod
    async def _publish(self, connection: Connection, outgoing: Outgoing) -> Result:
        """Send over an open connection and wait for the answer. Raises NotSent, or what a break raises."""

    @abstractmethod
    async def _look(self, connection: Connection) -> str:
        """Say what an open connection shows of the destination, delivering nothing. Raises NotSent."""

    async def send(self, outgoing: Outgoing) -> Result:
        """Send one message once."""
        connection: Connection | None = None
        try:
            async with asyncio.timeout(self._seconds):
                connection = await self._connected()
                return await self._publish(connection, outgoing)
        except NotSent as error:
            return error.result
        except TimeoutError:
            if connection is None:
                return Retryable(why=f"no connection within {self._seconds:g} seconds", is_unreachable=True)
            self._drop(connection)
            return Unknown(why=f"no answer within {self._seconds:g} seconds")
        except Exception as error:  # noqa: BLE001  a client may raise anything, and what it proves is the same
            if connection is None:
                return Retryable(why=told(error), is_unreachable=True)
            self._drop(connection)
            return Unknown(why=f"the connection broke before an answer came ({told(error)})")

    async def check(self) -> Reached:
        """Connect, authenticate and look; nothing is delivered."""
        try:
            async with asyncio.timeout(self._seconds):
                return Reached(ok=True, detail=await self._look(await self._connected()))
        except NotSent as error:
            return Reached(ok=False, detail=error.seen)
        except TimeoutError:
            return Reached(ok=False, detail=f"no answer within {self._seconds:g} seconds")
        except Exception as error:  # noqa: BLE001  whatever goes wrong is what was seen
            return Reached(ok=False, detail=f"the connection broke ({kind_of(error)})")

    async def close(self) -> None:
        """Close the connection, and wait until those lost before are gone too."""
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._drop(self._connection)
        if self._endings:
            _, late = await asyncio.wait(self._endings, timeout=_CLOSING_SECONDS)
            for ending in late:
                ending.cancel()

    async def _connected(self) -> Connection:
        """Return the connection; all who find none wait for the same attempt to open one."""
        if self._connection is not None:
            if self._is_open(self._connection):
                return self._connection
            self._drop(self._connection)
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open_in_time())
            self._opening.add_done_callback(_heard)
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError as error:
            if opening.cancelled():
                raise NotSent(Retryable(why="the destination is being closed")) from error
            raise

    async def _open_in_time(self) -> Connection:
        try:
            async with asyncio.timeout(self._seconds):
                self._connection = await self._open()
        except SinkRefused as error:
            raise NotSent(Retryable(why=str(error))) from error
        except TimeoutError as error:
            why = f"no connection within {self._seconds:g} seconds"
            raise NotSent(Retryable(why=why, is_unreachable=True)) from error
        except NotSent:
            raise
        except Exception as error:
            raise refused("no connection", error, is_unreachable=True) from error
        return self._connection

    async def _judged(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses of a host. Raises NotSent where one of them may not be dialled, or none is known."""
        try:
            return await judged_addresses(host, port, self._networks)
        except HostRefused as error:
            raise NotSent(Permanent(why=str(error))) from error
        except HostUnknown as error:
            raise NotSent(Retryable(why=str(error), is_unreachable=True)) from error

    async def _dial(
        self, host: str, port: int, connect: Callable[[str], Awaitable[Dialled]], *, by_name: bool, among: int = 1
    ) -> Dialled:
        """Judge a host's addresses, and connect to one after the other until one answers; or once, by the name.

        `among` so many hosts the time is shared out. What `connect` raises means that nobody answers, but for a
        NotSent that says otherwise.
        """
        addresses = await self._judged(host, port)
        places = (host,) if by_name else addresses
        failed: Exception | None = None
        for place in places:
            try:
                async with asyncio.timeout(self._seconds / len(places) / among):
                    return await connect(place)
            except Exception as error:  # the next may answer
                if isinstance(error, NotSent) and not _is_unreachable(error.result):
                    raise
                failed = error
        raise failed or HostUnknown(f"{host} has no address")

    def _drop(self, connection: Connection) -> None:
        """Forget a connection, and end it in the background."""
        if connection is not self._connection:
            return
        self._connection = None
        ending = asyncio.create_task(self._end_in_time(connection))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def _end_in_time(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(_ENDING_TIMES * self._seconds):
                await self._end(connection)
        except Exception:  # noqa: BLE001  it is given up, however it ends
            return


def _heard(opening: asyncio.Task[Connection]) -> None:
    """Take note of a failure that all who waited for were too late to hear."""
    if not opening.cancelled():
        opening.exception()


def _is_unreachable(result: Retryable | Permanent) -> bool:
    return isinstance(result, Retryable) and result.is_unreachable


def refused(what: str, error: BaseException, *, is_unreachable: bool = False) -> NotSent:
    """Return that a message did not leave, with what the peer said of it; a check keeps that to itself."""
    result = Retryable(why=f"{what}: {told(error)}", is_unreachable=is_unreachable)
    return NotSent(result, seen=f"{what} ({kind_of(error)})")


def told(error: BaseException) -> str:
    """Return what an error says; its name where it says nothing."""
    return bounded(str(error)) or type(error).__name__


def bounded(words: str) -> str:
    """Return the words of a stranger on one line that is not too long."""
    said = " ".join(words[: 4 * _LONGEST_WORDS].split())
    return said if len(said) <= _LONGEST_WORDS else f"{said[:_LONGEST_WORDS]}…"


def kind_of(error: BaseException) -> str:
    """Return the kind of an error with what the system or TLS says of it, and nothing that a peer said."""
    name, system, cause = type(error).__name__, "", error
    for _ in range(_DEEPEST):
        if isinstance(cause, ssl.SSLError):
            reason = getattr(cause, "reason", None)  # where Python made the error, it has none
            return f"{name}: {reason or type(cause).__name__}"
        if not system and isinstance(cause, OSError) and isinstance(cause.errno, int) and cause.errno > 0:
            system = f": {os.strerror(cause.errno)}"
        cause = cause.__cause__ or cause.__context__ or cause
    return name + system


def without(headers: dict[str, str], *reserved: str) -> dict[str, str]:
    """Return the headers of a message that take no name which the sink itself uses."""
    return {name: value for name, value in headers.items() if name.lower() not in reserved}
