"""What the service needs of a database. One behaviour on every backend, held by one contract suite."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from guard.core.effects import AttemptToken, Duration, Effect, Evidence, Instant, Key, RunId, TenantId
from guard.core.forks import Fork
from guard.core.runs import Run
from guard.core.tools import Declared, Held, Moved, Planned, Tool
from guard.ports.approvals import ApprovalStore
from guard.ports.description import Description
from guard.ports.epochs import CacheEpochStore
from guard.ports.events import EventStore
from guard.ports.flags import FlagStore
from guard.ports.forks import ForkStore
from guard.ports.holds import HoldStore
from guard.ports.loops import LoopStore
from guard.ports.outbox import DestinationStore, OutboxStore
from guard.ports.pauses import PauseStore
from guard.ports.probes import ProbeStore
from guard.ports.relay import RelayStore
from guard.ports.replies import ReplyStore
from guard.ports.retention import RetentionStore
from guard.ports.run_facts import RunFactStore
from guard.ports.sagas import SagaStore
from guard.ports.salts import SaltStore
from guard.ports.search import RunFilter, SearchStore
from guard.ports.steps import Step, StepResult
from guard.ports.wire import Wire
from twiceshy_contract.names import PublicState
from twiceshy_contract.runs import RunAbout, RunState
from twiceshy_contract.tools import ToolDeclaration


class StoreUnavailable(Exception):
    """The database could not be reached, or stopped answering; what was sent may or may not have happened."""


class FileUnavailable(StoreUnavailable):
    """The same of a database that is a file of this machine; the text is for whoever called, with what to do."""


class StatementFailed(Exception):
    """The database refused the batch as a whole; nothing of it happened."""


class EffectFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which effects a listing shows; `after` is the last page's cursor, opaque to all but the store.

    Doubt that was closed is left out of `state` in_doubt, unless `closed`.
    """

    state: PublicState | None = None
    tool: str | None = None
    run: str | None = None
    limit: int = 50
    after: str | None = None
    closed: bool = False


class Newest(msgspec.Struct, frozen=True, kw_only=True):
    """The newest instance of a slot, by its rank; 0: there is none. Ranks count from 1.

    `own` is the rank of the instance that an attempt belongs to, `refused` that of the newest with the same arguments,
    where that one has failed.
    """

    rank: int = 0
    own: int | None = None
    refused: int | None = None


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The wish that a run keeps to one version of a tool (0: that of an undeclared one)."""

    run: RunId
    tool: str
    version: int


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How many effects wait for a person, and how many are being executed. Doubt that was closed is not counted.

    `oldest_lease` is how long ago the oldest lease that is held was granted; 0 where there is none.
    """

    in_doubt: int
    executing: int
    oldest_lease: Duration = Duration(0)


class Rival(msgspec.Struct, frozen=True, kw_only=True):
    """Another instance of a slot that may have been applied, and when it succeeded (None: nobody knows yet)."""

    key: Key
    succeeded_at: Instant | None


class EffectStore(Protocol):
    """Effects and their attempts."""

    @property
    def lanes(self) -> int:
        """How many batches may be in flight at once."""

    async def apply(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        """Apply each step as a whole, many in one transaction; answer each in its place.

        Raises StoreUnavailable (send the same batch again: every step is safe to repeat) and StatementFailed
        (halve the batch, down to the step that cannot be stored: with it nothing happened).
        """

    async def newest(self, slot: bytes, occurrence: int, token: AttemptToken, arguments_digest: bytes) -> Newest:
        """Return what is known of the instances of a slot that is looked up, as of one moment."""

    async def keep_slot(self, key: Key, slot: bytes) -> None:
        """Keep the slot with an effect that was made before instances of it were looked up."""

    async def rival(self, slot: bytes, besides: Key) -> Rival | None:
        """Return the instance of a slot that is looked up, other than this one, that was or may be applied last."""

    async def deliver(self, tenant: TenantId, run: RunId, keys: Sequence[Key]) -> None:
        """Mark those of these effects that are final and of the run: their outcomes are known to the run's agent."""

    async def overdue(self, limit: int) -> list[Key]:
        """Return keys of executing effects whose lease has run out, longest overdue first."""

    async def page(self, tenant: TenantId, chosen: EffectFilter) -> tuple[list[Effect], str | None]:
        """Return effects, newest runs first and newest steps first, and the cursor of the next page.

        Raises ValueError for a cursor that this store did not make.
        """

    async def evidence(self, key: Key) -> list[Evidence]:
        """Return the contradicting proof that was kept of an effect, oldest first."""

    async def tally(self, tenant: TenantId) -> Tally:
        """Count the effects in open doubt and in execution."""


class RunStore(Protocol):
    """Runs."""

    async def open(self, tenant: TenantId, names: Sequence[str]) -> list[Run]:
        """Find each run, or make it, open; answer in the order of the names (which may repeat)."""

    async def get(self, tenant: TenantId, name: str) -> Run | None:
        """Find a run."""

    async def fork(self, tenant: TenantId, name: str, fork: Fork, child_of: str | None = None) -> Run:
        """Make a run that is a fork, and keeps to its parent's versions of tools; or find the run of that name.

        One that is `child_of` a fork is listed as a fork only of the run that it has the record of.
        """

    async def end(self, tenant: TenantId, name: str, state: RunState) -> Run | None:
        """End an open run; return it as it stands (an ended one unchanged), or None where there is none."""

    async def tell(self, tenant: TenantId, name: str, about: RunAbout | None, parent: str | None) -> Run:
        """Find a run, or make it, open, as a child of its parent; keep what it is about where nobody said so yet.

        A run that is there with another parent, or with none, is returned as it is.
        """

    async def page(self, tenant: TenantId, chosen: RunFilter) -> tuple[list[Run], str | None]:
        """Return runs, newest first, and the cursor of the next page.

        Raises ValueError for a foreign cursor.
        """


class ToolStore(Protocol):
    """The registry: append-only versions of tools, and the terms in which they held."""

    async def held(self, tenant: TenantId, names: Sequence[str]) -> dict[str, Tool]:
        """Return the version that holds of each tool that is declared: the one that was declared last."""

    async def pin(self, tenant: TenantId, wishes: Sequence[Pin]) -> list[Tool | None]:
        """Pin a version of a tool to each run, unless one is pinned; return what is pinned (None: undeclared)."""

    async def pinned(self, tenant: TenantId, run: RunId, names: Sequence[str]) -> dict[str, Tool]:
        """Return the declared versions of these tools that are pinned to a run. None is pinned by that."""

    async def plan(self, tenant: TenantId, declared: Mapping[str, ToolDeclaration]) -> list[Planned]:
        """Say what these declarations would make of their tools, in their order. Nothing is written."""

    async def declare(
        self, tenant: TenantId, declared: Mapping[str, ToolDeclaration], seen: Mapping[str, int] | None = None
    ) -> list[Declared] | Moved:
        """Merge each declaration over the version that holds, all in one transaction; answer in their order.

        A declaration that was made before is no new version: the earlier one holds again. Where one would change a
        tool of which another version than the one `seen` (0: none) holds by now, nothing is written.
        """

    async def all(self, tenant: TenantId, at: Instant | None = None) -> list[Tool]:
        """Return the version of every tool that holds, or held at an instant, by name."""

    async def at(self, tenant: TenantId, name: str, at: Instant) -> Tool | None:
        """Return the version that held at an instant."""

    async def versions(self, tenant: TenantId, wishes: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Tool]:
        """Return these versions of tools, as far as there are such."""

    async def every_version(self, tenant: TenantId, names: Sequence[str]) -> list[Tool]:
        """Return all versions of these tools."""

    async def history(self, tenant: TenantId, name: str) -> list[Held]:
        """Return all versions of a tool with the terms in which each held, newest version first."""


class Store(Protocol):
    """One database."""

    @property
    def effects(self) -> EffectStore:
        """Effects and their attempts."""

    @property
    def runs(self) -> RunStore:
        """Runs."""

    @property
    def run_facts(self) -> RunFactStore:
        """What became known of runs."""

    @property
    def search(self) -> SearchStore:
        """Recorded calls, found by what is indexed of them."""

    @property
    def tools(self) -> ToolStore:
        """The registry."""

    @property
    def loops(self) -> LoopStore:
        """Which attempts of each run began a slot."""

    @property
    def events(self) -> EventStore:
        """The logs of runs, and what they hold by content."""

    @property
    def retention(self) -> RetentionStore:
        """Records that are kept for a time."""

    @property
    def forks(self) -> ForkStore:
        """The records of forks."""

    @property
    def pauses(self) -> PauseStore:
        """Calls at which forks stopped."""

    @property
    def salts(self) -> SaltStore:
        """What things are named under that nobody else may name."""

    @property
    def cache_epochs(self) -> CacheEpochStore:
        """Since when what is kept of records beside the database may be believed."""

    @property
    def flags(self) -> FlagStore:
        """What an operator should see."""

    @property
    def approvals(self) -> ApprovalStore:
        """What persons are asked, and what they have said."""

    @property
    def holds(self) -> HoldStore:
        """Claims on resources."""

    @property
    def sagas(self) -> SagaStore:
        """Sagas and their steps."""

    @property
    def probes(self) -> ProbeStore:
        """Questions about doubtful effects."""

    @property
    def outbox(self) -> OutboxStore:
        """Messages that were staged."""

    @property
    def destinations(self) -> DestinationStore:
        """Where messages may go."""

    @property
    def relay(self) -> RelayStore:
        """The outbox as those see it who deliver."""

    @property
    def replies(self) -> ReplyStore:
        """Mail that came in."""

    @property
    def wire(self) -> Wire:
        """Words between the replicas on this database."""

    async def check(self) -> None:
        """Ask the database for anything. Raises StoreUnavailable."""

    async def describe(self) -> Description:
        """Describe the database. Raises StoreUnavailable, also where it cannot be written."""

    async def close(self) -> None:
        """Give back all connections."""
