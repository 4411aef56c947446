"""What the rules around an effect answer a begin: other runs, approvals, resources, sagas, forks."""

from uuid import UUID

from twiceshy._base_errors import BeginError, EffectRef, RunSuspended


class ClaimedByAnother(BeginError):
    """Another run has done this, and the tool does not share its answers between runs; it did not run here.

    `result` is what the other run got, `run` its name and `step` the step there. To take such answers as your own,
    declare the tool with `share=True`.
    """

    def __init__(
        self,
        message: str = "",
        *,
        effect: EffectRef,
        result: object = None,
        run: str | None = None,
        step: int | None = None,
    ) -> None:
        super().__init__(message, effect=effect)
        self.result = result
        self.run = run
        self.step = step


class RecordExpired(BeginError):
    """It was done, or refused, so long ago that only its digests are kept; the tool did not run."""


class SiblingInDoubt(BeginError):
    """A call of the same tool with other arguments is in doubt, and may be this one in other words; it did not run.

    Settle the doubt, declare which arguments name a call, or call `with_key(distinct=True)`.
    """


class LoopLimitReached(BeginError):
    """The run asks for the same thing over and over; the tool did not run."""


class ApprovalDenied(BeginError):
    """A person has denied the call; it did not run, and the same call is not asked for again.

    `reason` is what the person said, `by` who it was.
    """

    def __init__(
        self, message: str = "", *, effect: EffectRef, reason: str | None = None, by: str | None = None
    ) -> None:
        super().__init__(message, effect=effect)
        self.reason = reason
        self.by = by


class ApprovalExpired(BeginError):
    """Nobody decided in time; the tool did not run. Call `with_key(reopen=True)` to ask anew."""


class ResourceHeld(BeginError):
    """The resource is held for an interval that overlaps; the tool did not run. Choose another time."""


class HoldLost(BeginError):
    """A higher priority has taken the hold; the tool did not run."""


class SagaOver(BeginError):
    """The saga takes no such step any more; the tool did not run."""


class PolicyDenied(BeginError):
    """The rules of the registry or of a fork forbid the call; the tool did not run."""


class ApprovalAwaited(RunSuspended):
    """A person must decide before the tool runs: the run stops here. Run it again once that is done."""

    def __init__(self, message: str = "", *, effect: EffectRef, approval: UUID | None = None) -> None:
        super().__init__(message, effect=effect)
        self.approval = approval


class ForkSuspended(RunSuspended):
    """The fork stops at a call that may not run live and has no record and no simulator.

    `pause` is the key by which a person answers the call; None where there is nothing to answer.
    """

    def __init__(self, message: str = "", *, effect: EffectRef, pause: str | None = None) -> None:
        super().__init__(message, effect=effect)
        self.pause = pause
