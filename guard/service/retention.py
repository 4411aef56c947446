"""Retention: records that were kept as long as their tools say become tombstones."""

from collections.abc import Callable, Sequence
from typing import Final

from guard.core.effects import SECOND, Duration, Key, TenantId
from guard.core.retention import KEPT_HOLDS, kept_for
from guard.logs import logger
from guard.ports.retention import DueRun, Oldest, RetentionStore
from guard.service.registry import Registry
from guard.service.rounds import for_ever

PAUSE_SECONDS: Final = 30.0
RETENTION_BATCH: Final = 500
LOOK_AGAIN: Final = Duration(86_400 * SECOND)
"""When a run that keeps something is looked at again at the latest: so a retention that was shortened is obeyed."""

_log = logger("guard.retention")


class Retention:
    """Finds what was kept long enough by index, in batches; `forget` hears what this process need not know any more."""

    def __init__(
        self, store: RetentionStore, registry: Registry, forget: Callable[[TenantId, Sequence[Key]], None]
    ) -> None:
        self._store = store
        self._registry = registry
        self._forget = forget

    async def run(self) -> None:
        """Let go of records for ever; a database that is away is tried again."""
        await for_ever("retention", self.run_once, PAUSE_SECONDS)

    async def run_once(self) -> bool:
        """Expire one batch of each tool and of each run that is due; say whether there may be more."""
        is_more = False
        oldest = await self._store.oldest_alone(None)
        while oldest is not None:
            is_more |= await self._expire_alone(oldest)
            oldest = await self._store.oldest_alone(oldest)
        due = await self._store.due_runs(RETENTION_BATCH)
        for run in due:
            is_more |= await self._expire_of_run(run)
        holds = await self._store.forget_holds(KEPT_HOLDS, RETENTION_BATCH)
        return is_more or holds >= RETENTION_BATCH or len(due) == RETENTION_BATCH

    async def _expire_alone(self, oldest: Oldest) -> bool:
        kept = await self._kept(oldest.tenant, oldest.tool, has_run=False)
        if oldest.ended_at + kept > oldest.at:
            return False
        gone = await self._store.expire_alone(oldest.tenant, oldest.tool, kept, RETENTION_BATCH)
        return self._gone(oldest.tenant, gone)

    async def _expire_of_run(self, run: DueRun) -> bool:
        kept = {tool: await self._kept(run.tenant, tool, has_run=True) for tool in run.tools}
        gone = await self._store.expire_of_run(run.id, kept, LOOK_AGAIN, RETENTION_BATCH)
        is_more = self._gone(run.tenant, gone)
        return await self._store.empty(run.id, RETENTION_BATCH) or is_more

    def _gone(self, tenant: TenantId, keys: Sequence[Key]) -> bool:
        if keys:
            self._forget(tenant, keys)
            _log.info("records_expired", count=len(keys))
        return len(keys) == RETENTION_BATCH

    async def _kept(self, tenant: TenantId, tool: str, *, has_run: bool) -> Duration:
        known = await self._registry.find(tenant, tool)
        return kept_for(known.tool.declaration, has_run=has_run)
