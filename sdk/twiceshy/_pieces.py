"""The pieces of a model's stream: as they come now and are kept, and out of the record.

A stream's value is `{"stream": {"chunks": [[micros, chunk], …], "end": "complete"}}`: when each piece came, counted
from the call, and how the stream ended. `stopped` says that the code read no further; `cut`, that an error broke it
off, which is then the outcome, beside the pieces before it. A third member of a chunk names its type where JSON does
not tell it.
"""

import time
from collections.abc import Callable
from typing import Any, Final, Literal, NoReturn, Protocol

import msgspec

from twiceshy._boundaries import Outcome
from twiceshy._encode import encode_result
from twiceshy._log import opaque
from twiceshy._restore import is_opaque, refuse_opaque, restore
from twiceshy._said import said
from twiceshy._served import typed
from twiceshy._session import failed
from twiceshy._stream_values import STREAM
from twiceshy._type_names import type_of_result
from twiceshy.exceptions import EffectRef, RecordMismatch

End = Literal["complete", "stopped", "cut"]
_ENDS: Final = ("complete", "stopped", "cut")
_WHOLE: Final = (str, bytes, bytearray, memoryview, list, tuple, dict, set, frozenset)


class RecordedStream(msgspec.Struct, frozen=True):
    """A stream of the record: its pieces, how it ended, and its value as it stands there."""

    chunks: tuple[Any, ...]
    end: str
    written: object


def is_stream(value: object) -> bool:
    """Say whether a value gives its pieces one after the other."""
    if isinstance(value, RecordedStream):
        return True
    if isinstance(value, _WHOLE):
        return False
    kind = type(value)
    if hasattr(kind, "__next__") or hasattr(kind, "__anext__"):
        return True
    gives = hasattr(kind, "__iter__") or hasattr(kind, "__aiter__")
    return gives and (hasattr(kind, "close") or hasattr(kind, "aclose"))


def by_pieces(otherwise: Callable[[object, str | None], object]) -> Callable[[object, str | None], object]:
    """Return what reads a recorded stream as one, and all else as it is read otherwise."""

    def read(value: object, first: str | None) -> object:
        recorded = _recorded(value)
        return otherwise(value, first) if recorded is None else recorded

    return read


class Pieces(Protocol):
    """Where the pieces of a stream come from."""

    def next(self) -> Any:
        """Return the next piece. Raises StopIteration at the end."""
        ...

    async def next_async(self) -> Any:
        """Await the next piece. Raises StopAsyncIteration at the end."""
        ...

    def keep(self, piece: Any) -> Any:
        """Return what the code gets of a piece."""
        ...

    def ended(self, end: End, error: BaseException | None) -> Outcome | None:
        """Return the outcome that an end is; None where nobody saw one."""
        ...


class Live:
    """The pieces of a stream that comes now, kept as they come."""

    def __init__(self, stream: Any, source: Outcome, began: int) -> None:
        self.stream: Final = stream
        self._source = source
        self._began = began
        self._iterator: Any = None
        self._kept: list[list[object]] = []

    def next(self) -> Any:
        """Return the next piece."""
        if self._iterator is None:
            self._iterator = iter(self.stream)
        return next(self._iterator)

    async def next_async(self) -> Any:
        """Await the next piece."""
        if self._iterator is None:
            self._iterator = aiter(self.stream)
        return await anext(self._iterator)

    def keep(self, piece: Any) -> Any:
        """Keep a piece, and when it came."""
        micros = (time.perf_counter_ns() - self._began) // 1000
        try:
            kept: list[object] = [micros, encode_result(piece)]
        except Exception as error:  # noqa: BLE001 - a property or model_dump of the piece's own may raise anything
            kept = [micros, opaque(piece, f"it cannot be written as JSON: {said(error)}")]
        else:
            kind = type_of_result(piece)
            if kind is not None:
                kept.append(kind)
        self._kept.append(kept)
        return piece

    def ended(self, end: End, error: BaseException | None) -> Outcome | None:
        """Return all pieces as one outcome."""
        written = {STREAM: {"chunks": self._kept, "end": end}}
        seen = self._source if error is None else failed(error)
        return msgspec.structs.replace(
            seen, value=None, written=written, source=self._source.source, is_given_up=end == "stopped"
        )


class OfRecord:
    """The pieces of a stream of the record, which come at once."""

    def __init__(self, name: str, recorded: RecordedStream, served: Outcome) -> None:
        self.stream: Final = None
        self._name = name
        self._recorded = recorded
        self._served = served
        self._read = 0

    def next(self) -> Any:
        """Return the next piece."""
        if self._read == len(self._recorded.chunks):
            self._end()
        piece = self._recorded.chunks[self._read]
        self._read += 1
        if is_opaque(piece):
            refuse_opaque(piece, EffectRef(tool=self._name))
        return piece

    async def next_async(self) -> Any:
        """Return the next piece."""
        try:
            return self.next()
        except StopIteration:
            raise StopAsyncIteration from None

    def keep(self, piece: Any) -> Any:
        """Return the piece."""
        return piece

    def ended(self, end: End, error: BaseException | None) -> Outcome | None:
        """Return the recorded outcome, however the code ended."""
        del end
        return None if isinstance(error, RecordMismatch) else self._served

    def _end(self) -> NoReturn:
        if self._recorded.end == "stopped":
            raise RecordMismatch(
                f"{self._name}: the code reads its stream further than it did when it was recorded, and no more is in "
                "the recording.",
                effect=EffectRef(tool=self._name),
            )
        raise StopIteration if self._served.error is None else self._served.error


def pieces_of(name: str, outcome: Outcome, began: int) -> Live | OfRecord | None:
    """Return the pieces of an outcome that is a stream; None for any other. `began` is on the clock of performance."""
    if isinstance(outcome.value, RecordedStream):
        recorded = outcome.value
        given = msgspec.structs.replace(
            outcome, value=None, written=recorded.written, is_given_up=recorded.end == "stopped"
        )
        return OfRecord(name, recorded, given)
    return Live(outcome.value, outcome, began) if outcome.error is None and is_stream(outcome.value) else None


def _recorded(value: object) -> RecordedStream | None:
    """Read a stream's value. Raises Misfit for a piece that does not fit its type."""
    body = value.get(STREAM) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(body, dict) or set(body) != {"chunks", "end"} or body["end"] not in _ENDS:
        return None
    chunks = body["chunks"]
    if not isinstance(chunks, list) or not all(isinstance(chunk, list) and len(chunk) in (2, 3) for chunk in chunks):
        return None
    return RecordedStream(tuple(_piece(*chunk[1:]) for chunk in chunks), body["end"], value)


def _piece(written: object, kind: str | None = None) -> Any:
    return written if is_opaque(written) else restore(written, typed(kind), kind)
