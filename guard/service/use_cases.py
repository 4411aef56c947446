"""Everything that the service can be asked, over one store."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self
from uuid import UUID

import msgspec

from guard.core.effects import Effect, Evidence, Instant, Key, TenantId
from guard.core.lease import Rules
from guard.core.lifecycle import touch
from guard.ports.accelerator import Accelerator
from guard.ports.probes import ProbeState
from guard.ports.probing import Provider
from guard.ports.reaching import Reaching
from guard.ports.relay import Backlog, together
from guard.ports.steps import Written
from guard.ports.store import EffectFilter, Store, StoreUnavailable
from guard.service.alarms import Alarms
from guard.service.amend import Amend, look
from guard.service.approval_gate import ApprovalGate
from guard.service.approvals import Approvals
from guard.service.begin import Begin
from guard.service.bell import Bell
from guard.service.claims import Claims
from guard.service.contention import Contention
from guard.service.credentials import Credentials
from guard.service.deliveries import Deliveries
from guard.service.destinations import Destinations
from guard.service.edits import Edits
from guard.service.finish import Commit, Fail
from guard.service.flags import Flags
from guard.service.fork_rulings import ForkRulings
from guard.service.forks import ForkGate, LiveCalls
from guard.service.gates import Gates
from guard.service.holds import Holds
from guard.service.intake import Intake
from guard.service.jitter import Jitter
from guard.service.loops import Loops
from guard.service.measures import UNDECLARED, Measures
from guard.service.naming import Naming
from guard.service.outbox import Operations
from guard.service.pauses import Pauses
from guard.service.policy import Policy
from guard.service.preview import Preview
from guard.service.probe import Asked, Prober
from guard.service.questions import Questions
from guard.service.reach import Reach
from guard.service.recall import Recall
from guard.service.reconsider import Cancel, Reopen
from guard.service.recording import Recording
from guard.service.records import Records
from guard.service.redactions import Redactions
from guard.service.registry import Registry
from guard.service.release import Release
from guard.service.renew import Renew
from guard.service.replies import Replies
from guard.service.resolve import Resolve
from guard.service.resources import ClaimResource
from guard.service.retention import Retention
from guard.service.runs import Runs
from guard.service.saga_care import SagaSweep, SettleSaga
from guard.service.saga_gate import SagaGate
from guard.service.saga_writing import SagaWriting
from guard.service.sagas import Sagas
from guard.service.search import Search
from guard.service.stage import Stage
from guard.service.staging import Stagings
from guard.service.status import Status
from guard.service.sweep import Sweep
from guard.service.waiting import Waiters
from guard.service.wakes import Wakes
from guard.service.writers import Writers


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An effect as it stands at the database's time `at`, the rules that it obeys, and contradicting proof.

    `messages` are those that it staged.
    """

    effect: Effect
    rules: Rules
    at: Instant
    evidence: tuple[Evidence, ...]
    probe: ProbeState | None = None
    messages: tuple[UUID, ...] = ()


class UseCases:
    """The verbs of the guard. Enter it to start its lanes and its sweep; leave it to stop them."""

    def __init__(
        self,
        store: Store,
        jitter: Jitter,
        provider: Provider,
        reaching: Reaching | None = None,
        accelerator: Accelerator | None = None,
    ) -> None:
        self._store = store
        self._waiters = Waiters()
        self._wakes = Wakes(self._waiters, store.wire if accelerator is None else accelerator.wire, jitter)
        self.contention = Contention(accelerator)
        self.measures = Measures(self.contention)
        self.bell = Bell(store.relay)
        self._recall = Recall(Records(), accelerator)
        self._intake = Intake(store.effects, self._written, self.measures)
        self.registry = Registry(store.tools)
        self.runs = Runs(store.runs)
        self.search = Search(store.search, store.run_facts, self.runs)
        redactions = Redactions(store.tools, self.registry, store.salts)
        self.recording = Recording(store.events, self.runs, redactions, self.measures)
        self.holds = Holds(store.holds)
        self.replies = Replies(store.replies, self.runs)
        naming = Naming(self.registry, self.runs)
        self.flags = Flags(store.flags)
        self.alarms = Alarms(store.effects, store.flags, self._intake)
        amend = Amend(self.registry, self._intake, self.alarms)
        self.questions = Questions(store.approvals, self.runs, self._waiters, self.bell)
        self.cancel = Cancel(amend, self.questions)
        self.reopen = Reopen(amend, self.questions)
        saga_writing = SagaWriting(store.sagas, self.flags, self.holds, self.cancel)
        self.sagas = Sagas(store.sagas, self.registry, self.runs, self._intake, saga_writing)
        self.settle_saga = SettleSaga(store.sagas, self.sagas, saga_writing, self.reopen)
        self.saga_sweep = SagaSweep(store.sagas, self.sagas)
        rulings = ForkRulings(store.forks, store.pauses, self.registry)
        gates = self._gates(store, rulings)
        self.pauses = Pauses(store.pauses, self.runs)
        self.credentials = Credentials(store.salts)
        self.reach = Reach(store.forks, self.runs)
        self.policy = Policy(store.forks, store.approvals, self.registry, self.runs, rulings, gates)
        self.begin = Begin(naming, gates, self._intake, self._waiters, self._recall, self.measures)
        stagings = Stagings(store.destinations, store.replies.newest, self.runs, self._intake, self.bell, self.measures)
        self.stage = Stage(self.begin, naming, gates, self._intake, self.runs, stagings)
        self.outbox = Operations(store.outbox, stagings)
        self.destinations = Destinations(store.destinations, self.bell, reaching)
        self.commit = Commit(amend, self._intake, self._recall, stagings, store.outbox)
        self.fail = Fail(amend, jitter)
        self.renew = Renew(amend, self.registry, self.holds)
        self.release = Release(naming, gates, self._intake)
        self.resolve = Resolve(amend, store.probes, self._intake, stagings, store.outbox)
        self.approvals = Approvals(
            store.approvals,
            Edits(store.approvals, naming, gates, self._intake),
            amend,
            self._intake,
            self._waiters,
            self.bell,
        )
        self.preview = Preview(self.registry, self.runs)
        self.status = Status(store, accelerator)
        self.sweep = Sweep(store.effects, self.registry, self._intake)
        self.retention = Retention(store.retention, self.registry, self._recall.forget)
        self.claims = Claims(store.probes, self.registry, self._intake, self._waiters)
        self.prober = Prober(store.probes, self.registry, self._intake, self.resolve, Asked(provider, self.measures))
        self._loops: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._intake.start()
        self._loops = [
            asyncio.create_task(loop)
            for loop in (
                self._wakes.run(),
                self.sweep.run(),
                self.retention.run(),
                self.alarms.run(),
                self.prober.run(),
                self.holds.run(),
                self.saga_sweep.run(),
                self.bell.run(),
            )
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self.recording.close()
        await self._intake.close()
        await self.holds.close()

    def _gates(self, store: Store, rulings: ForkRulings) -> Gates:
        saga_gate, writers = SagaGate(store.sagas, self.sagas, self._intake), Writers(store.runs, self._intake)
        return Gates(
            store.effects,
            self._intake,
            early=(Deliveries(store.effects), ForkGate(store.forks, store.pauses, self.runs, rulings)),
            gates=(
                Loops(store.loops, self.flags),
                saga_gate,
                ApprovalGate(store.approvals, store.effects, self.runs, self._intake, self.bell),
                ClaimResource(self.holds),
                LiveCalls(store.forks, store.pauses),
            ),
            confirm=(saga_gate.confirm, writers.confirm),
            last=(writers.still,),
        )

    def _written(self, result: Written) -> None:
        self._waiters.tell(result.effect)
        self._recall.written(result.effect)
        self.holds.written(result.effect)

    @property
    def waiting(self) -> int:
        """How many begins wait here for what others do."""
        return self._waiters.begins

    @property
    def retry_after(self) -> float:
        """After how many seconds it is of use to ask again for what was put off."""
        return self._intake.retry_after

    def awaited(self) -> tuple[bytes, ...]:
        """Return what somebody waits for here: keys of effects, and approvals by the bytes of their ids."""
        return self._waiters.awaited()

    @property
    def is_stopping(self) -> bool:
        """Whether the process is to stop."""
        return self._waiters.is_closed

    def stop_waiting(self) -> None:
        """Answer every begin that waits, as it stands, and let none wait from now on: the process is to stop."""
        self._waiters.close()

    async def effect(self, tenant: TenantId, key: Key) -> Shown | None:
        """Read one effect with all that is known of it. Raises StoreUnavailable."""
        found = await self._intake.do(key, look(key), tenant)
        if found.effect is None or found.effect.intent.tenant != tenant:
            return None
        rules = await self.registry.rules_for(found.effect)
        evidence = await self._store.effects.evidence(key)
        life = touch(found.effect.life, rules, found.at)
        probe = await self._store.probes.get(key) if life.state == "in_doubt" else None
        effect = msgspec.structs.replace(found.effect, life=life)
        messages = await self._store.outbox.of_effect(tenant, key) if life.state == "succeeded" else ()
        return Shown(effect=effect, rules=rules, at=found.at, evidence=tuple(evidence), probe=probe, messages=messages)

    async def effects(self, tenant: TenantId, chosen: EffectFilter) -> tuple[list[Effect], str | None]:
        """List effects. Raises ValueError for a cursor that is not one."""
        return await self._store.effects.page(tenant, chosen)

    async def metrics(self, tenant: TenantId) -> bytes:
        """Write all meters, in Prometheus' text format; where the database is away, with what it said last."""
        self.measures.queued(self._intake.waiting)
        with suppress(StoreUnavailable):  # then what waits there stays as it was seen last
            self.measures.stand(await self._store.effects.tally(tenant), await self._store.flags.count_open(tenant))
            self.measures.wait_for(await self._backlogs(tenant))
        return self.measures.text()

    async def _backlogs(self, tenant: TenantId) -> dict[str, Backlog]:
        """Count what waits for each destination, by its name, and for all together that are not there."""
        names = {way.id: way.name for way in await self._store.relay.ways() if way.tenant == tenant}
        found = await self._store.relay.backlogs()
        by_name = {name: found.get(number, Backlog()) for number, name in names.items()}
        undeclared = list((await self._store.destinations.undeclared(tenant)).values())
        return by_name | ({UNDECLARED: together(undeclared)} if undeclared else {})

    async def check(self) -> None:
        """Ask the database for anything. Raises StoreUnavailable."""
        await self._store.check()
