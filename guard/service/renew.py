"""Renew: the heartbeat of an attempt that is still running."""

from guard.core.effects import AttemptToken, Fence, Key, TenantId, seconds
from guard.core.situation import Event
from guard.service.amend import Amend, Amendment
from guard.service.holds import Holds, wanted
from guard.service.outcomes import ReportOutcome, Settled
from guard.service.registry import Registry
from twiceshy_contract.effects import RenewRequest


class Renew:
    """An attempt asks to keep its lease; one whose lease ran out gets it back while nobody has settled it.

    Where a higher priority asks for the hold of its resource, it keeps the lease and is told to give way.
    """

    def __init__(self, amend: Amend, registry: Registry, holds: Holds) -> None:
        self._amend = amend
        self._registry = registry
        self._holds = holds

    async def __call__(self, tenant: TenantId, key: Key, request: RenewRequest) -> ReportOutcome:
        """Move the lease's deadline. Raises StoreUnavailable."""
        event = Event(
            name="renew",
            token=AttemptToken(request.attempt),
            fence=Fence(request.fence),
            lease=None if request.lease_seconds is None else seconds(request.lease_seconds),
        )
        renewed = await self._amend(tenant, Amendment(key=key, event=event))
        if not isinstance(renewed, Settled):
            return renewed
        known = await self._registry.find(tenant, renewed.effect.intent.tool)
        hold = await self._holds.wanted(key) if known.tool.declaration.resource is not None else None
        return renewed if hold is None else wanted(hold, renewed.effect)
