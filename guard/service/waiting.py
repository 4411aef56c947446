"""Who waits in this process for an effect or an approval to be decided. A wake tells; it never grants."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from guard.core.effects import Effect

GLANCE_SECONDS: Final = 1.0
"""How often those who wait look again, one for all, for outcomes that another process wrote."""


class Waiters:
    """Futures by key: true when the effect's lease ends in any way, or when the process is about to stop."""

    def __init__(self) -> None:
        self.is_closed = False
        self._by_key: defaultdict[bytes, set[asyncio.Future[bool]]] = defaultdict(set)
        self._looked_at: dict[bytes, float] = {}

    def tell(self, effect: Effect) -> None:
        """Wake who waits for this effect, unless it is still executing."""
        if effect.life.state != "executing":
            self.wake(effect.intent.key)

    def wake(self, key: bytes) -> None:
        """Wake who waits for what a key names: an effect, or an approval by the bytes of its id."""
        if key in self._by_key:
            _wake(self._by_key.pop(key))

    def close(self) -> None:
        """Wake everybody; nobody waits from now on."""
        self.is_closed = True
        for waiting in self._by_key.values():
            _wake(waiting)

    @contextmanager
    def waiting(self, key: bytes) -> Iterator[asyncio.Future[bool]]:
        """Register before looking, so that nothing is missed between the look and the wait."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
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
                    self._looked_at.pop(key, None)

    def may_look(self, key: bytes, now: float) -> bool:
        """Say whether it is time that somebody looks for all who wait for a key, and take it that the asker does."""
        is_time = now - self._looked_at.get(key, -GLANCE_SECONDS) >= GLANCE_SECONDS
        if is_time:
            self._looked_at[key] = now
        return is_time


def _wake(waiting: set[asyncio.Future[bool]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(True)
