"""A model's answer that comes in pieces: each passes to the code at once, and all are recorded as one outcome."""

import contextlib
import inspect
from collections.abc import Awaitable, Generator
from types import TracebackType
from typing import Any, Final, Self

from twiceshy._boundaries import Outcome
from twiceshy._event_loop import is_on_loop
from twiceshy._passing import Passing
from twiceshy._pieces import Live, OfRecord, Pieces
from twiceshy._session import UNSEEN, Session

_DRIVEN: Final = frozenset({"send", "throw", "asend", "athrow"})
"""What would bring pieces past the recording."""


class Stream:
    """What stands in the place of a model's stream: it passes the pieces on.

    It has the other methods and attributes of the stream itself; in a replay there are the pieces alone.
    """

    def __init__(self, session: Session, passing: Passing, pieces: Live | OfRecord) -> None:
        self._session = session
        self._passing = passing
        self._pieces: Pieces = pieces
        self._stream: Any = pieces.stream
        self._is_over = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._is_over:
            raise StopIteration
        try:
            with self._session.inside():
                piece = self._pieces.next()
        except BaseException as error:
            outcome = self._seen(error)
            if outcome is not None:
                self._passing.give(outcome)
            raise
        return self._pieces.keep(piece)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        if self._is_over:
            raise StopAsyncIteration
        try:
            with self._session.inside():
                piece = await self._pieces.next_async()
        except BaseException as error:
            outcome = self._seen(error)
            if outcome is not None:
                await self._passing.give_async(outcome)
            raise
        return self._pieces.keep(piece)

    def close(self) -> Any:
        """Read no further; awaited where the stream is async."""
        close = getattr(self._stream, "aclose", None) or getattr(self._stream, "close", None)
        closing = None if close is None else close()
        if inspect.isawaitable(closing) or (self._stream is None and is_on_loop()):
            return _Closing(self, closing)
        self.stop()
        return None

    aclose = close

    def stop(self) -> None:
        """Note that the code reads no further."""
        if not self._is_over:
            self._is_over = True
            outcome = self._pieces.ended("stopped", None)
            if outcome is not None:
                self._passing.give(outcome)

    async def stop_async(self) -> None:
        """Do the same on an event loop."""
        if not self._is_over:
            self._is_over = True
            outcome = self._pieces.ended("stopped", None)
            if outcome is not None:
                await self._passing.give_async(outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        closing = self.close()
        if closing is not None:
            await closing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _DRIVEN or self._stream is None:
            raise AttributeError(f"a recorded stream has no {name!r}: its pieces are read one after the other")
        return getattr(self._stream, name)

    def __del__(self) -> None:
        with contextlib.suppress(BaseException):
            self.stop()

    def _seen(self, error: BaseException) -> Outcome | None:
        """Return the outcome that the end of the pieces is; None where the code sees none."""
        self._is_over = True
        if isinstance(error, UNSEEN):
            return None
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            return self._pieces.ended("complete", None)
        return self._pieces.ended("cut", error)


class _Closing:
    """The end of an async stream, which is awaited."""

    def __init__(self, stream: Stream, closing: Awaitable[Any] | None) -> None:
        self._stream = stream
        self._closing = closing

    def __await__(self) -> Generator[Any, None, None]:
        return self._close().__await__()

    async def _close(self) -> None:
        if self._closing is not None:
            await self._closing
        await self._stream.stop_async()
