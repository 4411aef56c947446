"""Contention: which effects begins lately found under another attempt's lease, most first."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from guard.core.effects import Effect, Key, TenantId
from guard.ports.accelerator import WINDOW_MINUTES, Accelerator, HotKey

MOST_KEYS: Final = 1000
"""Of a minute; further ones are not counted in it."""


class Hottest(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that most begins found executing, on all `replicas`, or in this `process` alone."""

    counted_in: Literal["replicas", "process"]
    keys: tuple[HotKey, ...]


class Contention:
    """Counts by the minute, in this process, and on all replicas where there is an accelerator."""

    def __init__(self, accelerator: Accelerator | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._accelerator = accelerator
        self._clock = clock
        self._minutes: OrderedDict[int, Counter[tuple[TenantId, Key, str]]] = OrderedDict()

    def count(self, effect: Effect) -> None:
        """Count a begin that found the effect under another attempt's lease."""
        intent = effect.intent
        counts, counted = self._this_minute(), (intent.tenant, intent.key, intent.tool)
        if counted in counts or len(counts) < MOST_KEYS:
            counts[counted] += 1
        if self._accelerator is not None:
            self._accelerator.contended(intent.tenant, intent.tool, intent.key)

    async def hottest(self, tenant: TenantId, limit: int) -> Hottest:
        """Return the keys that were counted most within the last minutes."""
        shared = None if self._accelerator is None else await self._accelerator.hottest(tenant, limit)
        if shared is not None:
            return Hottest(counted_in="replicas", keys=tuple(shared))
        return Hottest(counted_in="process", keys=self._own(tenant, limit))

    def _own(self, tenant: TenantId, limit: int) -> tuple[HotKey, ...]:
        self._this_minute()
        counted: Counter[tuple[Key, str]] = Counter()
        for counts in self._minutes.values():
            for (whose, key, tool), times in counts.items():
                if whose == tenant:
                    counted[key, tool] += times
        most = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:limit]
        return tuple(HotKey(key=key, tool=tool, begins=begins) for (key, tool), begins in most)

    def _this_minute(self) -> Counter[tuple[TenantId, Key, str]]:
        minute = int(self._clock()) // 60
        for past in [one for one in self._minutes if one <= minute - WINDOW_MINUTES]:
            del self._minutes[past]
        return self._minutes.setdefault(minute, Counter())
