"""How far the credential of a fork reaches: its own are the fork and all runs below, and it sees what it goes on from.

What is unknown is out of reach, so that nobody learns by it what there is.
"""

from typing import Final

from guard.core.effects import Key, RunId, TenantId
from guard.core.forks import is_within
from guard.core.runs import Run
from guard.ports.forks import ForkStore
from guard.service.recent import Recent
from guard.service.runs import Runs

_MAX_KNOWN: Final = 10_000
_DEEPEST: Final = 1000
"""How many runs are looked through that started each other; beyond, a run is out of reach."""


class Reach:
    """Knows what belongs to a fork."""

    def __init__(self, store: ForkStore, runs: Runs) -> None:
        self._store = store
        self._runs = runs
        self._ancestors: Recent[RunId, frozenset[RunId]] = Recent(_MAX_KNOWN)

    async def owns(self, tenant: TenantId, fork: RunId, name: str | None) -> bool:
        """Say whether a run is the fork or lies below it. Raises StoreUnavailable."""
        run = None if name is None else await self._runs.find(tenant, name)
        return run is not None and is_within(run.id, run.fork, fork)

    async def is_free(self, tenant: TenantId, name: str) -> bool:
        """Say whether no run has a name. Raises StoreUnavailable."""
        return await self._runs.find(tenant, name) is None

    async def sees(self, tenant: TenantId, fork: RunId, name: str | None) -> bool:
        """Say whether a run is the fork's own, or one that it goes on from, or was started by one. Raises those."""
        if name is None or await self.owns(tenant, fork, name):
            return name is not None
        ancestors = await self._behind(fork)
        run: Run | None = await self._runs.get(tenant, name)
        for _ in range(_DEEPEST):
            if run is None:
                return False
            if run.id in ancestors:
                return True
            run = None if run.child_of is None else await self._runs.get(tenant, run.child_of)
        return False

    async def was_let(self, fork: RunId, key: Key) -> bool:
        """Say whether the call of a key was let run in the fork, or below it. Raises StoreUnavailable."""
        return await self._store.is_let(fork, key)

    async def _behind(self, fork: RunId) -> frozenset[RunId]:
        known = self._ancestors.get(fork)
        if known is None:
            known = frozenset(ancestor.parent_id for ancestor in await self._store.ancestors(fork))
            self._ancestors.keep(fork, known)
        return known
