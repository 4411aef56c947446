"""Who waits in this process for an effect or an approval to be decided. A wake tells; it never grants."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from guard.core.effects import Effect

GLANCE_SECONDS: Final = 1.0
"""How often those who wait look again, one for all, for outcomes that another process wrote."""


class Others(Protocol):
    """Those who wait or end things in other processes."""

    def wanted(self, key: bytes) -> None:
        """Hear that somebody waits for a key here."""

    def ended(self, key: bytes) -> None:
        """Hear that what a key names has ended here."""


class Waiters:
    """Futures by key: true when the effect's lease ends in any way, or when the process is about to stop."""

    def __init__(self) -> None:
        self.is_closed = False
        self.begins = 0
        self._others: Others | None = None
        self._by_key: defaultdict[bytes, set[asyncio.Future[bool]]] = defaultdict(set)
        self._looked_at: dict[bytes, float] = {}

    def __contains__(self, key: bytes) -> bool:
        """Say whether somebody waits for a key."""
        return key in self._by_key

    def awaited(self) -> tuple[bytes, ...]:
        """Return all keys that somebody waits for."""
        return tuple(self._by_key)

    def tell_also(self, others: Others) -> None:
        """Let other processes hear of it as well."""
        self._others = others

    def tell(self, effect: Effect) -> None:
        """Wake who waits for this effect, here and elsewhere, unless it is still executing."""
        if effect.life.state != "executing":
            self.wake(effect.intent.key)

    def seen(self, effect: Effect) -> None:
        """Wake who waits here for an effect that was found ended."""
        if effect.life.state != "executing":
            self.wake_here(effect.intent.key)

    def wake(self, key: bytes) -> None:
        """Wake who waits for what a key names, here and elsewhere: an effect, or an approval by the bytes of its id."""
        if self._others is not None:
            self._others.ended(key)
        self.wake_here(key)

    def wake_here(self, key: bytes) -> None:
        """Wake who waits here for what a key names, as it was found to have ended elsewhere."""
        if key in self._by_key:
            self._looked_at.pop(key, None)
            _wake(self._by_key.pop(key))

    def nudge(self, key: bytes) -> None:
        """Wake one of those who wait for a key, to look for them all."""
        for future in self._by_key.get(key, ()):
            if not future.done():
                future.set_result(True)
                return

    def close(self) -> None:
        """Wake everybody; nobody waits from now on."""
        self.is_closed = True
        for waiting in self._by_key.values():
            _wake(waiting)

    @contextmanager
    def waiting(self, key: bytes, *, begins: bool = False) -> Iterator[asyncio.Future[bool]]:
        """Register before looking, so that nothing is missed between the look and the wait; begins are counted."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiting = self._by_key[key]
        waiting.add(future)
        self.begins += begins
        if len(waiting) == 1 and self._others is not None:
            self._others.wanted(key)
        try:
            yield future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.result():
                self.nudge(key)  # who leaves does not look for the others any more
            raise
        finally:
            self.begins -= begins
            future.cancel()
            left = self._by_key.get(key)
            if left is not None:
                left.discard(future)
                if not left:
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
