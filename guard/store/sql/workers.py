"""Threads that work for an event loop, one piece at a time, and stand still while the process is forked.

They are daemons of our own, for two reasons. The executors of the standard library refuse all work as soon as the
main thread has ended, when other threads of an embedding program may still be calling. And SQLite must not be in
the middle of anything, nor hold a file open, at the moment of a fork: its locks belong to the process.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from guard.ports.store import StoreUnavailable
from guard.store.sql.forks import FORKS

ResultT = TypeVar("ResultT")
_Piece = tuple[Callable[[], Any], "asyncio.Future[Any]"]
_END: Final = object()


class Workers:
    """So many threads with one queue; they start with the first piece of work.

    `before_fork` is called in the thread that forks, while none of them works.
    """

    def __init__(self, count: int, name: str, before_fork: Callable[[], None] | None = None) -> None:
        self._queue: queue.SimpleQueue[_Piece] = queue.SimpleQueue()
        self._turns = [threading.Lock() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._run, args=(turn,), name=f"{name}-{number}", daemon=True)
            for number, turn in enumerate(self._turns)
        ]
        self._changing = threading.Lock()
        self._is_started = False
        self._is_closed = False
        self._stands_still = False
        self._before_fork = before_fork
        FORKS.join(self)

    async def do(self, work: Callable[[], ResultT]) -> ResultT:
        """Do a piece of work in one of the threads, and await what it returns or raises."""
        if self._is_closed:
            raise StoreUnavailable("The database is closed.")
        if not self._is_started:
            self._start()
        return await self._asked(work)

    async def close(self) -> None:
        """End the threads once all that was asked is done."""
        with self._changing:
            is_running = self._is_started and not self._is_closed
            self._is_closed = True
        if is_running:
            await asyncio.gather(*(self._asked(lambda: _END) for _ in self._threads))

    def stand_still(self) -> None:
        """Wait for the work at hand, hold up the next, and let go of what no child may inherit."""
        for turn in self._turns:
            turn.acquire()
        self._stands_still = True
        if self._before_fork is not None:
            with suppress(Exception):  # the others have to let go all the same
                self._before_fork()

    def go_on(self) -> None:
        """Work again."""
        if self._stands_still:
            self._stands_still = False
            for turn in self._turns:
                turn.release()

    async def _asked(self, work: Callable[[], ResultT]) -> ResultT:
        outcome: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self._queue.put((work, outcome))
        return await outcome

    def _start(self) -> None:
        with self._changing:
            if not self._is_started:
                self._is_started = True
                for thread in self._threads:
                    thread.start()

    def _run(self, turn: threading.Lock) -> None:
        result: Any = None
        while result is not _END:
            work, outcome = self._queue.get()
            result, failure = None, None
            with turn:
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001  raised again where it is awaited
                    failure = error
            try:
                outcome.get_loop().call_soon_threadsafe(_settle, outcome, result, failure)
            except RuntimeError:  # the loop is closed: nobody awaits this, nor anything later
                return
            del work, outcome, failure


def _settle(outcome: "asyncio.Future[Any]", result: object, failure: BaseException | None) -> None:
    if outcome.done():
        return
    if failure is None:
        outcome.set_result(result)
    else:
        outcome.set_exception(failure)
