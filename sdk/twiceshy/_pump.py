"""One pump a run: outcomes reach the code one at a time, in recording and in replay alike.

Each delivery is numbered, the code that waits for it wakes, the event loop turns, and then the next one comes. So what
code does on an outcome is done before the next outcome, whichever was ready first, and a replay that gives them in the
recorded order drives `asyncio.wait`, `gather` and all else the same way again. It holds where every await that can
change the order is a boundary of the run.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from twiceshy._boundaries import Outcome
from twiceshy._event_loop import is_on_loop
from twiceshy._log import Log
from twiceshy._pace import is_alone, is_idle
from twiceshy._replay_errors import ReplayPaused, ReplayStopped
from twiceshy._script import Script
from twiceshy._waiting import Waiting

TURNS: Final = 16
"""How often the loop turns between two deliveries: a task ends, and what waits for it wakes, in two; eight deep."""
PATIENCE_SECONDS: Final = 5.0
"""How long a replay waits for what the record has next before it says that it never came."""
_MOMENT_SECONDS: Final = 0.05
"""How often a call that is held back looks whether anything else goes on."""


class Pump:
    """Gives outcomes their turns."""

    def __init__(self, log: Log, script: Script | None = None, *, patience: float = PATIENCE_SECONDS) -> None:
        self._log = log
        self._script = script
        self._patience = patience
        self._changed = threading.Condition(threading.RLock())
        self._live: deque[Waiting] = deque()
        self._recorded: dict[int, Waiting] = {}
        self._apart: dict[int, Waiting] = {}
        """Those of the record that may come without being next: the code cancelled them, or they wait for no other."""
        self._is_turning = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._threads: set[int] = set()
        self._stopped: ReplayStopped | None = None
        self._held: set[asyncio.Future[None]] = set()
        self._has_abandoned = False

    def entered(self) -> None:
        """Hear that a call was entered: a delivery may be due now."""
        if self._held and is_on_loop():
            for held in self._held:
                _release(held)
        with self._changed:
            self._changed.notify_all()
        self._wake()

    def stop(self, error: ReplayStopped) -> None:
        """End all that wait, and whoever comes later: the replay is over."""
        with self._changed:
            self._stopped = self._stopped or error
            self._changed.notify_all()
        for waiting in (*self._recorded.values(), *self._live):
            if waiting.future is not None:
                with contextlib.suppress(RuntimeError):  # its event loop is closed: nobody waits there any more
                    waiting.future.get_loop().call_soon_threadsafe(_fail, waiting.future, error)
        self._clear()

    def give(self, waiting: Waiting) -> None:
        """Give an outcome at once to code that cannot wait, or, in a thread, when it is its turn."""
        with self._changed:
            if self._script is not None and not is_on_loop():
                self._wait(waiting, self._script)
            self._write_or_stop(waiting)
        self._wake()

    async def give_async(self, waiting: Waiting) -> None:
        """Let an outcome wait for its turn. A cancellation becomes the outcome, and waits for the same turn."""
        future = self._queue(waiting)
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                await future
                break
            except asyncio.CancelledError as error:
                if not future.cancelled():  # its turn had come already: the code is cancelled all the same
                    raise
                if self._stopped is not None:  # nothing gives it a turn any more
                    raise self._stopped from error
                cancelled = error
                future = waiting.future = asyncio.get_running_loop().create_future()
                waiting.is_cancelled = True
                if waiting.recorded is not None:
                    self._apart[waiting.recorded] = waiting
                waiting.outcome = Outcome(kind="cancelled", error=error, is_recorded=waiting.outcome.is_recorded)
                if not self._is_turning:
                    self._start()
            except GeneratorExit:  # the code is thrown away, and sees no outcome any more
                future.cancel()
                waiting.is_abandoned = self._has_abandoned = True
                raise
        if cancelled is not None:
            raise cancelled

    def _queue(self, waiting: Waiting) -> asyncio.Future[None]:
        """Let an outcome wait; return what ends the wait."""
        if self._stopped is not None:
            raise self._stopped
        self._leave_closed_loop()
        future = waiting.future = asyncio.get_running_loop().create_future()
        if waiting.recorded is None:
            self._live.append(waiting)
        else:
            self._recorded[waiting.recorded] = waiting
            if self._is_due(waiting):
                self._apart[waiting.recorded] = waiting
        if not self._is_turning:
            self._begin()
        return future

    def _leave_closed_loop(self) -> None:
        """Forget an event loop that ended between two of its turns: code may run several, one after the other."""
        if self._loop is not None and self._loop.is_closed():
            self._is_turning, self._loop, self._alarm = False, None, None

    def _wait(self, waiting: Waiting, script: Script) -> None:
        """Wait in a thread until it is an outcome's turn. Raises where that never comes."""
        if waiting.recorded is not None:
            self._threads.add(waiting.recorded)
        try:
            while self._stopped is None:
                if self._changed.wait_for(lambda: self._stopped is not None or self._is_due(waiting), self._patience):
                    return
                error = waiting.outcome.error if waiting.ends else script.stalled(self._awaited(), is_alone=is_alone())
                if error is not None:
                    raise error
        finally:
            if waiting.recorded is not None:
                self._threads.discard(waiting.recorded)

    async def wait_while(self, is_early: Callable[[], bool]) -> None:
        """Hold a call back while code may still come to what is before it in the record."""
        while is_early() and not self._is_alone():
            held = asyncio.get_running_loop().create_future()
            self._held.add(held)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_MOMENT_SECONDS):
                    await held
            self._held.discard(held)

    def _is_alone(self) -> bool:
        """Say whether nothing goes on by itself but the code that waits here."""
        awaited = (waiting.future for waiting in (*self._recorded.values(), *self._live))
        return is_alone() and is_idle(asyncio.get_running_loop(), (*awaited, *self._held))

    def _awaited(self) -> set[int]:
        return {*self._threads, *(intent for intent, waiting in self._recorded.items() if waiting.is_awaited)}

    def _wake(self) -> None:
        """Look again at what waits on an event loop, from whatever thread."""
        first = next(chain(self._recorded.values(), self._live), None) if self._script is not None else None
        if first is None or first.future is None or self._is_turning:
            return
        loop = first.future.get_loop()
        if is_on_loop():
            self._begin()
        else:
            with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(self._begin_if_idle)

    def _begin_if_idle(self) -> None:
        if not self._is_turning:
            self._begin()

    def _begin(self) -> None:
        """Give the next outcome; in the free order, after all that is entered at the same time is here."""
        waiting = next(iter(self._recorded.values()), None) if self._script is not None else None
        if self._script is not None and self._script.is_free and waiting is not None and waiting.future is not None:
            self._is_turning = True
            self._turn(waiting.future.get_loop(), TURNS)
        else:
            self._start()

    def _start(self) -> None:
        """Give the next outcome, if one may be given now."""
        waiting = self._next()
        if waiting is None or waiting.future is None:
            self._watch()
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._is_turning = True
        try:
            with self._changed:
                self._write_or_stop(waiting)
        except BaseException as error:  # noqa: BLE001 - whoever waits for the outcome hears of it
            waiting.future.set_exception(error)
        else:
            waiting.future.set_result(None)
        self._turn(waiting.future.get_loop(), TURNS)

    def _turn(self, loop: asyncio.AbstractEventLoop, left: int) -> None:
        self._loop = loop
        if left:
            loop.call_soon(self._turn, loop, left - 1)
        else:
            self._is_turning = False
            if self._live or self._recorded:
                self._start()

    def _next(self) -> Waiting | None:
        """Take the outcome that is next. One whose code is just being cancelled comes again, as a cancellation."""
        self._drop_abandoned()
        for intent, waiting in self._due():
            if waiting.is_awaited:
                self._apart.pop(intent, None)
                return self._recorded.pop(intent)
        if self._script is None or self._script.is_over:
            for waiting in self._live:
                if waiting.is_awaited:
                    self._live.remove(waiting)
                    return waiting
        return None

    def _drop_abandoned(self) -> None:
        """Let go of what nobody waits for any more; not where it is thrown away, which may be in the midst of this."""
        if self._has_abandoned:
            self._has_abandoned = False
            for waiting in list(self._live):
                if waiting.is_abandoned:
                    self._live.remove(waiting)
            for intent, waiting in list(self._recorded.items()):
                if waiting.is_abandoned:
                    self._recorded.pop(intent, None)
                    self._apart.pop(intent, None)

    def _due(self) -> Iterator[tuple[int, Waiting]]:
        """Yield what of the record may be given now."""
        is_next = None if self._script is None else self._script.due
        for intent in chain(() if is_next is None else (is_next,), self._apart):
            waiting = self._recorded.get(intent)
            if waiting is not None and waiting.may_be_given and self._is_due(waiting):
                yield intent, waiting

    def _is_due(self, waiting: Waiting) -> bool:
        if self._script is None:
            return True
        return self._script.is_over if waiting.recorded is None else self._script.is_due(waiting.recorded)

    def _write_or_stop(self, waiting: Waiting) -> None:
        if self._stopped is not None:
            raise self._stopped
        if waiting.ends:
            return
        try:
            self._write(waiting)
        except ReplayStopped as error:
            if isinstance(error, ReplayPaused):
                error.value, error.error = waiting.outcome.value, waiting.outcome.error
            self.stop(error)
            raise

    def _write(self, waiting: Waiting) -> None:
        is_written = waiting.recorded is not None and self._script is not None and self._script.continues
        if not is_written:
            self._log.delivery(waiting.entry, waiting.outcome)
        if waiting.recorded is not None and self._script is not None:
            self._script.gave(waiting.recorded)
            self._changed.notify_all()

    def _watch(self) -> None:
        """Wait for what the record has next, and not for ever."""
        if self._alarm is not None or self._script is None:
            return
        first: Any = next(iter(self._recorded.values()), None) or (self._live[0] if self._live else None)
        if first is None or first.future is None:
            return
        self._alarm = first.future.get_loop().call_later(self._patience, self._stall)

    def _stall(self) -> None:
        self._alarm = None
        if self._is_turning or self._script is None or self._next_exists():
            return
        error = self._script.stalled(self._awaited(), is_alone=self._is_alone())
        if error is None:
            self._start()
        elif isinstance(error, ReplayStopped):
            self.stop(error)
        else:
            for waiting in (*self._recorded.values(), *self._live):
                if waiting.future is not None:
                    _fail(waiting.future, error)
            self._clear()

    def _clear(self) -> None:
        self._recorded.clear()
        self._apart.clear()
        self._live.clear()

    def _next_exists(self) -> bool:
        return next(self._due(), None) is not None


def _release(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _fail(future: asyncio.Future[None], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
