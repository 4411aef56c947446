"""The parts of a mail that came in, read with work that is bounded whatever a stranger wrote.

The standard library's parser asks of every line whether it ends any of the parts that it is in, and takes headers apart
by copying what is left of them: left alone, a small mail keeps it busy for minutes.
"""

import functools
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from typing import Any, Final

MOST_LINES: Final = 250_000
"""More than the 16 MiB have that may come in, where their lines are as long as those of base64."""
DEEPEST: Final = 20
_MOST_QUESTIONS: Final = 1_000_000
_MOST_PARTS: Final = 1000
_MOST_HEADERS: Final = 10_000
_LONGEST_HEADER: Final = 20_000
_LONGEST_TYPE: Final = 2000
"""How long a header may be that says what a part is: its parameters are taken apart at every look."""
_LARGEST_HEAD: Final = 2**18
_BLANK_LINES: Final = (b"\r\n\r\n", b"\n\n", b"\r\r")


class TooMuch(Exception):
    """A mail has more lines, headers, or parts within parts, than are read."""


class _Bounds:
    """What is left of what all parts of a mail may have together."""

    def __init__(self, raw: bytes) -> None:
        self._lines = max(raw.count(b"\n"), raw.count(b"\r"))
        self._parts = _MOST_PARTS
        self._headers = _MOST_HEADERS
        if self._lines > MOST_LINES:
            raise TooMuch

    def take_part(self, depth: int) -> None:
        self._parts -= 1
        if self._parts < 0 or depth > DEEPEST or depth * self._lines > _MOST_QUESTIONS:
            raise TooMuch

    def take_header(self) -> None:
        self._headers -= 1
        if self._headers < 0:
            raise TooMuch


class _Part(Message):
    """A part of a mail, which grows to no more than its bounds."""

    def __init__(self, policy: Any = compat32, *, bounds: _Bounds) -> None:
        super().__init__(policy)
        self._bounds = bounds
        self._depth = 1

    def attach(self, payload: Any) -> None:
        """Take a part of this part. Raises TooMuch."""
        payload._depth = self._depth + 1  # noqa: SLF001  it is a part like this one
        self._bounds.take_part(payload._depth)  # noqa: SLF001
        super().attach(payload)

    def set_raw(self, name: str, value: str) -> None:
        """Take a header that the parser found, as far as it is read. Raises TooMuch."""
        self._bounds.take_header()
        longest = _LONGEST_TYPE if name.lower().startswith("content-") else _LONGEST_HEADER
        super().set_raw(name, value[:longest])


def parts_of(raw: bytes) -> Message:
    """Take a mail apart. Raises TooMuch, and whatever the parser raises for bytes that are no mail."""
    return _parsed(raw, _Bounds(raw))


def head_of(raw: bytes) -> tuple[Message, bytes]:
    """Return the headers of a mail and its body as it came, for one that is not taken apart. Raises as `parts_of`."""
    ends = [at + len(blank) for blank in _BLANK_LINES if (at := raw.find(blank, 0, _LARGEST_HEAD)) >= 0]
    end = min(ends, default=0)
    head = raw[:end]
    return _parsed(head, _Bounds(head)), raw[end:]


def _parsed(raw: bytes, bounds: _Bounds) -> Message:
    return BytesParser(functools.partial(_Part, bounds=bounds)).parsebytes(raw)
