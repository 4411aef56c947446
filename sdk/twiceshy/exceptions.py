"""Every error of the SDK. None of them means that a tool ran twice.

    GuardError
    ├── SetupError                     the guard, a tool or a run is declared wrongly
    ├── ToolArgumentError              (also a TypeError) arguments that cannot be taken; nothing began
    ├── NoRun                          a call outside a run and without a business key
    ├── NoEffect                       current_effect() outside a guarded tool
    └── EffectError                    about one effect: `effect` names it, `key` is its key
        ├── BeginError                 the service did not let the tool run
        │   ├── GuardUnavailable       no answer: the guard fails closed
        │   ├── InProgress             another attempt holds the lease
        │   ├── RetryLater             not before a moment that is too far away
        │   ├── AttemptsExhausted      tried as often as the tool allows
        │   ├── ArgumentsChanged       the step or business key was used with other arguments
        │   ├── KeyUsedByAnotherTool   the business key belongs to another tool
        │   ├── RunFinished            the run takes no new effects
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

    RunSuspended (BaseException)       doubt ends the run until someone settles it; `except Exception` lets it pass

A class's docstring is its default message.
"""

import inspect
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from twiceshy._said import kind_of
from twiceshy._seconds import seconds_of

_log: Final = logging.getLogger("twiceshy")


class EffectRef(msgspec.Struct, frozen=True, kw_only=True):
    """Name the effect that an error is about, as far as it is known."""

    tool: str
    key: str | None = None
    run: str | None = None
    attempt: UUID | None = None
    fence: int | None = None


class _Portable(BaseException):
    """An exception that survives pickling whatever its constructor asks for, as process pools need it."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[BaseException], args: tuple[object, ...], state: dict[str, object]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class GuardError(_Portable, Exception):
    """The guard could not do its work."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or ""))


class EffectError(GuardError):
    """Something about one effect went wrong."""

    def __init__(self, message: str = "", *, effect: EffectRef) -> None:
        super().__init__(message)
        self.effect = effect

    @property
    def key(self) -> str | None:
        """The effect's key, where the service has named it."""
        return self.effect.key


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

    A thread that the tool started itself does not see it; hand the effect over as an argument.
    """


class BeginError(EffectError):
    """The service did not let the tool run."""


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


class ReportedOutcome(_Portable, Exception):
    """A tool says what happened."""


class NotApplied(ReportedOutcome):
    """Nothing was applied; the effect may be tried again, after `retry_after` where given.

    That is a number of seconds or a timedelta; the attribute holds seconds. What is neither is ignored with a
    warning, so that the outcome is still told.
    """

    def __init__(self, message: str = "", *, retry_after: float | timedelta | None = None) -> None:
        super().__init__(message or "nothing was applied")
        self.retry_after: float | None = seconds_of(retry_after)


class Rejected(ReportedOutcome):
    """The other side refused for good. Replays raise it again, with the recorded `type` and `data`.

    A `type` that is no text is ignored with a warning, so that the outcome is still told.
    """

    def __init__(
        self,
        message: str = "",
        *,
        data: object = None,
        type: str | None = None,  # noqa: A002 - the wire's word
    ) -> None:
        super().__init__(message or "the effect was rejected")
        self.data = data
        if type is not None and not isinstance(type, str):
            _log.warning("The type of a rejection is ignored: it is a %s and must be a text.", kind_of(type))
            type = None  # noqa: A001 - the wire's word
        self.type: str = type or "Rejected"


class RunSuspended(_Portable):
    """Nobody knows whether the effect happened: the run stops here until someone settles it.

    It is not an Exception, so that no `except Exception` in an agent's loop tries another way round.
    """

    def __init__(self, message: str = "", *, effect: EffectRef) -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or ""))
        self.effect = effect

    @property
    def key(self) -> str | None:
        """The effect's key."""
        return self.effect.key
