"""Look many names up at once: while one look-up is in flight, further names gather for the next."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from guard.core.effects import TenantId

V = TypeVar("V")


class Loader(Generic[V]):
    """Coalesces look-ups by name of each tenant. Every waiter of a failed look-up gets its error."""

    def __init__(self, load: Callable[[TenantId, Sequence[str]], Awaitable[Mapping[str, V]]]) -> None:
        self._load = load
        self._wanted: dict[TenantId, dict[str, asyncio.Future[V | None]]] = {}
        self._in_flight: dict[TenantId, asyncio.Task[None]] = {}

    async def get(self, tenant: TenantId, name: str) -> V | None:
        """Return what the store has under the name."""
        wanted = self._wanted.setdefault(tenant, {})
        future = wanted.get(name)
        if future is None:
            future = wanted[name] = asyncio.get_running_loop().create_future()
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
            else:
                for name, future in wanted.items():
                    future.set_result(found.get(name))
        del self._in_flight[tenant]
