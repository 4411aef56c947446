"""Runs as the service knows them. A run's identity never changes, so it is kept; its state is the store's."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from guard.core.effects import RunId, TenantId
from guard.core.forks import Fork
from guard.core.runs import Run
from guard.ports.store import RunStore
from guard.service.loading import Loader
from guard.service.recent import Recent
from twiceshy_contract.runs import RunState

MAX_KNOWN: Final = 100_000
"""Names of runs that a process remembers."""


class KnownRun(NamedTuple):
    """What never changes of a run: its id, and what it may do if it is a fork."""

    id: RunId
    fork: Fork | None


class Runs:
    """Opening, finding and ending runs."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._loader: Loader[str, Run] = Loader(self._open)
        self._known: Recent[tuple[TenantId, str], KnownRun] = Recent(MAX_KNOWN)

    async def identify(self, tenant: TenantId, name: str) -> KnownRun:
        """Return what never changes of a run, which is opened where it is new."""
        known = self._known.get((tenant, name))
        if known is None:
            run = await self.open(tenant, name)
            known = KnownRun(id=run.id, fork=run.fork)
        return known

    async def open(self, tenant: TenantId, name: str) -> Run:
        """Find a run, or open it."""
        run = await self._loader.get(tenant, name)
        if run is None:
            raise LookupError(f"the store opened no run {name!r}")
        self._known.keep((tenant, name), KnownRun(id=run.id, fork=run.fork))
        return run

    async def get(self, tenant: TenantId, name: str) -> Run | None:
        """Find a run."""
        return await self._store.get(tenant, name)

    async def end(self, tenant: TenantId, name: str, state: RunState) -> Run | None:
        """End an open run; an ended one is returned as it is."""
        return await self._store.end(tenant, name, state)

    async def page(
        self, tenant: TenantId, state: RunState | None, limit: int, after: str | None
    ) -> tuple[list[Run], str | None]:
        """Return runs, newest first, and the cursor of the next page."""
        return await self._store.page(tenant, state, limit, after)

    async def _open(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, Run]:
        return {run.name: run for run in await self._store.open(tenant, names)}
