"""Replies of Redis (RESP 2), read with bounds: a length is never believed before as much has come.

The client library makes room for as many items as a reply says that it has, so that one line could cost all memory.
"""

from typing import Any, Final

LARGEST_BULK: Final = 2**20
"""Bytes of a text."""
MOST_ITEMS: Final = 10_000
"""Of a list."""
_DEEPEST: Final = 4
_LONGEST_LINE: Final = 64 * 2**10
_END: Final = b"\r\n"


class Unreadable(Exception):
    """What came is no reply of Redis to anything that is asked here."""


class Refusal(Exception):
    """The server refused a command; the text is its own."""


class _Incomplete(Exception):
    """More has to come."""


class Replies:
    """Takes pieces, and gives the replies that are complete."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, piece: bytes) -> list[Any]:
        """Take a piece; return the replies that it completes. Raises Unreadable."""
        self._buffer = buffer = self._buffer + piece if self._buffer else piece
        replies, place = [], 0
        try:
            while place < len(buffer):
                reply, place = _read(buffer, place, _DEEPEST)
                replies.append(reply)
        except _Incomplete:
            pass
        self._buffer = buffer[place:]
        return replies


def _read(buffer: bytes, place: int, depth: int) -> tuple[Any, int]:
    """Read the reply at a place, and return it and where the next begins."""
    end = buffer.find(_END, place)
    if end < 0:
        if len(buffer) - place > _LONGEST_LINE:
            raise Unreadable("a line without an end")
        raise _Incomplete
    kind, line, after = buffer[place : place + 1], buffer[place + 1 : end], end + 2
    if kind == b"$":
        return _bulk(buffer, after, _number(line, LARGEST_BULK))
    if kind == b"+":
        return line, after
    if kind == b":":
        return _number(line, 2**63), after
    if kind == b"-":
        return Refusal(line.decode(errors="replace")), after
    if kind != b"*" or not depth:
        raise Unreadable(f"a reply that begins with {buffer[place : place + 20]!r}")
    count = _number(line, MOST_ITEMS)
    if count < 0:
        return None, after
    items = []
    for _ in range(count):
        item, after = _read(buffer, after, depth - 1)
        items.append(item)
    return items, after


def _bulk(buffer: bytes, start: int, length: int) -> tuple[bytes | None, int]:
    if length < 0:
        return None, start
    end = start + length
    if len(buffer) < end + 2:
        raise _Incomplete
    if buffer[end : end + 2] != _END:
        raise Unreadable("a text that does not end where it says")
    return buffer[start:end], end + 2


def _number(line: bytes, most: int) -> int:
    try:
        number = int(line)
    except ValueError as error:
        raise Unreadable(f"no number: {line[:20]!r}") from error
    if not -most <= number <= most:
        raise Unreadable(f"a number beyond all bounds: {line[:20]!r}")
    return number
