"""Where an agent's code stands when a replay pauses: its frames, the innermost first."""

import asyncio
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from twiceshy._replay_errors import Frame, ReplayPaused

_MACHINERY: Final = ("twiceshy", "asyncio", "concurrent", "contextlib", "threading", "uvloop", "_pytest", "pluggy")
_OUTERMOST: Final = "twiceshy._replay"
"""The module that calls the agent: what is around it is not the agent's."""


def see(paused: ReplayPaused) -> None:
    """Keep the frames of the code here, and of the tasks that wait beside it, where that was not done."""
    if paused.locals:
        return
    frames = [*_stack(sys._getframe(1)), *_others()]  # noqa: SLF001 - no public function gives the frame itself
    paused.locals = tuple(
        Frame(frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals))
        for frame in frames
        if not _is_machinery(frame)
    )


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None and frame.f_globals.get("__name__") != _OUTERMOST:
        yield frame
        frame = frame.f_back


def _others() -> Iterator[FrameType]:
    """Yield the frames of the other tasks of this event loop."""
    try:
        current = asyncio.current_task()
    except RuntimeError:
        return
    for task in asyncio.all_tasks():
        if task is not current:
            yield from reversed(list(_suspended(task.get_coro())))


def _suspended(awaited: Any) -> Iterator[FrameType]:
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if isinstance(frame, FrameType):
            yield frame
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)


def _is_machinery(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _MACHINERY
