"""Who waits for an effect of this process to be decided. A wake tells; it never grants."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from guard.core.effects import Key
from guard.ports.steps import Written


class Waiters:
    """Futures by key, resolved with the effect when its lease ends in any way."""

    def __init__(self) -> None:
        self._by_key: defaultdict[Key, set[asyncio.Future[Written]]] = defaultdict(set)

    def tell(self, written: Written) -> None:
        """Wake who waits for this effect, unless it is still executing."""
        key = written.effect.intent.key
        if written.effect.life.state == "executing" or key not in self._by_key:
            return
        for future in self._by_key.pop(key):
            if not future.done():
                future.set_result(written)

    @contextmanager
    def waiting(self, key: Key) -> Iterator[asyncio.Future[Written]]:
        """Register before looking, so that nothing is missed between the look and the wait."""
        future: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
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
