"""Hand things over to an event loop from other threads, waking it once for all that come together."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Generic, TypeVar

T = TypeVar("T")


class Handover(Generic[T]):
    """One way into one event loop; `take` is called there with each thing, in order.

    It is called in a context of its own: what one side keeps in context variables is no business of the other.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Callable[[T], None]) -> None:
        self._loop = loop
        self._take = take
        self._waiting: deque[T] = deque()
        self._is_told = False
        self._context = Context()

    def put(self, thing: T) -> None:
        """Hand something over, from any thread. Raises RuntimeError where the loop is closed."""
        self._waiting.append(thing)
        if not self._is_told:
            self._is_told = True
            self._loop.call_soon_threadsafe(self._take_all, context=self._context)

    def drain(self) -> list[T]:
        """Take back what was handed over and not yet taken."""
        left: list[T] = []
        while True:
            try:
                left.append(self._waiting.popleft())
            except IndexError:
                return left

    def _take_all(self) -> None:
        self._is_told = False  # before the first is taken: what comes from now on tells again
        for thing in self.drain():
            self._take(thing)
