"""Renew: the heartbeat of an attempt that is still running."""

from guard.core.effects import AttemptToken, Fence, Key, TenantId, seconds
from guard.core.situation import Event
from guard.service.amend import Amend, Amendment
from guard.service.outcomes import ReportOutcome
from twiceshy_contract.effects import RenewRequest


class Renew:
    """An attempt asks to keep its lease; one whose lease ran out gets it back while nobody has settled it."""

    def __init__(self, amend: Amend) -> None:
        self._amend = amend

    async def __call__(self, tenant: TenantId, key: Key, request: RenewRequest) -> ReportOutcome:
        """Move the lease's deadline. Raises StoreUnavailable."""
        event = Event(
            name="renew",
            token=AttemptToken(request.attempt),
            fence=Fence(request.fence),
            lease=None if request.lease_seconds is None else seconds(request.lease_seconds),
        )
        return await self._amend(tenant, Amendment(key=key, event=event))
