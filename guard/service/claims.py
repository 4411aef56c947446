"""Claims: hand doubtful effects to workers that can find out what became of them."""

import asyncio
from typing import Final

import msgspec

from guard.core import lease as leases
from guard.core.effects import Effect, Instant, TenantId, seconds
from guard.ports.probes import Claim, ProbeStore
from guard.service.amend import look
from guard.service.intake import Intake
from guard.service.registry import Registry
from guard.service.waiting import Waiters
from twiceshy_contract.probes import ClaimProbesRequest

LOOK_SECONDS: Final = 0.5
"""How often the database is looked at while a worker waits."""


class Doubtful(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed effect as it was read at `at`; that nothing was applied is believed from `settles_at` on."""

    effect: Effect
    claim: Claim
    at: Instant
    settles_at: Instant | None


class Claims:
    """Effects in open doubt, each for one worker at a time."""

    def __init__(self, store: ProbeStore, registry: Registry, intake: Intake, waiters: Waiters) -> None:
        self._store = store
        self._registry = registry
        self._intake = intake
        self._waiters = waiters

    async def __call__(self, tenant: TenantId, request: ClaimProbesRequest) -> list[Doubtful]:
        """Claim what there is; with `wait_seconds`, wait for the first. Raises StoreUnavailable."""
        clock = asyncio.get_running_loop()
        until = clock.time() + request.wait_seconds
        while True:
            found = await self._claim(tenant, request)
            left = until - clock.time()
            if found or left <= 0 or self._waiters.is_closed:
                return found
            await asyncio.sleep(min(LOOK_SECONDS, left))

    async def _claim(self, tenant: TenantId, request: ClaimProbesRequest) -> list[Doubtful]:
        hold = seconds(request.claim_seconds)
        claims = await self._store.claim(tenant, sorted(set(request.tools)), request.limit, hold)
        read = await asyncio.gather(*(self._read(claim) for claim in claims))
        return [doubtful for doubtful in read if doubtful is not None]

    async def _read(self, claim: Claim) -> Doubtful | None:
        """Read a claimed effect; one that is in doubt no more is let go."""
        found = await self._intake.do(claim.key, look(claim.key))
        if found.effect is None or found.effect.life.state != "in_doubt":
            await self._store.forget(claim.key)
            return None
        rules = await self._registry.rules_for(found.effect)
        settles_at = leases.settles_at(found.effect.life, rules)
        return Doubtful(effect=found.effect, claim=claim, at=found.at, settles_at=settles_at)
