"""Every error of the SDK. None of them means that a tool ran twice.

    GuardError
    ├── SetupError                     the guard, a tool or a run is declared wrongly
    ├── ToolArgumentError              (also a TypeError) arguments that cannot be taken; nothing began
    ├── NoRun                          a call outside a run and without a business key
    ├── NoEffect                       current_effect() outside a guarded tool
    ├── MessageRefused                 (also a ValueError) what cannot be staged; says where and why
    ├── RecordingRefused               a file of recordings cannot be taken; says where and why
    └── EffectError                    about one effect: `effect` names it, `key` is its key
        ├── BeginError                 the service did not let the tool run
        │   ├── GuardUnavailable       no answer: the guard fails closed
        │   ├── InProgress             another attempt holds the lease
        │   ├── RetryLater             not before a moment that is too far away
        │   ├── AttemptsExhausted      tried as often as the tool allows
        │   ├── ArgumentsChanged       the step or business key was used with other arguments
        │   ├── KeyUsedByAnotherTool   the business key belongs to another tool
        │   ├── RunFinished            the run takes no new effects
        │   ├── ClaimedByAnother       another run has done it: `result` is what it got
        │   ├── RecordExpired          it happened so long ago that only its digests are kept
        │   ├── SiblingInDoubt         a call in other words is in doubt, and may be this one
        │   ├── LoopLimitReached       the run asks for the same thing over and over
        │   ├── ApprovalDenied         a person has said no
        │   ├── ApprovalExpired        nobody has decided in time
        │   ├── ResourceHeld           the resource is held for an interval that overlaps
        │   ├── HoldLost               a higher priority has taken the hold
        │   ├── SagaOver               the saga takes no such step any more
        │   ├── PolicyDenied           the rules of the registry or of a fork forbid it
        │   ├── RunTakenOver           another process records the run now
        │   ├── RecordingDiverged      the run's log is not the one that was written here
        │   └── RequestRefused         the service refused the request itself
        ├── OutcomeInDoubt             nobody knows whether it happened (with on_doubt="tell")
        ├── OutcomeError               the tool ran, its outcome did not reach the record as usual
        │   ├── LeaseLost              the lease ended while the tool ran
        │   ├── Superseded             another attempt settled the effect meanwhile
        │   └── OutcomeNotDelivered    the service could not be told, and no spool has it
        └── RecordError                the record cannot be given back
            ├── ResultNotKept          it was too large or not writable as JSON
            └── RecordMismatch         it does not fit the tool's annotations

    ReportedOutcome                    what a tool raises to say what happened
    ├── NotApplied                     nothing happened; it may be tried again
    └── Rejected                       it was refused for good; replays raise it again

    RecordedError                      an error out of a recording whose type this process does not know

    RunSuspended (BaseException)       doubt ends the run until someone settles it; `except Exception` lets it pass
    ├── ApprovalAwaited                a person must decide first
    └── ForkSuspended                  the fork stops at a call that may not run live

    ReplayStopped (BaseException)      a replay ends the code here; `except Exception` lets it pass
    ├── ReplayDiverged                 the code does something else than the record has
    ├── ReplayIncomplete               the record ends before the code does
    └── ReplayPaused                   the event that was asked for is reached

A class's docstring is its default message.
"""

from collections.abc import Sequence

from twiceshy._base_errors import BeginError, EffectError, EffectRef, GuardError, RunSuspended
from twiceshy._policy_errors import (
    ApprovalAwaited,
    ApprovalDenied,
    ApprovalExpired,
    ClaimedByAnother,
    ForkSuspended,
    HoldLost,
    LoopLimitReached,
    PolicyDenied,
    RecordExpired,
    ResourceHeld,
    SagaOver,
    SiblingInDoubt,
)
from twiceshy._recording_errors import RecordedError, RecordingDiverged, RunTakenOver
from twiceshy._replay_errors import ReplayDiverged, ReplayIncomplete, ReplayPaused, ReplayStopped
from twiceshy._reported import NotApplied, Rejected, ReportedOutcome

__all__ = [
    "ApprovalAwaited",
    "ApprovalDenied",
    "ApprovalExpired",
    "ArgumentsChanged",
    "AttemptsExhausted",
    "BeginError",
    "ClaimedByAnother",
    "EffectError",
    "EffectRef",
    "ForkSuspended",
    "GuardError",
    "GuardUnavailable",
    "HoldLost",
    "InProgress",
    "KeyUsedByAnotherTool",
    "LeaseLost",
    "LoopLimitReached",
    "MessageRefused",
    "NoEffect",
    "NoRun",
    "NotApplied",
    "OutcomeError",
    "OutcomeInDoubt",
    "OutcomeNotDelivered",
    "PolicyDenied",
    "RecordError",
    "RecordExpired",
    "RecordMismatch",
    "RecordedError",
    "RecordingDiverged",
    "RecordingRefused",
    "Rejected",
    "ReplayDiverged",
    "ReplayIncomplete",
    "ReplayPaused",
    "ReplayStopped",
    "ReportedOutcome",
    "RequestRefused",
    "ResourceHeld",
    "ResultNotKept",
    "RetryLater",
    "RunFinished",
    "RunSuspended",
    "RunTakenOver",
    "SagaOver",
    "SetupError",
    "SiblingInDoubt",
    "Superseded",
    "ToolArgumentError",
]


class SetupError(GuardError):
    """The guard or a tool is set up in a way that cannot work; correct the declaration."""


class ToolArgumentError(GuardError, TypeError):
    """The tool's arguments cannot be taken; nothing began. Correct the call."""

    def __init__(self, message: str = "", *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class NoRun(GuardError):
    """The call names no run, so nothing says which calls are the same.

    Do one of three things: call the tool inside `with guard.run("name"):`; or pass `business_key=...`; or, in a
    thread of your own, start it with `contextvars.copy_context().run` or `asyncio.to_thread`, because a plain
    thread does not see the run around it.
    """


class NoEffect(GuardError):
    """There is no current effect here: call current_effect() inside a tool that the guard runs.

    A tool that only reads (effect="read") has none: nothing is recorded that a message could go with. A thread that the
    tool started itself does not see it; hand the effect over as an argument.
    """


class MessageRefused(GuardError, ValueError):
    """The message cannot be staged; nothing was staged. Correct it. `path` is the place in it, as a JSON Pointer."""

    def __init__(self, message: str = "", *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class RecordingRefused(GuardError):
    """The recording cannot be taken. Export the run again.

    `file` and `line` say where, `reason` what is wrong there.
    """

    def __init__(
        self, message: str = "", *, file: str | None = None, line: int | None = None, reason: str = ""
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.reason = reason


class GuardUnavailable(BeginError):
    """The guard's service gives no answer, so the tool did not run. Start the service, or try again later."""


class InProgress(BeginError):
    """Another attempt is executing this effect, and the time to wait for it is used up. Call again later."""

    def __init__(self, message: str = "", *, effect: EffectRef, retry_after: float | None = None) -> None:
        super().__init__(message, effect=effect)
        self.retry_after = retry_after


class RetryLater(BeginError):
    """The effect did not happen and may be tried again, but not yet. Call again after `retry_after` seconds."""

    def __init__(self, message: str = "", *, effect: EffectRef, retry_after: float) -> None:
        super().__init__(message, effect=effect)
        self.retry_after = retry_after


class AttemptsExhausted(BeginError):
    """The effect was tried as often as its tool allows. Find the cause, then call `with_key(reopen=True)`."""


class ArgumentsChanged(BeginError):
    """The step or business key was used with other arguments; the tool did not run.

    Send the first call's arguments, or another step, business key or occurrence.
    """

    def __init__(self, message: str = "", *, effect: EffectRef, paths: Sequence[str] = ()) -> None:
        super().__init__(message, effect=effect)
        self.paths = tuple(paths)


class KeyUsedByAnotherTool(BeginError):
    """The business key belongs to another tool; the tool did not run. Put the tool's name into the key."""


class RunFinished(BeginError):
    """The run is finished and takes no new effects. Open a run with another name."""


class RequestRefused(BeginError):
    """The service refused the request; the tool did not run."""

    def __init__(
        self, message: str = "", *, effect: EffectRef, code: str, errors: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message, effect=effect)
        self.code = code
        self.errors = tuple(errors)


class OutcomeInDoubt(EffectError):
    """Nobody knows whether the effect happened. Do not retry; find out at the provider and settle it."""


class OutcomeError(EffectError):
    """The tool ran, but its outcome did not reach the record as usual.

    `has_result` says whether the tool returned; `result` is what it returned.
    """

    def __init__(
        self, message: str = "", *, effect: EffectRef, result: object = None, has_result: bool = False
    ) -> None:
        super().__init__(message, effect=effect)
        self.result = result
        self.has_result = has_result


class LeaseLost(OutcomeError):
    """The lease ended while the tool ran. Do not act again: call the tool again and obey the answer."""


class Superseded(OutcomeError):
    """Another attempt settled the effect meanwhile. Call the tool again to read the record."""


class OutcomeNotDelivered(OutcomeError):
    """The service could not be told what the tool did, and no spool has it. Save its data and settle it by hand."""


class RecordError(EffectError):
    """The effect happened, but its record cannot be given back."""


class ResultNotKept(RecordError):
    """The effect happened, but its result was not kept. Look it up at the provider."""


class RecordMismatch(RecordError):
    """The record does not fit the tool's annotations. Take back the change of the annotation or the tool."""


for _name in __all__:  # a traceback names the door, and pickles find it there
    globals()[_name].__module__ = __name__
