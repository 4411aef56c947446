"""Look many things up at once: while one look-up is in flight, further keys gather for the next."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from guard.core.effects import TenantId

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Loader(Generic[K, V]):
    """Coalesces look-ups by key of each tenant. Every waiter of a failed look-up gets its error."""

    def __init__(self, load: Callable[[TenantId, Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._load = load
        self._wanted: dict[TenantId, dict[K, asyncio.Future[V | None]]] = {}
        self._in_flight: dict[TenantId, asyncio.Task[None]] = {}

    async def get(self, tenant: TenantId, key: K) -> V | None:
        """Return what the store has under the key."""
        wanted = self._wanted.setdefault(tenant, {})
        future = wanted.get(key)
        if future is None:
            future = wanted[key] = asyncio.get_running_loop().create_future()
            if tenant not in self._in_flight:
                self._in_flight[tenant] = asyncio.create_task(self._run(tenant))
        return await asyncio.shield(future)

    async def _run(self, tenant: TenantId) -> None:
        while wanted := self._wanted.pop(tenant, None):
            try:
                found = await self._load(tenant, list(wanted))
            except Exception as error:  # noqa: BLE001  it belongs to whoever asked
                for future in wanted.values():
                    future.set_exception(error)
                    future.exception()  # seen, even where its waiter has gone
            else:
                for key, future in wanted.items():
                    future.set_result(found.get(key))
        del self._in_flight[tenant]
