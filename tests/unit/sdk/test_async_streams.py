"""A model's async stream passes through piece by piece and is one outcome in the record, however it ends."""

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

import pytest

from tests.unit.sdk.recording import LogService, recorded
from tests.unit.sdk.test_streams import Piece, of, recording
from twiceshy import Guard, Run
from twiceshy._replay import replay_async


@pytest.fixture
def service() -> LogService:
    return LogService()


@pytest.fixture
def guard(service: LogService) -> Iterator[Guard]:
    with recorded(service) as guard:
        yield guard


class AsyncClient:
    """The same, async."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[Piece]:
        for piece in self.pieces:
            await asyncio.sleep(0)
            yield Piece(piece)

    async def close(self) -> None:
        """Count."""
        self.closed += 1

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


@pytest.mark.anyio
async def test_an_async_stream_passes_through_and_is_replayed(service: LogService, guard: Guard) -> None:
    async def ask(*, prompt: str) -> AsyncClient:
        return AsyncClient(*prompt.split())

    async def agent(run: Run) -> list[str]:
        return [piece.text async for piece in await run.llm(ask, prompt="one two")]

    async def whole() -> list[str]:
        async with guard.run("r1") as run:
            return await agent(run)

    assert await whole() == ["one", "two"]
    assert [end for _, end, _ in of(service)] == ["complete"]
    replayed = await replay_async(recording(service), whole)
    assert (replayed.value, replayed.is_same) == (["one", "two"], True)


@pytest.mark.anyio
async def test_an_async_generator_passes_through(service: LogService, guard: Guard) -> None:
    async def ask() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    async with guard.run("r1") as run:
        assert [number async for number in run.llm(ask)] == [0, 1, 2]
    assert of(service) == [("result", "complete", [[0], [1], [2]])]


@pytest.mark.anyio
async def test_an_async_stream_is_closed_early(service: LogService, guard: Guard) -> None:
    client = AsyncClient("one", "two")

    async def ask() -> AsyncClient:
        return client

    async def agent() -> str:
        async with guard.run("r1") as run:
            async with await run.llm(ask) as stream:
                piece = await anext(aiter(stream))
            run.now()
            return str(piece.text)

    assert await agent() == "one"
    assert client.closed == 1
    assert [end for _, end, _ in of(service)] == ["stopped"]
    replayed = await replay_async(recording(service), agent)
    assert (replayed.value, replayed.is_same) == ("one", True)


@pytest.mark.anyio
async def test_a_cancelled_stream_is_recorded_and_replayed(service: LogService, guard: Guard) -> None:
    async def ask() -> AsyncIterator[str]:
        yield "one"
        await asyncio.Event().wait()

    async def agent() -> list[str]:
        read: list[str] = []
        has_read = asyncio.Event()

        async def consume(run: Run) -> None:
            async for word in run.llm(ask):
                read.append(word)
                has_read.set()

        async with guard.run("r1") as run:
            task = asyncio.ensure_future(consume(run))
            await has_read.wait()
            task.cancel()
            await asyncio.wait({task})
            run.now()
        return read

    assert await agent() == ["one"]
    assert of(service) == [("cancelled", "cut", [["one"]])]
    replayed = await replay_async(recording(service), agent)
    assert (replayed.value, replayed.is_same) == (["one"], True)


@pytest.mark.anyio
async def test_a_wrapper_around_an_async_client_is_awaited(guard: Guard) -> None:
    async def create(*, prompt: str) -> str:
        return prompt.upper()

    @functools.wraps(create)
    def wrapped(**arguments: Any) -> Any:
        return create(**arguments)

    async with guard.run("r1") as run:
        assert await run.llm(wrapped, prompt="hello") == "HELLO"
