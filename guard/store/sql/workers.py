"""Threads that work for an event loop, one piece at a time, and stand still while the process is forked.

They are daemons of our own, for two reasons. The executors of the standard library refuse all work as soon as the
main thread has ended, when other threads of an embedding program may still be calling. And SQLite must not be in
the middle of anything, nor hold a file open, at the moment of a fork: its locks belong to the process.
"""

import asyncio
import functools
import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

from guard.ports.store import StoreUnavailable

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
        if hasattr(os, "register_at_fork"):
            itself = weakref.ref(self)
            os.register_at_fork(
                before=functools.partial(_tell, itself, Workers._stand_still),
                after_in_parent=functools.partial(_tell, itself, Workers._go_on),
            )

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

    def _stand_still(self) -> None:
        for turn in self._turns:
            turn.acquire()
        self._stands_still = True
        if self._before_fork is not None:
            self._before_fork()

    def _go_on(self) -> None:
        if self._stands_still:
            self._stands_still = False
            for turn in self._turns:
                turn.release()


def _settle(outcome: "asyncio.Future[Any]", result: object, failure: BaseException | None) -> None:
    if outcome.done():
        return
    if failure is None:
        outcome.set_result(result)
    else:
        outcome.set_exception(failure)


def _tell(reference: "weakref.ref[Workers]", act: Callable[[Workers], None]) -> None:
    workers = reference()
    if workers is not None:
        act(workers)
