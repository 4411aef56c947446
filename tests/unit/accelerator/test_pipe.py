"""The pipe: answers come back to who asked, in their order; what is no answer ends it, and all who wait hear of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from guard.accelerator.address import Address
from guard.accelerator.pipe import Pipe, connected
from guard.accelerator.replies import Refusal

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
GREETING = b"*1\r\n$4\r\nPING\r\n"


class Server:
    """Answers the greeting; what comes then is the test's."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.after: Serve = self.nothing
        self.port = 0
        self.heard = b""
        self.is_done = asyncio.Event()

    async def nothing(self, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        """Answer no more."""

    async def pipe(self) -> Pipe:
        address = Address(kind="single", hosts=(("127.0.0.1", self.port),))
        return await connected(address, address.hosts[0], self.lost.append)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            assert await reader.readexactly(len(GREETING)) == GREETING
            writer.write(b"+PONG\r\n")
            with suppress(ConnectionError):
                await self.after(reader, writer)
                self.heard += await reader.read(2**16)
        finally:
            writer.close()
            self.is_done.set()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    listening.close()
    await made.is_done.wait()


def saying(*pieces: bytes) -> Serve:
    """Wait for the first byte of a question, then say pieces one after the other."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return say


async def test_answers_come_back_to_who_asked(server: Server) -> None:
    server.after = saying(b"$1\r\na\r", b"\n:1\r\n$-1\r", b"\n-WRONGTYPE no\r\n*2\r\n$1\r\nb\r\n:2\r\n")
    pipe = await server.pipe()
    first, second = await asyncio.gather(pipe.ask([("A",), ("B", b"x", 1)]), pipe.ask([("C",), ("D",), ("E",)]))
    assert first == [b"a", 1]
    assert (second[0], str(second[1]), second[2]) == (None, "WRONGTYPE no", [b"b", 2])
    assert isinstance(second[1], Refusal)
    pipe.close()


async def test_who_has_gone_leaves_the_answers_of_others_in_their_places(server: Server) -> None:
    server.after = saying(b"+mine\r\n+yours\r\n")
    pipe = await server.pipe()
    gone = asyncio.create_task(pipe.ask([("A",)]))
    stays = asyncio.create_task(pipe.ask([("B",)]))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays == [b"yours"]
    pipe.close()


@pytest.mark.parametrize(
    "junk", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"+an answer\r\n+to nothing\r\n", b"*1000000000\r\n" * 5]
)
async def test_what_is_no_answer_ends_it_for_all(server: Server, junk: bytes) -> None:
    server.after = saying(junk)
    pipe = await server.pipe()
    results = await asyncio.gather(pipe.ask([("A",)]), pipe.ask([("B",), ("C",)]), return_exceptions=True)
    if junk.startswith(b"*"):
        assert all(isinstance(result, ConnectionError) for result in results)
    assert isinstance(results[1], ConnectionError)
    with pytest.raises(ConnectionError, match="closed"):
        await pipe.ask([("D",)])
    assert len(server.lost) == 1


async def test_a_connection_that_ends_is_told_once_and_one_that_was_closed_is_not(server: Server) -> None:
    async def end(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server.after = end
    pipe = await server.pipe()
    async with asyncio.timeout(5):
        await server.is_done.wait()
        with pytest.raises(ConnectionError):
            await pipe.ask([("A",)])
    assert len(server.lost) == 1
    server.after = server.nothing
    (await server.pipe()).close()
    await asyncio.sleep(0)
    assert len(server.lost) == 1
