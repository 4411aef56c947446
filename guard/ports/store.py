"""What the service needs of a database. One behaviour on every backend, held by one contract suite."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from guard.core.effects import Duration, Effect, Evidence, Instant, Key, RunId, TenantId
from guard.core.runs import Run
from guard.core.tools import Tool
from guard.ports.steps import Step, StepResult
from twiceshy_contract.names import PublicState
from twiceshy_contract.runs import RunState
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


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What a database says of itself at its time `now`: its `revision` (None: no schema) and the one that is needed.

    `durability` are the settings that decide whether a power cut can take back what was answered, in the database's
    own words. `free_bytes` is the room that is left where the file is.
    """

    kind: Literal["sqlite", "postgresql"]
    version: str
    revision: str | None
    needed: str
    now: Instant
    durability: Mapping[str, str]
    is_durable: bool
    free_bytes: int | None = None

    @property
    def is_current(self) -> bool:
        """Whether the schema is the one that this code needs."""
        return self.revision == self.needed


class EffectStore(Protocol):
    """Effects and their attempts."""

    @property
    def lanes(self) -> int:
        """How many batches may be in flight at once."""

    async def apply(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        """Apply all steps in one transaction; answer each in its place.

        Raises StoreUnavailable (send the same batch again: every step is safe to repeat) and StatementFailed
        (nothing happened: halve the batch).
        """

    async def newest(self, slot: bytes, occurrence: int) -> int | None:
        """Return the rank of the newest instance of a slot that is looked up, counted from 1; None: there is none."""

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

    async def end(self, tenant: TenantId, name: str, state: RunState) -> Run | None:
        """End an open run; return it as it stands (an ended one unchanged), or None where there is none."""

    async def page(
        self, tenant: TenantId, state: RunState | None, limit: int, after: str | None
    ) -> tuple[list[Run], str | None]:
        """Return runs, newest first, and the cursor of the next page. Raises ValueError for a foreign cursor."""


class ToolStore(Protocol):
    """The registry: append-only versions of tools."""

    async def held(self, tenant: TenantId, names: Sequence[str]) -> dict[str, Tool]:
        """Return the version that holds of each tool that is declared: the one that was declared last."""

    async def pin(self, tenant: TenantId, wishes: Sequence[Pin]) -> list[Tool | None]:
        """Pin a version of a tool to each run, unless one is pinned; return what is pinned (None: undeclared)."""

    async def declare(self, tenant: TenantId, name: str, declaration: ToolDeclaration) -> Tool:
        """Merge the declaration over the version that holds and return what holds now.

        A declaration that code made before is no new version: the earlier one holds again.
        """

    async def all(self, tenant: TenantId) -> list[Tool]:
        """Return the version that holds of every tool, by name."""


class Store(Protocol):
    """One database."""

    @property
    def effects(self) -> EffectStore:
        """Effects and their attempts."""

    @property
    def runs(self) -> RunStore:
        """Runs."""

    @property
    def tools(self) -> ToolStore:
        """The registry."""

    async def check(self) -> None:
        """Ask the database for anything. Raises StoreUnavailable."""

    async def describe(self) -> Description:
        """Describe the database. Raises StoreUnavailable, also where it cannot be written."""

    async def close(self) -> None:
        """Give back all connections."""
