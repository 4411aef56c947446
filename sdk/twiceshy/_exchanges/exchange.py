"""One request that passes the boundary of its run: from its entry to the last that the code reads of the answer.

The outcome is given once: where the answer was read to its end, where its reader closed it, or where it broke. An
answer that is dropped without a close has no outcome: nobody knows what the code saw of it.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from msgspec.structs import replace

from twiceshy._boundaries import Outcome
from twiceshy._exchanges.answers import Answer, is_stream, read_answer, written_body, written_stream
from twiceshy._exchanges.asked import Asked, boundary_of
from twiceshy._exchanges.headers import TYPE, kept_headers
from twiceshy._exchanges.hidden import Hidden
from twiceshy._exchanges.options import HttpOptions
from twiceshy._exchanges.secrets import without_secrets
from twiceshy._passing import Passing
from twiceshy._pump import PATIENCE_SECONDS
from twiceshy._replaying import refuse_lost_in_replay
from twiceshy._run import recorded_here
from twiceshy._session import Session, failed, is_inside_any
from twiceshy._stream_values import StreamEnd
from twiceshy.exceptions import EffectRef, RecordMismatch

_LAST_WORDS: Final = (b"data: [DONE]", b"data:[DONE]", b"event: message_stop", b"event: response.completed")
"""What the last chunk of a model's stream says: its reader may close it then, and has read all of it."""


class Decode(Protocol):
    """What takes the encoding off a body. None: it cannot."""

    def __call__(self, headers: dict[str, str], body: bytes, /) -> bytes | None:
        """Return the plain body."""
        ...


class Exchange:
    """A request at its boundary."""

    def __init__(
        self, name: str, passing: Passing, asked: Asked, options: HttpOptions, decode: Decode | None = None
    ) -> None:
        self.name: Final = name
        self.served: Final = passing.served
        """What the record has in the place of the answer; None: the request is really sent."""
        self._passing = passing
        self._secrets = options.secrets
        self._hidden = Hidden(asked, options.secrets)
        self._decode = decode
        self._began = time.perf_counter_ns()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._all_headers: dict[str, str] = {}
        self._chunks: list[tuple[int, bytes]] = []
        self._is_given = False

    def answer(self) -> Answer:
        """Return the answer of the record. Raises SetupError."""
        return read_answer(None if self.served is None else self.served.value, self.name)

    def answered(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Hear of the head of the answer."""
        given = list(headers)
        self._status = status
        self._all_headers = {name.lower(): value for name, value in given}
        self._headers = kept_headers(given, self._secrets, is_encoded=self._decode is not None)

    def chunk(self, data: bytes) -> None:
        """Hear of a part of the answer that goes to the code."""
        if data and not self._is_given:
            self._chunks.append(((time.perf_counter_ns() - self._began) // 1000, bytes(data)))

    def give(self, outcome: Callable[[], Outcome | None]) -> None:
        """Give the outcome, once."""
        if not self._is_given:
            self._is_given = True
            self._passing.give(outcome())

    async def give_async(self, outcome: Callable[[], Outcome | None]) -> None:
        """Give the outcome, once."""
        if not self._is_given:
            self._is_given = True
            await self._passing.give_async(outcome())

    def of_record(self) -> None:
        """Return nothing in the place of an outcome: the one that is served is given."""

    def complete(self) -> Outcome:
        """Return the outcome of an answer that was read to its end."""
        if is_stream(self._all_headers):
            return self._ended("complete", None)
        body, headers = b"".join(chunk for _, chunk in self._chunks), self._headers
        if self._decode is not None and "content-encoding" in headers:
            plain = self._decode(headers, body)
            if plain is not None:
                body = plain
                headers = {name: value for name, value in headers.items() if name != "content-encoding"}
        return _result(written_body(self._status, headers, body, self._secrets))

    def stopped(self) -> Outcome:
        """Return the outcome of an answer whose reader closed it: all of it, where it had said its last word."""
        tail = b"".join(chunk for _, chunk in self._chunks[-3:])
        is_over = self._all_headers.get(TYPE, "").startswith("text/event-stream") and any(
            word in tail for word in _LAST_WORDS
        )
        return self._ended("complete" if is_over else "stopped", None)

    def cancelled(self) -> Outcome:
        """Return the outcome of an answer whose reader was cancelled while it read."""
        return self._ended("cancelled", None)

    def failed(self, error: BaseException) -> Callable[[], Outcome]:
        """Return what gives an error in the place of an answer, without the secrets of the request."""
        return lambda: replace(failed(error), told=self._hidden.written(error))

    def cut(self, error: BaseException) -> Callable[[], Outcome]:
        """Return what gives the outcome of an answer that broke."""
        return lambda: self._ended("cut", error)

    def beyond(self) -> RecordMismatch:
        """Return the error of code that reads more of an answer than the record has."""
        return RecordMismatch(
            f"{self.name}: the recorded code stopped reading the answer here, and the record has no more of it. Stop "
            "where it stopped, or fork the run before this call.",
            effect=EffectRef(tool=self.name),
        )

    async def wait_for_cancellation(self) -> None:
        """Wait as the recorded code did when it was cancelled, and not for ever."""
        await asyncio.sleep(PATIENCE_SECONDS)

    def _ended(self, end: StreamEnd, error: BaseException | None) -> Outcome:
        said = None if error is None else self._hidden.written(error)
        return _result(written_stream(self._status, self._headers, self._chunks, end, said))


def session_here(method: str, url: str) -> Session | None:
    """Return the boundaries of the run that is recorded or replayed here; None where a request just passes.

    A replay lets nothing pass beside its run: it has no record of that.
    """
    session = recorded_here()
    if session is None and not is_inside_any():
        refuse_lost_in_replay(f"{method} {without_secrets(url)}")
    return session


def enter(session: Session, asked: Asked, options: HttpOptions, decode: Decode | None = None) -> Exchange:
    """Enter the boundary of a request."""
    boundary = boundary_of(asked, options)
    return Exchange(boundary.name, session.enter(boundary), asked, options, decode)


async def enter_async(session: Session, asked: Asked, options: HttpOptions, decode: Decode | None = None) -> Exchange:
    """Enter the boundary of a request on an event loop."""
    boundary = boundary_of(asked, options)
    return Exchange(boundary.name, await session.enter_async(boundary), asked, options, decode)


def _result(written: object) -> Outcome:
    return Outcome(kind="result", written=written)
