"""The replay that the code around it runs in: it puts its own boundaries in the place of a run's."""

import asyncio
import logging
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from twiceshy._event_loop import is_on_loop
from twiceshy._replay_errors import ReplayStopped

if TYPE_CHECKING:
    from twiceshy._run import Entered
    from twiceshy._session import Session


class Replaying(Protocol):
    """A replay that is going on."""

    def session_for(self, run: str) -> "Session":
        """Return the boundaries of a run that the code enters. Raises ReplayDiverged for a run it has no record of."""
        ...

    def refusal(self, what: str) -> ReplayStopped:
        """Return the error of code that reaches for the world beside the record; the replay stops at it."""
        ...

    def input_of(self, run: str) -> object:
        """Return what a run's agent was given when it was recorded."""
        ...


_INTERRUPTIONS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
_active: ContextVar[Replaying | None] = ContextVar("twiceshy_replay", default=None)
entered_here: Final[ContextVar["Entered | None"]] = ContextVar("twiceshy_run", default=None)
"""The innermost run that is open in this context."""


def active_replay() -> Replaying | None:
    """Return the replay that goes on in this context."""
    return _active.get()


def refuse_in_replay(what: str) -> None:
    """Raise where a replay goes on here: it lets nothing reach the world."""
    replay = _active.get()
    if replay is not None:
        raise replay.refusal(what)


def refuse_lost_in_replay(what: str) -> None:
    """Raise where a replay goes on here, or in the process while code asks that has lost its context.

    Nobody can say what such code belongs to, unless a live run is around it: it is believed to be the replayed code's.
    """
    refuse_in_replay(what)
    if entered_here.get() is not None:
        return
    thread = threading.current_thread()
    for going in reversed(_going):
        if going.may_be_of(thread):
            raise going.replay.refusal(f"{what}, in a thread that was started without its context,")
    left = _left.get(thread)
    if left is not None:
        raise left.refusal(f"{what}, in a thread that was started in a replay and is not over,")


class _Going(msgspec.Struct, frozen=True, eq=False):
    """A replay that goes on, the thread in which it began, and whether that thread does other things meanwhile."""

    replay: Replaying
    thread: threading.Thread
    is_shared: bool

    def may_be_of(self, thread: threading.Thread) -> bool:
        """Say whether code without a context in a thread may be the replay's."""
        if thread is self.thread:
            return not self.is_shared
        return thread is not threading.main_thread()


def raise_misfit(session: "Session | None", error: BaseException | None) -> None:
    """Raise what was given in the place of an outcome and did not fit, where the code that it ended leaves its run.

    A replay does so itself, once all of the agent has ended. Who interrupts the code comes first.
    """
    script = None if session is None or _active.get() is not None else session.script
    if script is None or script.refusal is None or isinstance(error, _INTERRUPTIONS):
        return
    raise script.refusal


@contextmanager
def replaying(replay: Replaying) -> Iterator[None]:
    """Let the runs that are entered in the block be served by a replay."""
    token = _active.set(replay)
    going = _Going(replay, threading.current_thread(), is_on_loop())
    _going.append(going)
    before = set(threading.enumerate())
    try:
        yield
    finally:
        _leave(replay, before)
        _going.remove(going)
        _active.reset(token)


def _leave(replay: Replaying, before: set[threading.Thread]) -> None:
    """Go on refusing what threads ask for that were started in a replay and are not over, and say so."""
    left = [thread for thread in threading.enumerate() if thread not in before and not _is_of_a_loop(thread)]
    for thread in left:
        _left[thread] = replay
    if left:
        _log.warning(
            "%d threads that were started in the replay are not over, such as %s: what they ask of the guard from now "
            "on is refused. Let the code wait for them.",
            len(left), left[0].name,
        )  # fmt: skip


def _is_of_a_loop(thread: threading.Thread) -> bool:
    """Say whether a thread waits in a pool that a loop keeps for whoever comes next."""
    return thread.name.startswith(("asyncio_", "twiceshy"))


_left: Final[weakref.WeakKeyDictionary[threading.Thread, Replaying]] = weakref.WeakKeyDictionary()
_log: Final = logging.getLogger("twiceshy")
_going: Final[list[_Going]] = []
