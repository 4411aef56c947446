"""A proxy before PostgreSQL that counts round trips: how often a client has asked, and waits for its answer."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

_ENCRYPTION = 80877103
"""The code of a client that asks whether it may speak TLS; it says more afterwards."""
_HEAD = 5


class Trips:
    """Round trips by what was asked: the text of the last statement before the client waits."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def of(self, part: str) -> int:
        """Count those whose statement has a part."""
        return sum(times for text, times in self.asked.items() if part in text)

    def besides(self, part: str) -> int:
        """Count those whose statement has not this part."""
        return self.asked.total() - self.of(part)


class _Client:
    """What one client says, read message by message (PostgreSQL's protocol, version 3)."""

    def __init__(self, trips: Trips) -> None:
        self._trips = trips
        self._said = b""
        self._is_started = False
        self._texts: dict[bytes, str] = {}
        self._text = ""

    def feed(self, data: bytes) -> None:
        """Take what the client sent."""
        self._said += data
        while self._next():
            pass

    def _next(self) -> bool:
        head = _HEAD if self._is_started else 4
        if len(self._said) < head:
            return False
        length = int.from_bytes(self._said[head - 4 : head], "big") + head - 4
        if len(self._said) < length:
            return False
        message, self._said = self._said[:length], self._said[length:]
        if self._is_started:
            self._read(message[:1], message[head:])
        else:
            self._is_started = int.from_bytes(message[4:8], "big") != _ENCRYPTION
        return True

    def _read(self, kind: bytes, content: bytes) -> None:
        match kind:
            case b"P":  # parse: the statement's name, and its text
                name, text, _ = content.split(b"\0", 2)
                self._text = self._texts[name] = text.decode()
            case b"B":  # bind: the portal's name, and the statement's
                self._text = self._texts.get(content.split(b"\0", 2)[1], self._text)
            case b"Q":
                self._trips.asked[content.rstrip(b"\0").decode()] += 1
            case b"S":  # sync: all until here, and the client waits
                self._trips.asked[self._text] += 1
            case _:
                pass


@asynccontextmanager
async def counted(url: str) -> AsyncIterator[tuple[str, Trips]]:
    """Stand before a PostgreSQL; give the address to be used in its place, and what is counted."""
    parts = urlsplit(url)
    trips = Trips()
    tasks: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: _Client | None) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(2**16):
                if client is not None:
                    client.feed(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, onward = await asyncio.open_connection(parts.hostname, parts.port)
        for passing in (pass_on(reader, onward, _Client(trips)), pass_on(upstream, writer, None)):
            task = asyncio.create_task(passing)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl(), trips
    finally:
        server.close()
        await asyncio.gather(*tasks)
