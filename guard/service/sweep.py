"""Sweep: write down that leases have run out, so that doubt shows in the queue without anybody asking."""

import asyncio
from collections.abc import Generator
from typing import Final

import msgspec

from guard.core.effects import Effect, Key
from guard.core.lease import Rules
from guard.core.lifecycle import touch
from guard.logs import logger
from guard.ports.steps import Found, Replace, Step, StepResult
from guard.ports.store import EffectStore
from guard.service.amend import look
from guard.service.intake import Intake
from guard.service.registry import Registry
from guard.service.rounds import for_ever

SWEEP_SECONDS: Final = 1.0
SWEEP_BATCH: Final = 500

_log = logger("guard.sweep")


class Sweep:
    """Finds leases that have run out by index, in batches."""

    def __init__(self, store: EffectStore, registry: Registry, intake: Intake) -> None:
        self._store = store
        self._registry = registry
        self._intake = intake

    async def run(self) -> None:
        """Sweep for ever; a database that is away is tried again."""

        async def is_more() -> bool:
            return await self.run_once() == SWEEP_BATCH

        await for_ever("sweep", is_more, SWEEP_SECONDS)

    async def run_once(self) -> int:
        """Sweep one batch; return how many leases were found to have run out."""
        keys = await self._store.overdue(SWEEP_BATCH)
        done = await asyncio.gather(*(self._expire(key) for key in keys), return_exceptions=True)
        for failure in done:
            if isinstance(failure, BaseException):
                raise failure
        return len(keys)

    async def _expire(self, key: Key) -> None:
        found = await self._intake.do(key, look(key))
        if found.effect is not None:
            rules = await self._registry.rules_for(found.effect)
            await self._intake.do(key, _expire(found.effect, found, rules))


def _expire(effect: Effect, found: Found, rules: Rules) -> Generator[Step, StepResult, None]:
    """Apply the deadline to what was found; an effect that moved meanwhile is left to whoever moved it."""
    life = touch(effect.life, rules, found.at)
    if life is not effect.life:
        yield Replace(seen=effect.version, effect=msgspec.structs.replace(effect, life=life))
        _log.info("lease_ran_out", key=effect.intent.key.hex(), tool=effect.intent.tool, state=life.state)
