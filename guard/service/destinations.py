"""Destinations as operators meet them: declared, paused, resumed, removed, and reached."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from guard.core.destinations import check_destination
from guard.core.effects import TenantId
from guard.logs import logger
from guard.ports.outbox import DestinationRecord, DestinationStore
from guard.ports.reaching import Reached, Reaching
from guard.ports.relay import Backlog
from guard.service.bell import Bell
from guard.service.outcomes import Refused
from twiceshy_contract.destinations import Destination, DestinationAct
from twiceshy_contract.variables import did_you_mean

Act = Literal["pause", "resume", "remove"]
_STATES: Final[dict[Act, Literal["active", "paused", "removed"]]] = {
    "pause": "paused",
    "resume": "active",
    "remove": "removed",
}
_DONE: Final[dict[Act, str]] = {"pause": "paused", "resume": "resumed", "remove": "removed"}

_log = logger("guard.destinations")


class Declared(msgspec.Struct, frozen=True):
    """A destination as it is now, and whether this changed it."""

    record: DestinationRecord
    is_changed: bool


class Destinations:
    """The use cases. Without a way to reach anything, a destination's connection is not checked, and that is said."""

    def __init__(self, store: DestinationStore, bell: Bell, reaching: Reaching | None) -> None:
        self._store: Final = store
        self._bell: Final = bell
        self._reaching: Final = reaching

    async def all(self, tenant: TenantId) -> list[DestinationRecord]:
        """List those that are not removed, by name. Raises StoreUnavailable."""
        return await self._store.all(tenant)

    async def undeclared(self, tenant: TenantId) -> Mapping[str, Backlog]:
        """Return what waits for a person by the names of destinations that are not there. Raises StoreUnavailable."""
        return await self._store.undeclared(tenant)

    async def get(self, tenant: TenantId, name: str) -> DestinationRecord | Refused:
        """Read one that is there. Raises StoreUnavailable."""
        record = await self._store.get(tenant, name)
        return record if record is not None and record.place.state != "removed" else await self._none(tenant, name)

    async def declare(self, tenant: TenantId, name: str, settings: Destination) -> Declared:
        """Declare a destination. Raises Refusal for settings that nothing could be delivered by, StoreUnavailable."""
        check_destination(settings)
        record, is_changed = await self._store.declare(tenant, name, settings)
        if is_changed:
            _log.info("destination_declared", name=name, version=record.version)
            self._bell.ring()
        return Declared(record, is_changed)

    async def act(self, tenant: TenantId, name: str, act: Act, request: DestinationAct) -> DestinationRecord | Refused:
        """Pause, resume or remove. Raises StoreUnavailable."""
        standing = await self.get(tenant, name)
        if isinstance(standing, Refused):
            return standing
        whose = "" if request.by is None else f" by {request.by}"
        record = await self._store.put(tenant, name, _STATES[act], f"{_DONE[act]}{whose}: {request.reason}")
        if record is None:
            return await self._none(tenant, name)
        _log.info("destination_moved", name=name, act=act, by=request.by)
        self._bell.ring()
        return record

    async def check(self, tenant: TenantId, name: str) -> Reached | Refused:
        """Reach a destination from here; nothing is delivered. Raises StoreUnavailable."""
        standing = await self.get(tenant, name)
        if isinstance(standing, Refused):
            return standing
        if self._reaching is None:
            return Refused(code="no-relay", detail=f"Destination {name!r} was not reached.")
        return await self._reaching(name, standing.place.settings)

    async def _none(self, tenant: TenantId, name: str) -> Refused:
        known = [record.place.name for record in await self._store.all(tenant)]
        return Refused(code="not-found", detail=f"There is no destination {name!r}{did_you_mean(name, known)}")
