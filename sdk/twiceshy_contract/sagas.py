"""Wire structs of a saga: steps that are all done, or taken back one after the other."""

from typing import Annotated, Literal

import msgspec

from twiceshy_contract.names import BusinessKey, Occurrence, Person, PublicState, Reason, RunName, ToolName
from twiceshy_contract.wire import EffectKey

SagaState = Literal["running", "completed", "compensating", "compensated", "stuck"]
"""`stuck`: it was to be taken back, and a person must see to it first."""

StepState = Literal["enlisted", "compensated", "uncompensated", "skipped", "passed_over"]
"""What became of a step in a saga that is taken back.

`enlisted`: not decided yet. `uncompensated`: it was done, and its tool names no compensation. `skipped`: there is
nothing to take back. `passed_over`: nothing is known to have been done; proof that comes late queues it again.
"""

SettleAs = Literal["done", "skip", "retry"]
"""A person took the step back by hand, it is to be left as it is, or its compensation is to be tried again."""

Purpose = Literal["compensate", "settle"]
"""`settle`: run the step again, which is harmless, to learn whether it was done; then it is taken back."""


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A body that a client sends."""


class OpenSagaRequest(_Request, frozen=True, kw_only=True):
    """Open a saga in a run, or find it. The deadline of the first opening counts."""

    saga: RunName
    run: RunName
    deadline_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=31_536_000)] | None = None


class FailSagaRequest(_Request, frozen=True, kw_only=True):
    """It cannot go on: what was done is to be taken back."""

    reason: Reason


class SettleStepRequest(_Request, frozen=True, kw_only=True):
    """A person decides about a step that cannot be taken back by itself."""

    as_: SettleAs = msgspec.field(name="as")
    by: Person
    reason: Reason


class ReportStepRequest(_Request, frozen=True, kw_only=True):
    """The call that is due for a step does not fit the tool of the process which tried to make it."""

    reason: Reason


class ResumeSagaRequest(_Request, frozen=True, kw_only=True):
    """A person lets every compensation be tried again that was refused or given up."""

    by: Person
    reason: Reason


class SagaStepView(msgspec.Struct, frozen=True, kw_only=True):
    """A step: the effect that the saga enlisted, and the one that takes it back, each with its state."""

    number: int
    key: EffectKey
    tool: str
    state: StepState
    effect: PublicState | None
    compensation: str | None
    compensation_key: EffectKey | None
    compensation_effect: PublicState | None
    enlisted_at: str
    note: str | None


class SagaSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A saga as a line of a listing. `reason` says why it is taken back."""

    saga: RunName
    run: RunName
    state: SagaState
    reason: str | None
    deadline: str | None
    started_at: str
    failed_at: str | None
    ended_at: str | None


class SagaMove(msgspec.Struct, frozen=True, kw_only=True):
    """The call that is due: begin it with the saga's name and, for a compensation, with `compensates`.

    `key` is the saga's effect that it is about. The other members are those of a begin.
    """

    purpose: Purpose
    key: EffectKey
    tool: ToolName
    arguments: dict[str, object]
    run: RunName | None
    step: str | None
    business_key: BusinessKey | None
    occurrence: Occurrence

    @property
    def compensates(self) -> EffectKey | None:
        """What the begin says that it takes back."""
        return self.key if self.purpose == "compensate" else None


class SagaWait(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the way, and when to ask again."""

    key: EffectKey
    why: str
    retry_after_seconds: float


class NextAnswer(SagaSummary, frozen=True, kw_only=True):
    """What a saga needs next: a call that is `due`, or a while until it is known; neither where there is no more."""

    due: SagaMove | None = None
    waits: SagaWait | None = None
    uncompensated: tuple[str, ...] = ()


class SagaView(SagaSummary, frozen=True, kw_only=True):
    """A saga with its steps, in the order in which they were enlisted, and what it waits for."""

    steps: tuple[SagaStepView, ...]
    due: SagaMove | None = None
    waits: SagaWait | None = None


class SagaPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of sagas, newest first."""

    items: tuple[SagaSummary, ...]
    next: str | None
