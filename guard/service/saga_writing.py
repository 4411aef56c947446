"""What is written of a saga that failed: its steps, its state, and a flag where it has come to stand still."""

from typing import Protocol, assert_never

from guard.core.effects import Key, TenantId
from guard.core.flags import Flag
from guard.core.sagas import Cancel, Done, Due, Mark, Move, Plan, Saga, Stuck, Wait
from guard.ports.sagas import SagaRecord, SagaStore
from guard.service.flags import Flags
from guard.service.outcomes import ReportOutcome
from twiceshy_contract.reconsider import CancelRequest
from twiceshy_contract.sagas import SagaState

_LONGEST_REASON = 2000


class Claims(Protocol):
    """The resources that effects claim."""

    async def give_back(self, key: Key) -> None:
        """Give back what an effect claims. Raises StoreUnavailable."""


class Cancelling(Protocol):
    """Ends effects that wait."""

    async def __call__(self, tenant: TenantId, key: Key, request: CancelRequest) -> ReportOutcome:
        """Cancel a pending effect. Raises StoreUnavailable."""


class SagaWriting:
    """Writes down what follows from the record of a saga that failed. All of it may be done again."""

    def __init__(self, store: SagaStore, flags: Flags, claims: Claims, cancel: Cancelling) -> None:
        self._store = store
        self._flags = flags
        self._claims = claims
        self._cancel = cancel

    async def cancel(self, saga: Saga, key: Key) -> None:
        """Let no try of a step come any more; where it moved meanwhile, the next look sees how."""
        reason = f"saga {saga.name} is taken back: {saga.reason}"
        await self._cancel(saga.tenant, key, CancelRequest(reason=reason[:_LONGEST_REASON]))

    async def settle(self, saga: Saga, mark: Mark) -> None:
        """Write down what a person has decided about a step; the next look sees what follows."""
        await self.moved(saga)
        if mark.state == "compensated":
            await self._claims.give_back(mark.key)
        await self._store.mark(saga.id, [mark], "compensating")

    async def moved(self, saga: Saga) -> None:
        """Close what was flagged of a saga that stood still; the next look flags anew what still does."""
        if saga.state == "stuck":
            reason = "the saga goes on"
            await self._flags.settled(saga.tenant, "saga-stuck", _subjects(saga), reason)

    async def write(self, record: SagaRecord, plan: Plan) -> Saga:
        """Write down what became of the steps, and return the saga as it stands then."""
        saga, state = record.saga, _state_after(plan.move)
        if state != "stuck":
            await self.moved(saga)
        for mark in plan.marks:
            if mark.state == "compensated":
                await self._claims.give_back(mark.key)
        if plan.marks or state != saga.state:
            saga = await self._store.mark(saga.id, plan.marks, state)
        if isinstance(plan.move, Stuck):
            await self._flags.raise_flag(saga.tenant, _flag(record, plan.move))
        return saga


def _state_after(move: Move) -> SagaState:
    match move:
        case Stuck():
            return "stuck"
        case Done():
            return "compensated"
        case Cancel() | Due() | Wait():
            return "compensating"
    assert_never(move)


def _subjects(saga: Saga) -> str:
    """Return how the subjects of the flags of a saga begin: no name holds a slash."""
    return f"{saga.name}/"


def _flag(record: SagaRecord, stuck: Stuck) -> Flag:
    """Return the flag of a step that a person must see to; each round of it has its own."""
    step, saga = record.step(stuck.key), record.saga
    again = 1 if step is None else step.round
    return Flag(
        kind="saga-stuck",
        subject=f"{_subjects(saga)}{stuck.key.hex()}/{again}",
        detail=f"Saga {saga.name} cannot be taken back by itself: {stuck.why}.",
        run=saga.run,
        tool=None if step is None else step.tool,
        key=stuck.key,
    )
