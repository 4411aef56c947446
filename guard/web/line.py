"""The canonical log line: one JSON line a request, with all that is worth knowing of it as keys."""

import random
import time
from typing import Final

from litestar.types import HTTPScope

from guard.logs import LineLogger, request_id
from guard.web.answer import REQUEST_ID

_LONGEST_ID: Final = 128

_log = LineLogger("guard.request")


class Line:
    """What is known of one request while it is served. `facts` are written by whoever serves it."""

    __slots__ = ("_method", "_path", "_started", "facts", "request_id")

    def __init__(self, scope: HTTPScope) -> None:
        self.request_id = request_id_of(scope)
        self.facts: dict[str, object] = {}
        self._method = scope["method"]
        self._path = scope["path"]
        self._started = time.perf_counter()
        request_id.set(self.request_id)

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self._started

    def write(self, status: int) -> None:
        """Write the line. What went wrong on our side is a warning."""
        level = "warning" if status >= 500 else "info"
        if not _log.wants(level):
            return
        event = {"method": self._method, "path": self._path, "status": status}
        event["milliseconds"] = round(self.seconds * 1000, 3)
        event |= self.facts
        event["request_id"] = self.request_id
        event["event"] = "request"
        _log.write(level, event)


def request_id_of(scope: HTTPScope) -> str:
    """Return the id that the client sent, where it can be written in a line, else a new one."""
    for name, value in scope["headers"]:
        if name == REQUEST_ID:
            text = value.decode("latin-1")
            if 0 < len(text) <= _LONGEST_ID and text.isascii() and text.isprintable() and " " not in text:
                return text
    return f"{random.getrandbits(128):032x}"  # it need be new, not secret; a forked child draws others
