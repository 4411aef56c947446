"""Receivers of webhooks that behave as they are told, byte by byte, and destinations that post to them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult

from outbox_relay.networks import Networks, networks_of
from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Sink
from outbox_relay.sinks.discreet import DiscreetSink
from outbox_relay.sinks.webhook import WebhookSink
from twiceshy_contract.destinations import WebhookDestination

LOOPBACK = networks_of("127.0.0.0/8,::1/128")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Received(msgspec.Struct, frozen=True):
    """A request as it came in. Header names are in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int


class Visit(msgspec.Struct):
    """A request that was read to its end, and the connection to answer on."""

    received: Received
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def say(self, answer: bytes) -> None:
        """Write some bytes, and wait until they are on their way."""
        self.writer.write(answer)
        await self.writer.drain()

    async def gone(self) -> None:
        """Wait until the sender has closed the connection."""
        while await self.reader.read(2**16):
            pass

    def hang_up(self) -> None:
        """Close the connection."""
        self.writer.close()

    def reset(self) -> None:
        """Break the connection."""
        self.writer.transport.abort()


Behaviour = Callable[[Visit], Awaitable[None]]


class Receiver:
    """A server that reads whole requests, keeps them, and answers each by its behaviour."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.requests: list[Received] = []
        self.connections = 0
        self.port = 0
        self.read_one = asyncio.Event()
        self._behaviour = behaviour

    def url(self, host: str = "127.0.0.1", scheme: str = "http") -> str:
        """Return its address, spelled with a host."""
        return f"{scheme}://{host}:{self.port}/hook?a=1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side has had enough."""
        self.connections += 1
        number = self.connections
        try:
            while not writer.is_closing():
                received = await _read(reader, number)
                self.requests.append(received)
                self.read_one.set()
                await self._behaviour(Visit(received, reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()
            with suppress(ConnectionError, TimeoutError, ssl.SSLError):
                await asyncio.wait_for(writer.wait_closed(), 1)


def answering(*answers: bytes) -> Behaviour:
    """Answer with these bytes, the last of them again and again."""
    left = list(answers)

    async def answer(visit: Visit) -> None:
        await visit.say(left.pop(0) if len(left) > 1 else left[0])

    return answer


def status(code: int, *headers: str, body: str = "") -> bytes:
    """Return an answer with a status."""
    lines = (f"HTTP/1.1 {code} Said", f"Content-Length: {len(body.encode())}", *headers)
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


@asynccontextmanager
async def receiver(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """Run a receiver on a free port of the loopback."""
    made = Receiver(behaviour)
    tasks: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(made.serve(reader, writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Webhooks:
    """Opens destinations of the kind `webhook`, and closes them when the test is over."""

    def __init__(self, read_secret: ReadSecret, stack: AsyncExitStack) -> None:
        self._read_secret = read_secret
        self._stack = stack

    def open(
        self,
        url: str,
        networks: Networks = LOOPBACK,
        resolver: AbstractResolver | None = None,
        certificates: ssl.SSLContext | None = None,
        **settings: Any,
    ) -> Sink:
        """Open a destination as the relay would."""
        declared = msgspec.convert({"kind": "webhook", "url": url, "timeout_seconds": 5} | settings, WebhookDestination)

        def opened(read_secret: ReadSecret) -> Sink:
            return WebhookSink("hook", declared, read_secret, networks, resolver=resolver, certificates=certificates)

        sink = DiscreetSink(opened, self._read_secret)
        self._stack.push_async_callback(sink.close)
        return sink


class Names(AbstractResolver):
    """A resolver that answers with what it is told: the last addresses again and again."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        """Answer with the next addresses, whatever the name."""
        self.asked += 1
        addresses = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in addresses
        ]

    async def close(self) -> None:
        """Close nothing."""


async def _read(reader: asyncio.StreamReader, connection: int) -> Received:
    line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
    body = await reader.readexactly(int(headers["content-length"]))
    return Received(line, headers, body, connection)
