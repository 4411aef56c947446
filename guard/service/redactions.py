"""What must not be stored of the calls in a log: what the tool's version of the run says, and what today's says."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from guard.core.effects import RunId, TenantId
from guard.core.redacted_events import Secrecy, tools_of
from guard.core.tools import UNDECLARED_VERSION
from guard.ports.salts import SaltStore
from guard.ports.store import ToolStore
from guard.service.loading import Loader
from guard.service.recent import Recent
from guard.service.registry import FRESH_SECONDS, MAX_PINS, MAX_TOOLS, Registry
from twiceshy_contract.events import Event


class Redactions:
    """Finds what is redacted. A run that never began the tool keeps to no version, and is made to keep to none."""

    def __init__(self, store: ToolStore, registry: Registry, salts: SaltStore) -> None:
        self._store = store
        self._registry = registry
        self._salts = salts
        self._histories: Loader[str, frozenset[str]] = Loader(self._load_histories)
        self._ever: Recent[tuple[TenantId, str], tuple[float, frozenset[str]]] = Recent(MAX_TOOLS)
        self._pinned: Recent[tuple[RunId, str], tuple[str, ...]] = Recent(MAX_PINS)

    async def of(self, tenant: TenantId, run: RunId, events: Iterable[Event]) -> Secrecy:
        """Return what is redacted of the calls among events. Raises StoreUnavailable."""
        places = {name: await self._places(tenant, run, name) for name in sorted(tools_of(events))}
        return Secrecy(places=places, salt=await self._salts.of(tenant))

    async def _places(self, tenant: TenantId, run: RunId, name: str) -> tuple[str, ...]:
        held = (await self._registry.find(tenant, name)).tool
        todays = held.declaration.redacted
        if held.version == UNDECLARED_VERSION or await self._of_all_versions(tenant, name) <= set(todays):
            return todays
        pinned = self._pinned.get((run, name))
        if pinned is None:
            tool = (await self._store.pinned(tenant, run, [name])).get(name)
            if tool is None:
                return todays
            pinned = tool.declaration.redacted
            self._pinned.keep((run, name), pinned)
        return pinned + todays

    async def _of_all_versions(self, tenant: TenantId, name: str) -> frozenset[str]:
        """Return what any version redacts: mostly no more than today's, so that the run's own need not be known."""
        now = asyncio.get_running_loop().time()
        kept = self._ever.get((tenant, name))
        if kept is not None and now < kept[0]:
            return kept[1]
        found = await self._histories.get(tenant, name) or frozenset()
        self._ever.keep((tenant, name), (now + FRESH_SECONDS, found))
        return found

    async def _load_histories(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = dict.fromkeys(names, frozenset())
        for tool in await self._store.every_version(tenant, names):
            found[tool.name] |= set(tool.declaration.redacted)
        return found
