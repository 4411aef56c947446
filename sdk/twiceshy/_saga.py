"""A saga around calls: its steps are all done, or taken back one after the other."""

from types import TracebackType
from typing import Final, Literal, Self, get_args

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._environment import Environment
from twiceshy._options import require_seconds
from twiceshy._replaying import active_replay
from twiceshy._replies import Unanswered
from twiceshy._run import Run, current_run, enter_saga, leave_saga
from twiceshy._saga_drive import run, run_async
from twiceshy._saga_recovery import Asking, Recovery, SagaReport, posted, recovering
from twiceshy._said import ended, note, said
from twiceshy._steps import Flow
from twiceshy._transports.base import Request
from twiceshy._wording import in_words
from twiceshy.exceptions import (
    EffectRef,
    GuardUnavailable,
    InProgress,
    OutcomeError,
    OutcomeInDoubt,
    RequestRefused,
    RetryLater,
    RunSuspended,
    SagaOver,
    SetupError,
    SiblingInDoubt,
)
from twiceshy_contract.names import RunName
from twiceshy_contract.problems import Problem
from twiceshy_contract.sagas import FailSagaRequest, OpenSagaRequest, SagaSummary
from twiceshy_contract.variables import did_you_mean

OnFailure = Literal["compensate", "forward"]

_PASSING: Final = (GuardUnavailable, InProgress, RetryLater, OutcomeInDoubt, OutcomeError, SiblingInDoubt)
"""Errors that fail no saga: nobody knows yet, or another process is at it; the same block goes on later."""
_SUMMARY: Final = msgspec.json.Decoder(SagaSummary)
_ANY: Final = msgspec.json.Decoder(dict[str, object])
_LONGEST_REASON: Final = 2000


class Saga:
    """Steps that are all done, or taken back. Use it as `with` or `async with`; the calls inside are its steps.

    A block that is run again under the same name answers the steps that were done from the record and goes on. One
    inside of a block of the same saga joins it: only the outermost block completes or fails the saga.
    """

    def __init__(
        self,
        environment: Environment,
        name: str,
        *,
        deadline_seconds: float | None,
        on_failure: OnFailure,
        wait_seconds: float,
    ) -> None:
        try:
            self.name: str = msgspec.convert(name, RunName)
        except msgspec.ValidationError as error:
            raise SetupError(f"The saga's name {name!r} cannot be taken: {in_words(error)}. Choose another.") from error
        if on_failure not in get_args(OnFailure):
            known = get_args(OnFailure)
            choice = ", ".join(map(repr, known))
            hint = did_you_mean(str(on_failure), known)
            raise SetupError(f"Saga {name}: on_failure is {on_failure!r}{hint} The choice is {choice}.")
        require_seconds(f"Saga {name}", wait_seconds=wait_seconds)
        if deadline_seconds is not None:
            require_seconds(f"Saga {name}", deadline_seconds=deadline_seconds)
        self._environment = environment
        self._deadline_seconds = deadline_seconds
        self._on_failure = on_failure
        self._wait_seconds = wait_seconds

    def __enter__(self) -> Self:
        if active_replay() is None:
            self._enter(run(self._environment, self._opening(may_await=False)))
        else:
            self._enter(self._around())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not leave_saga(self._environment, self.name) and active_replay() is None:
            run(self._environment, self._leaving(error, may_await=False))

    async def __aenter__(self) -> Self:
        if active_replay() is None:
            self._enter(await run_async(self._environment, self._opening(may_await=True)))
        else:
            self._enter(self._around())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not leave_saga(self._environment, self.name) and active_replay() is None:
            await run_async(self._environment, self._leaving(error, may_await=True))

    def _enter(self, run: Run) -> None:
        enter_saga(self._environment, run, self.name)

    def _around(self) -> Run:
        return current_run(self._environment) or Run(self._environment, self.name)

    def _opening(self, *, may_await: bool) -> Recovery[Run]:
        """Open the saga. One that is being taken back is taken back further, and refuses the block."""
        around = self._around()
        answer = yield Asking(_opened(self._environment, self.name, around.name, self._deadline_seconds))
        if not isinstance(answer, Answered):
            raise self._refused("was not opened", answer)
        found: SagaSummary = answer.value
        self.name = found.saga
        if found.state in ("running", "completed"):
            return around
        yield from self._over(may_await=may_await)
        return around

    def _leaving(self, error: BaseException | None, *, may_await: bool) -> Recovery[None]:
        """Complete the saga, or fail it and take it back; the error says what became of it."""
        if error is None:
            answer = yield Asking(posted(self._environment, self.name, "complete", _ANY))
            if isinstance(answer, Problem) and answer.code == "saga-over":
                yield from self._over(may_await=may_await)
            if not isinstance(answer, Answered):
                raise self._unfinished(answer) or self._refused("is not completed", answer)
        elif self._on_failure == "compensate" and is_failure(error):
            body = msgspec.json.encode(FailSagaRequest(reason=_reason(error)))
            answer = yield Asking(posted(self._environment, self.name, "fail", _ANY, body))
            if isinstance(answer, Answered):
                report = yield from self._recovering(may_await=may_await)
                note(error, f"twiceshy: {ended(str(report))}")
            else:
                why = answer.detail if isinstance(answer, Problem) else f"the service is silent: {answer.reason}"
                note(error, f"twiceshy: saga {self.name} is not taken back: {ended(why)}")

    def _over(self, *, may_await: bool) -> Recovery[None]:
        """Go on taking the saga back, and refuse the block."""
        report = yield from self._recovering(may_await=may_await)
        why = f" ({report.reason.rstrip('.')})" if report.reason else ""
        raise SagaOver(
            f"{ended(str(report)[0].upper() + str(report)[1:])} It failed before{why} and takes no steps any more. "
            "Try again under another name.",
            effect=EffectRef(tool=self.name),
        )

    def _recovering(self, *, may_await: bool) -> Recovery[SagaReport]:
        return recovering(self._environment, self.name, wait_seconds=self._wait_seconds, may_await=may_await)

    def _unfinished(self, answer: Problem | Unanswered) -> InProgress | RetryLater | RunSuspended | None:
        """Return what the block ends with where a step of it is under way, in doubt or may still be tried."""
        if not isinstance(answer, Problem) or answer.key is None:
            return None
        step = EffectRef(tool=answer.tool or self.name, key=answer.key, run=answer.run)
        told, again = f"The saga {self.name} runs on: {answer.detail}", answer.retry_after_seconds
        match answer.state:
            case "executing":
                return InProgress(told, effect=step, retry_after=again)
            case "in_doubt":
                return RunSuspended(told, effect=step)
            case _:
                return RetryLater(told, effect=step, retry_after=again or 0.0)

    def _refused(self, what: str, answer: Problem | Unanswered) -> GuardUnavailable | RequestRefused:
        reference = EffectRef(tool=self.name)
        if isinstance(answer, Problem):
            return RequestRefused(f"The saga {self.name} {what}: {answer.detail}", effect=reference, code=answer.code)
        return GuardUnavailable(
            f"The saga {self.name} {what}: the guard's service at {self._environment.url} gives no answer "
            f"({answer.reason}). Run the block again later; what was done is answered from the record.",
            effect=reference,
        )


def is_failure(error: BaseException) -> bool:
    """Say whether an error that leaves the block fails its saga for good: a group does where one of its errors does.

    What else is in it changes nothing: a refusal stays one, and doubt beside it is settled on the way back.
    """
    if isinstance(error, BaseExceptionGroup):
        return any(is_failure(inner) for inner in error.exceptions)
    return isinstance(error, Exception) and not isinstance(error, _PASSING)


def _opened(
    environment: Environment, saga: str, around: str, deadline_seconds: float | None
) -> Flow[Answered[SagaSummary] | Problem | Unanswered]:
    asked = OpenSagaRequest(saga=saga, run=around, deadline_seconds=deadline_seconds)
    body, token = msgspec.json.encode(asked), environment.credential_of(around)
    request = Request(method="POST", path="/v1/sagas", body=body, token=token)
    until = environment.clock() + environment.limits.unavailable_seconds
    return (yield from ask(environment, request, _SUMMARY, until=until))


def _reason(error: BaseException) -> str:
    return said(error).replace("\x00", "")[:_LONGEST_REASON] or "it failed"
