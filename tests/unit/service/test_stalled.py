"""Connections that stand still are closed after some looks; those that wait for us, or move, are not."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, cast

import uvicorn
from uvicorn.server import ServerState

from guard.cli.protocol import OnePieceProtocol
from guard.cli.stalled import MOST_LOOKS, Stalled, Watched

HEAD = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\n"
BODY = b"0123456789"
LARGE = 32 * 2**20


class Served:
    """An application that answers once it is let, and the connections to it."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.asked = asyncio.Event()
        self.answer = b"well"
        self.state = ServerState()
        self.stalled = Stalled(cast("Collection[Watched]", self.state.connections))
        self.port = 0

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        """Answer a request whose body is there."""
        self.asked.set()
        while (await receive()).get("more_body"):
            pass
        await self.may_answer.wait()
        length = str(len(self.answer)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": self.answer})

    def stalled_now(self) -> list[tuple[object, int] | None]:
        """Return what is unfinished on each connection."""
        return [cast("OnePieceProtocol", connection).unfinished for connection in self.state.connections]

    def looks(self, times: int) -> list[int]:
        """Look so often; return how many connections each look closed."""
        return [self.stalled.run_once() for _ in range(times)]


@asynccontextmanager
async def serving() -> AsyncIterator[Served]:
    served = Served()
    config = uvicorn.Config(cast("Any", served), lifespan="off", log_level="warning", timeout_keep_alive=60)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: OnePieceProtocol(config=config, server_state=served.state, app_state={}), "127.0.0.1", 0
    )
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for connection in list(served.state.connections):
            cast("OnePieceProtocol", connection).cut()
        await server.wait_closed()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - it is the server's and not ours to say
            await asyncio.sleep(0)


async def connected(served: Served, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    before = len(served.state.connections)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(sent)
    await until(lambda: len(served.state.connections) > before)
    await until(lambda: served.asked.is_set() or not sent.startswith(HEAD))
    return reader, writer


async def is_closed(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(10):
        try:
            return await reader.read() == b""
        except ConnectionResetError:
            return True


async def test_who_sends_half_a_head_or_half_a_body_or_nothing_is_closed() -> None:
    async with serving() as served:
        for sent in (b"", b"POST / HT", HEAD + BODY[:5]):
            reader, writer = await connected(served, sent)
            assert served.looks(MOST_LOOKS + 1) == [0] * MOST_LOOKS + [1]
            assert await is_closed(reader)
            writer.close()


async def test_who_waits_for_its_answer_or_has_had_it_is_not_closed() -> None:
    async with serving() as served:
        served.may_answer.clear()
        reader, writer = await connected(served, HEAD + BODY)
        assert served.looks(3 * MOST_LOOKS) == [0] * 3 * MOST_LOOKS
        served.may_answer.set()
        assert b"200 OK" in await reader.readuntil(b"well")
        assert served.looks(3 * MOST_LOOKS) == [0] * 3 * MOST_LOOKS
        writer.write(HEAD + BODY)
        assert b"200 OK" in await reader.readuntil(b"well")
        writer.close()


async def test_who_sends_half_a_second_request_is_closed() -> None:
    async with serving() as served:
        reader, writer = await connected(served, HEAD + BODY)
        await reader.readuntil(b"well")
        writer.write(b"POST ")
        await until(lambda: served.stalled_now() != [None])
        assert served.looks(MOST_LOOKS + 1)[-1] == 1
        assert await is_closed(reader)
        writer.close()


async def test_who_never_reads_its_answer_is_closed_and_who_reads_slowly_is_not() -> None:
    async with serving() as served:
        served.answer = bytes(LARGE)
        reader, writer = await connected(served, HEAD + BODY)
        await until(lambda: served.stalled_now() != [None])
        for _ in range(2 * MOST_LOOKS):
            before = served.stalled_now()
            while served.stalled_now() == before:
                await reader.readexactly(2**20)
            assert served.looks(1) == [0]
        assert sum(served.looks(MOST_LOOKS + 1)) == 1
        writer.close()
