"""A line to a server that can be cut, as a network does; the server knows only that its clients are gone."""

import asyncio
from typing import Self


class CutLine:
    """Listens on a port of its own and passes on what comes, until it is cut; who connects afterwards is passed on."""

    def __init__(self, port: int) -> None:
        """Lead to a port of the loopback."""
        self._to = port
        self._ends: set[asyncio.StreamWriter] = set()
        self._carriers: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cut what is left and listen no longer."""
        self._server.close()
        self.cut()
        await asyncio.gather(*self._carriers, return_exceptions=True)

    def cut(self) -> None:
        """Break all connections off, with what is under way in both directions."""
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._ends |= {writer, back}
        for task in (asyncio.create_task(_carry(reader, back)), asyncio.create_task(_carry(there, writer))):
            self._carriers.add(task)
            task.add_done_callback(self._carriers.discard)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.transport.abort()
