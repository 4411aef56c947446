"""Everything that the service can be asked, over one store."""

import asyncio
from types import TracebackType
from typing import Self

import msgspec

from guard.core.effects import Effect, Evidence, Instant, Key, TenantId
from guard.core.lease import Rules
from guard.core.lifecycle import touch
from guard.ports.steps import Written
from guard.ports.store import EffectFilter, Store
from guard.service.amend import Amend, look
from guard.service.begin import Begin
from guard.service.finish import Commit, Fail
from guard.service.gates import Gates
from guard.service.intake import Intake
from guard.service.jitter import Jitter
from guard.service.measures import Measures
from guard.service.naming import Naming
from guard.service.preview import Preview
from guard.service.records import Records
from guard.service.registry import Registry
from guard.service.release import Release
from guard.service.renew import Renew
from guard.service.resolve import Resolve
from guard.service.runs import Runs
from guard.service.status import Status
from guard.service.sweep import Sweep
from guard.service.waiting import Waiters


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An effect as it stands at the database's time `at`, the rules that it obeys, and contradicting proof."""

    effect: Effect
    rules: Rules
    at: Instant
    evidence: tuple[Evidence, ...]


class UseCases:
    """The verbs of the guard. Enter it to start its lanes and its sweep; leave it to stop them."""

    def __init__(self, store: Store, jitter: Jitter) -> None:
        self._store = store
        self._waiters = Waiters()
        self.measures = Measures()
        self._records = Records()
        self._intake = Intake(store.effects, self._written, self.measures)
        self.registry = Registry(store.tools)
        self.runs = Runs(store.runs)
        naming = Naming(self.registry, self.runs)
        amend = Amend(self.registry, self._intake)
        gates = Gates(store.effects, self._intake)
        self.begin = Begin(naming, gates, self._intake, self._waiters, self._records, self.measures)
        self.commit = Commit(amend, self._intake)
        self.fail = Fail(amend, jitter)
        self.renew = Renew(amend)
        self.release = Release(naming, gates, self._intake)
        self.resolve = Resolve(amend)
        self.preview = Preview(self.registry, self.runs)
        self.status = Status(store)
        self.sweep = Sweep(store.effects, self.registry, self._intake)
        self._sweeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._intake.start()
        self._sweeping = asyncio.create_task(self.sweep.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._intake.close()

    def _written(self, result: Written) -> None:
        self._waiters.tell(result.effect)
        self._records.keep(result.effect)

    def stop_waiting(self) -> None:
        """Answer every begin that waits, as it stands, and let none wait from now on: the process is to stop."""
        self._waiters.close()

    async def effect(self, tenant: TenantId, key: Key) -> Shown | None:
        """Read one effect with all that is known of it. Raises StoreUnavailable."""
        found = await self._intake.do(key, look(key))
        if found.effect is None or found.effect.intent.tenant != tenant:
            return None
        known = await self.registry.find(tenant, found.effect.intent.tool)
        evidence = await self._store.effects.evidence(key)
        life = touch(found.effect.life, known.rules, found.at)
        effect = msgspec.structs.replace(found.effect, life=life)
        return Shown(effect=effect, rules=known.rules, at=found.at, evidence=tuple(evidence))

    async def effects(self, tenant: TenantId, chosen: EffectFilter) -> tuple[list[Effect], str | None]:
        """List effects. Raises ValueError for a cursor that is not one."""
        return await self._store.effects.page(tenant, chosen)

    async def metrics(self, tenant: TenantId) -> bytes:
        """Write all meters, in Prometheus' text format. Raises StoreUnavailable."""
        self.measures.stand(await self._store.effects.tally(tenant))
        return self.measures.text()

    async def check(self) -> None:
        """Ask the database for anything. Raises StoreUnavailable."""
        await self._store.check()
