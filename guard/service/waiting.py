"""Who waits for an effect of this process to be decided. A wake tells; it never grants."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from guard.core.effects import Key
from guard.ports.steps import Written


class Waiters:
    """Futures by key, resolved when the effect's lease ends in any way, or when the process is about to stop."""

    def __init__(self) -> None:
        self.is_closed = False
        self._by_key: defaultdict[Key, set[asyncio.Future[None]]] = defaultdict(set)

    def tell(self, written: Written) -> None:
        """Wake who waits for this effect, unless it is still executing."""
        key = written.effect.intent.key
        if written.effect.life.state != "executing" and key in self._by_key:
            _wake(self._by_key.pop(key))

    def close(self) -> None:
        """Wake everybody; nobody waits from now on."""
        self.is_closed = True
        for waiting in self._by_key.values():
            _wake(waiting)

    @contextmanager
    def waiting(self, key: Key) -> Iterator[asyncio.Future[None]]:
        """Register before looking, so that nothing is missed between the look and the wait."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._by_key[key].add(future)
        try:
            yield future
        finally:
            future.cancel()
            waiting = self._by_key.get(key)
            if waiting is not None:
                waiting.discard(future)
                if not waiting:
                    del self._by_key[key]


def _wake(waiting: set[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
