"""What the service needs of a database to keep sagas. Each write holds the saga, so that no two stand in its way."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from guard.core.effects import Duration, Effect, Instant, Key, TenantId
from guard.core.sagas import Mark, Saga, SagaStep
from twiceshy_contract.policies import Compensation
from twiceshy_contract.sagas import SagaState


class SagaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A saga with its steps in the order in which they were enlisted, as they stood at the database's time `at`.

    `effects` are those of the steps, and those that take them back.
    """

    saga: Saga
    steps: tuple[SagaStep, ...]
    effects: Mapping[Key, Effect]
    at: Instant

    def step(self, key: Key) -> SagaStep | None:
        """Find the step of a key."""
        return next((step for step in self.steps if step.key == key), None)


class NewStep(msgspec.Struct, frozen=True, kw_only=True):
    """An effect that a saga is to enlist, and what takes it back."""

    key: Key
    run: str | None
    tool: str
    compensation: Compensation | None


Enlisting = Literal["enlisted", "over", "of_another", "of_another_run", "taken_back"]
"""`over`: the saga takes no steps. `of_another`: another saga has it. `taken_back`: another saga took it back."""


class Enlisted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a step, and the saga as it stands; `is_known` says that the step is one of the saga's.

    `other` is the saga that has it instead.
    """

    saga: Saga
    became: Enlisting
    is_known: bool = False
    other: str | None = None


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """The saga runs on: an effect is a step of it, and is not known to be done or to have come to nothing."""

    saga: Saga
    key: Key


class SagaFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sagas a listing shows; `after` is the last page's cursor, opaque to all but the store."""

    state: SagaState | None = None
    run: str | None = None
    limit: int = 50
    after: str | None = None


class SagaStore(Protocol):
    """Sagas and their steps. Every write finds a saga compensating whose deadline has passed."""

    async def open(self, tenant: TenantId, name: str, run: str, deadline: Duration | None) -> Saga:
        """Find the saga of a name, or make it, running."""

    async def read(self, tenant: TenantId, name: str) -> SagaRecord | None:
        """Read a saga with its steps and their effects."""

    async def read_left(self, tenant: TenantId, name: str) -> SagaRecord | None:
        """Read a saga with the steps from which it follows what it needs next, and their effects.

        Of those that are known to be done, that is the one which ended last. Settled ones are left out, but those that
        are uncompensated.
        """

    async def find(self, tenant: TenantId, name: str) -> Saga | None:
        """Find a saga as it stands once every write that is under way has ended."""

    async def enlist(self, tenant: TenantId, name: str, step: NewStep) -> Enlisted | None:
        """Enlist an effect in a running saga, unless another has it; None: there is no such saga."""

    async def fail(self, tenant: TenantId, name: str, reason: str) -> Saga | None:
        """Let a running saga be taken back; return it as it stands, or None where there is none."""

    async def complete(self, tenant: TenantId, name: str) -> Saga | Unfinished | None:
        """End a running saga well, unless a step of it is begun and not final; return it, or None where there is none.

        A step that was never begun does not stand in the way: it begins no more.
        """

    async def mark(self, saga: UUID, marks: Sequence[Mark], state: SagaState) -> Saga:
        """Write down what became of steps, where they stand as they were seen, and the state of a saga that failed.

        The saga is `compensated` only if no step of it is enlisted any more.
        """

    async def pursue(self, saga: UUID, step: Key, compensation: Key) -> None:
        """Write down which effect takes a step back."""

    async def retry(self, saga: UUID, step: SagaStep, note: str) -> None:
        """Let a step's compensation be another effect, the next round; once for a step as it was seen."""

    async def offer(self, saga: UUID, step: Key, note: str) -> None:
        """Let the call that is due for a step be tried anew, as if it had become due now."""

    async def misfit(self, saga: UUID, step: SagaStep, why: str) -> None:
        """Write down why the call that is due for a step could not be made, where the step stands as it was seen."""

    async def restless(self, limit: int) -> list[tuple[TenantId, str]]:
        """Name sagas whose deadline has passed while they run, or of which a step that was passed over is done."""

    async def unfinished(self, limit: int, after: UUID | None) -> list[Saga]:
        """Return sagas that are being taken back or are stuck, oldest first."""

    async def page(self, tenant: TenantId, chosen: SagaFilter) -> tuple[list[Saga], str | None]:
        """Return sagas, newest first, and the cursor of the next page. Raises ValueError for a foreign cursor."""
