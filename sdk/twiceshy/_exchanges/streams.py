"""The body of an answer on its way to the code: teed while it is recorded, played out of the record in a replay.

A chunk goes on as soon as it is there. Reading may go on in a second iterator where the first one stood.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator

from twiceshy._exchanges.answers import Answer
from twiceshy._exchanges.exchange import Exchange


class Tee:
    """A body that is recorded as it is read."""

    def __init__(self, exchange: Exchange, chunks: Iterable[bytes], close: Callable[[], object]) -> None:
        self._exchange = exchange
        self._inner = chunks
        self._close = close
        self._is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._inner:
                self._exchange.chunk(chunk)
                yield chunk
        except Exception as error:
            self._exchange.give(self._exchange.cut(error))
            raise
        self._close_inner()
        self._exchange.give(self._exchange.complete)

    def close(self) -> None:
        """Close the body: what was not read yet is not recorded."""
        self._close_inner()
        self._exchange.give(self._exchange.stopped)

    def _close_inner(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._close()


class AsyncTee:
    """A body that is recorded as it is read, on an event loop."""

    def __init__(
        self, exchange: Exchange, chunks: AsyncIterable[bytes], close: Callable[[], Awaitable[object]]
    ) -> None:
        self._exchange = exchange
        self._inner = chunks
        self._close = close
        self._is_closed = False
        self._was_cancelled = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                self._exchange.chunk(chunk)
                yield chunk
        except asyncio.CancelledError:
            self._was_cancelled = True
            raise
        except Exception as error:
            await self._exchange.give_async(self._exchange.cut(error))
            raise
        await self._close_inner()
        await self._exchange.give_async(self._exchange.complete)

    async def aclose(self) -> None:
        """Close the body: what was not read yet is not recorded."""
        await self._close_inner()
        exchange = self._exchange
        await exchange.give_async(exchange.cancelled if self._was_cancelled else exchange.stopped)

    async def _close_inner(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._close()


class Played:
    """A body out of the record. `own` makes an error of the record the library's own again."""

    def __init__(self, exchange: Exchange, answer: Answer, own: Callable[[BaseException], BaseException]) -> None:
        self._exchange = exchange
        self._answer = answer
        self._own = own
        self._left = list(reversed(answer.chunks))

    def __iter__(self) -> Iterator[bytes]:
        while self._left:
            yield self._left.pop()
        self._exchange.give(self._exchange.of_record)
        self.end()

    def close(self) -> None:
        """Close the body as the recorded code did."""
        self._exchange.give(self._exchange.of_record)

    def end(self) -> None:
        """Raise what the recorded code heard after the last chunk."""
        if self._answer.error is not None:
            raise self._own(self._answer.error)
        if self._answer.end != "complete":
            raise self._exchange.beyond()


class AsyncPlayed(Played):
    """A body out of the record, on an event loop."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._left:
            yield self._left.pop()
        if self._answer.end == "cancelled":
            await self._exchange.wait_for_cancellation()
        await self._exchange.give_async(self._exchange.of_record)
        self.end()

    async def aclose(self) -> None:
        """Close the body as the recorded code did."""
        await self._exchange.give_async(self._exchange.of_record)


def restated(error: BaseException, request: object) -> BaseException:
    """Return an error of the record with the request that it is about, where its class has a place for one."""
    with contextlib.suppress(Exception):  # a foreign class may refuse anything
        vars(error).update(_request=request, request=request)
    return error
