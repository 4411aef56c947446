"""The content of a response of aiohttp: teed while it is recorded, played out of the record in a replay."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from twiceshy._exchanges.answers import Answer
from twiceshy._exchanges.exchange import Exchange
from twiceshy._exchanges.streams import AsyncPlayed


class _Content(ABC):
    """The ways to read on that rest on the others."""

    @abstractmethod
    async def read(self, n: int = -1) -> bytes:
        """Read up to n bytes, or all."""

    @abstractmethod
    async def readany(self) -> bytes:
        """Read what is there."""

    @abstractmethod
    async def readchunk(self) -> tuple[bytes, bool]:
        """Read a part as the server sent it."""

    @abstractmethod
    async def readuntil(self, separator: bytes = b"\n", **limits: Any) -> bytes:
        """Read up to a separator, with it."""

    async def readline(self, **limits: Any) -> bytes:
        """Read a line."""
        return await self.readuntil(**limits)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while line := await self.readline():
            yield line

    async def iter_chunked(self, n: int) -> AsyncIterator[bytes]:
        """Read up to n bytes at a time."""
        while part := await self.read(n):
            yield part

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Read what is there at a time."""
        while part := await self.readany():
            yield part

    async def iter_chunks(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Read a part as the server sent it at a time."""
        while (part := await self.readchunk()) != (b"", False):
            yield part


class TeedContent(_Content):
    """What the server sends, recorded as it is read. All else is aiohttp's own."""

    def __init__(self, exchange: Exchange, content: Any) -> None:
        self._exchange: Final = exchange
        self._content: Final = content
        self._was_cancelled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def read(self, n: int = -1) -> bytes:
        """Read up to n bytes, or all."""
        data: bytes = await self._noted(self._content.read(n))
        if n < 0 or (not data and n):
            await self._exchange.give_async(self._exchange.complete)
        return data

    async def readany(self) -> bytes:
        """Read what is there."""
        return await self._noted_to_the_end(self._content.readany())

    async def readchunk(self) -> tuple[bytes, bool]:
        """Read a part as the server sent it."""
        part: tuple[bytes, bool] = await self._noted(self._content.readchunk())
        if part == (b"", False):
            await self._exchange.give_async(self._exchange.complete)
        return part

    async def readuntil(self, separator: bytes = b"\n", **limits: Any) -> bytes:
        """Read up to a separator, with it."""
        return await self._noted_to_the_end(self._content.readuntil(separator, **limits))

    async def readexactly(self, n: int) -> bytes:
        """Read n bytes."""
        data: bytes = await self._noted(self._content.readexactly(n))
        return data

    def read_nowait(self, n: int = -1) -> bytes:
        """Read up to n bytes of what is there."""
        data: bytes = self._content.read_nowait(n)
        self._exchange.chunk(data)
        return data

    def set_exception(self, error: BaseException, *cause: BaseException) -> None:
        """Hear that the response was let go: what was not read yet is not recorded."""
        exchange = self._exchange
        if self._content.at_eof():
            exchange.give(exchange.complete)
        else:
            exchange.give(exchange.cancelled if self._was_cancelled else exchange.stopped)
        self._content.set_exception(error, *cause)

    async def _noted_to_the_end(self, reading: Awaitable[Any]) -> bytes:
        data: bytes = await self._noted(reading)
        if not data:
            await self._exchange.give_async(self._exchange.complete)
        return data

    async def _noted(self, reading: Awaitable[Any]) -> Any:
        try:
            data = await reading
        except asyncio.CancelledError:
            self._was_cancelled = True
            raise
        except asyncio.IncompleteReadError as error:
            self._exchange.chunk(error.partial)
            await self._exchange.give_async(self._exchange.complete)
            raise
        except Exception as error:
            await self._exchange.give_async(self._exchange.cut(error))
            raise
        self._exchange.chunk(data[0] if isinstance(data, tuple) else data)
        return data


class PlayedContent(_Content):
    """What the record has in the place of what the server sends."""

    def __init__(self, exchange: Exchange, answer: Answer, own: Callable[[BaseException], BaseException]) -> None:
        self._exchange: Final = exchange
        self._parts: Final = AsyncPlayed(exchange, answer, own).__aiter__()
        self._kept = b""
        self._is_over = False
        self._is_in_parts = answer.is_stream
        self.total_bytes: Final = sum(map(len, answer.chunks))

    async def read(self, n: int = -1) -> bytes:
        """Read up to n bytes, or all."""
        if n < 0:
            while await self._more():
                pass
        elif n and not self._kept:
            await self._more()
        return self._cut(len(self._kept) if n < 0 else n)

    async def readany(self) -> bytes:
        """Read the next part of the record."""
        if not self._kept:
            await self._more()
        return self._cut(len(self._kept))

    async def readchunk(self) -> tuple[bytes, bool]:
        """Read the next part of the record."""
        part = await self.readany()
        return part, bool(part) and self._is_in_parts

    async def readuntil(self, separator: bytes = b"\n", **limits: Any) -> bytes:  # noqa: ARG002 - aiohttp's signature
        """Read up to a separator, with it."""
        while separator not in self._kept and await self._more():
            pass
        at = self._kept.find(separator)
        return self._cut(len(self._kept) if at < 0 else at + len(separator))

    async def readexactly(self, n: int) -> bytes:
        """Read n bytes."""
        while len(self._kept) < n and await self._more():
            pass
        if len(self._kept) < n:
            raise asyncio.IncompleteReadError(self._cut(n), n)
        return self._cut(n)

    def read_nowait(self, n: int = -1) -> bytes:
        """Read of what is there."""
        return self._cut(len(self._kept) if n < 0 else n)

    def at_eof(self) -> bool:
        """Say whether all was read."""
        return self._is_over and not self._kept

    def is_eof(self) -> bool:
        """Say whether nothing more comes."""
        return self._is_over

    def exception(self) -> BaseException | None:
        """Return nothing: what broke is raised where it is read."""
        return None

    def set_exception(self, error: BaseException, *cause: BaseException) -> None:
        """Hear that the response was let go, as the recorded code did."""
        del error, cause
        self._exchange.give(self._exchange.of_record)

    async def _more(self) -> bool:
        try:
            self._kept += await anext(self._parts)
        except StopAsyncIteration:
            self._is_over = True
            return False
        return True

    def _cut(self, n: int) -> bytes:
        data, self._kept = self._kept[:n], self._kept[n:]
        return data
