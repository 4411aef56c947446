"""The service's log: one JSON line an event, through the standard library's logger `twiceshy.guard`.

Embedded, the service is a guest in somebody's program, which may use structlog itself: so nothing here touches
structlog's own configuration, and nothing is printed that the program's `logging` does not want.
"""

import asyncio
import functools
import logging
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Final, TextIO, cast

import msgspec
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

request_id: Final[ContextVar[str | None]] = ContextVar("guard_request_id", default=None)
"""The id of the request that is being served here."""

_ROOT: Final = "twiceshy.guard"
_worker: Final[dict[str, int]] = {}
"""What names this process in its lines, where it is one of several."""
_LINES_TOGETHER: Final = 8
"""So many lines of one of several processes fit what a pipe takes as a whole (4,096 bytes), and are not torn apart."""
_LEVELS: Final[Mapping[str, int]] = logging.getLevelNamesMapping()


def logger(name: str) -> FilteringBoundLogger:
    """Return the logger of a part of the guard, such as `guard.web`. Its events carry the id of their request."""
    return _logger(name, _add_request, structlog.processors.format_exc_info)


class LineLogger:
    """Writes events that say all of themselves, one every request: the same lines, without the way through structlog.

    Where the log is the service's own, what is written in one turn of the loop reaches the system together.
    """

    def __init__(self, name: str) -> None:
        self._outlet = _Outlet(logging.getLogger(f"twiceshy.{name}"))

    def wants(self, method: str) -> bool:
        """Say whether anybody reads events of a level, `info` or `warning`."""
        return self._outlet.wants(method)

    def write(self, method: str, event: EventDict) -> None:
        """Write an event that is wanted."""
        event["level"] = method
        line = _rendered(self._outlet, method, _add_time(self._outlet, method, event))
        self._outlet.write_soon(_LEVELS[method.upper()], line)


def _logger(name: str, *more: Processor) -> FilteringBoundLogger:
    wrapped = structlog.wrap_logger(
        _Outlet(logging.getLogger(f"twiceshy.{name}")),
        processors=[_drop_unwanted, structlog.processors.add_log_level, _add_time, *more, _rendered],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    return cast("FilteringBoundLogger", wrapped.bind())


def write_to_stderr(level: int, worker: int | None = None) -> None:
    """Write events from a level on to standard error: the log of a process that is the service and nothing else.

    The lines of one of several processes name it.
    """
    if worker is not None:
        _worker["worker"] = worker
    root = logging.getLogger(_ROOT)
    root.addHandler(_Lines(sys.stderr))
    root.setLevel(level)
    root.propagate = False


def keep_quiet() -> None:
    """Let only warnings and worse pass, unless the program has set the level itself."""
    root = logging.getLogger(_ROOT)
    if root.level == logging.NOTSET:
        root.setLevel(logging.WARNING)


class _Lines(logging.Handler):
    """Writes finished lines to a stream, whichever way they come."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._waiting: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Write what the standard library brings."""
        self.write(record.getMessage())

    def write(self, line: str) -> None:
        """Write a line at once. A log that cannot be written is no reason to serve nobody."""
        with suppress(OSError, ValueError):
            self._stream.write(f"{line}\n")  # standard error is line-buffered: this reaches the system

    def write_soon(self, line: str) -> None:
        """Write a line with all others of this turn of the loop, from whose thread this is called."""
        self._waiting.append(line)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._write_waiting)

    def _write_waiting(self) -> None:
        lines, self._waiting = self._waiting, []
        if not _worker:
            self.write("\n".join(lines))
            return
        for start in range(0, len(lines), _LINES_TOGETHER):
            self.write("\n".join(lines[start : start + _LINES_TOGETHER]))


class _Outlet:
    """Hands finished lines to the standard library, without its search for the line of code that spoke.

    Where the log is the service's own, it goes without the rest of the standard library as well.
    """

    def __init__(self, under: logging.Logger) -> None:
        self._under = under
        self._root = logging.getLogger(_ROOT)

    def wants(self, method: str) -> bool:
        return self._under.isEnabledFor(_LEVELS[method.upper()])

    def info(self, line: str) -> None:
        self._write(logging.INFO, line)

    def warning(self, line: str) -> None:
        self._write(logging.WARNING, line)

    def error(self, line: str) -> None:
        self._write(logging.ERROR, line)

    def write_soon(self, level: int, line: str) -> None:
        lines = self._lines
        if lines is None:
            self._hand_over(level, line)
        else:
            lines.write_soon(line)

    @property
    def _lines(self) -> "_Lines | None":
        """The handler that writes lines, where the log is the service's own."""
        root = self._root
        if not root.propagate and len(root.handlers) == 1 and isinstance(root.handlers[0], _Lines):
            return root.handlers[0]
        return None

    def _write(self, level: int, line: str) -> None:
        lines = self._lines
        if lines is None:
            self._hand_over(level, line)
        else:
            lines.write(line)

    def _hand_over(self, level: int, line: str) -> None:
        self._under.handle(logging.LogRecord(self._under.name, level, __file__, 0, line, None, None))


def _drop_unwanted(outlet: _Outlet, method: str, event: EventDict) -> EventDict:
    if not outlet.wants(method):
        raise structlog.DropEvent
    return event


def _add_time(outlet: _Outlet, method: str, event: EventDict) -> EventDict:
    del outlet, method
    second, rest = divmod(time.time_ns() // 1000, 1_000_000)
    event["timestamp"] = f"{_written_second(second)}.{rest:06d}Z"
    event.update(_worker)
    return event


@functools.lru_cache(maxsize=1)
def _written_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _add_request(outlet: _Outlet, method: str, event: EventDict) -> EventDict:
    del outlet, method
    named = request_id.get()
    if named is not None:
        event["request_id"] = named
    return event


def _rendered(outlet: _Outlet, method: str, event: EventDict) -> str:
    del outlet, method
    return msgspec.json.encode(event, enc_hook=repr).decode()
