"""Recovery: what a saga that failed needs is asked for, done, and asked for again, until nothing is left.

It is a generator without I/O: it yields what is to be asked, called or waited for, and is sent what that came to. The
service decides what is due; each call is an effect of its own, so that whoever else does the same does no harm.
"""

from collections.abc import Generator
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._calls import CallKeys, ToolCall
from twiceshy._environment import Environment
from twiceshy._replies import Unanswered
from twiceshy._restore import Misfit
from twiceshy._saga_doubts import find_out_step
from twiceshy._said import clean, said
from twiceshy._steps import Flow, Returned
from twiceshy._transports.base import Request
from twiceshy.exceptions import ApprovalAwaited, RequestRefused, ToolArgumentError
from twiceshy_contract.problems import Problem
from twiceshy_contract.sagas import NextAnswer, ReportStepRequest, SagaMove, SagaState

T = TypeVar("T")
_NEXT: Final = msgspec.json.Decoder(NextAnswer)
_ANY: Final = msgspec.json.Decoder(dict[str, object])
_LONGEST_REASON: Final = 2000
_MOST_REPEATS: Final = 10
"""How often one call may be due in a row, whatever it comes to."""


class SagaReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a saga that failed: the tools that took its steps back here, and what is left to be done.

    `state` is None where the service gave no answer. `left` is empty once it is compensated. `uncompensated` names
    steps that were done and whose tools have no compensation.
    """

    saga: str
    state: SagaState | None
    reason: str | None = None
    taken_back: tuple[str, ...] = ()
    uncompensated: tuple[str, ...] = ()
    left: str = ""

    def __str__(self) -> str:
        by = f"taken back with {', '.join(self.taken_back)}" if self.taken_back else ""
        if self.left:
            return f"saga {self.saga} is not taken back yet{by and f' ({by} so far)'}: {self.left}"
        done = [by, *(f"{step} cannot be taken back" for step in self.uncompensated)]
        told = "; ".join(part for part in done if part)
        return f"saga {self.saga} is {self.state}{told and f': {told}'}"


class Asking(msgspec.Struct, frozen=True):
    """Drive a flow; sent back is what it returns."""

    flow: Flow[Any]


class Calling(msgspec.Struct, frozen=True):
    """Make a guarded call; sent back is Returned or Raised."""

    call: ToolCall
    is_async: bool


class Waiting(msgspec.Struct, frozen=True):
    """Let seconds pass."""

    seconds: float


Recovery: TypeAlias = Generator[Asking | Calling | Waiting, Any, T]


def recovering(environment: Environment, saga: str, *, wait_seconds: float, may_await: bool) -> Recovery[SagaReport]:
    """Take a saga back as far as this process can. Where something stands in the way, wait so long for it."""
    taken_back: list[str] = []
    tried: dict[str, str] = {}
    last: SagaMove | None = None
    repeats = 0
    until = environment.clock() + wait_seconds
    while True:
        answer = yield Asking(posted(environment, saga, "next", _NEXT))
        if not isinstance(answer, Answered):
            return SagaReport(saga=saga, state=None, taken_back=tuple(taken_back), left=_unanswered(answer))
        found: NextAnswer = answer.value
        if found.due is not None:
            repeats = repeats + 1 if found.due == last else 0
            last = found.due
            if repeats == _MOST_REPEATS:
                return _report(found, taken_back, f"{last.tool} was called {repeats} times and is due still")
            made = yield from _made(environment, saga, last, may_await=may_await)
            if isinstance(made, str):
                return _report(found, taken_back, made)
            if made and last.purpose == "compensate":
                taken_back.append(last.tool)
            until = environment.clock() + wait_seconds
        elif found.waits is None:
            return _report(found, taken_back, "")
        elif environment.probes and found.waits.why not in tried:
            step = found.waits.key
            asked = yield Asking(find_out_step(environment, _path(saga), step, deadline=until, may_await=may_await))
            tried[found.waits.why] = asked.unproven
            taken_back.extend(asked.taken_back)
        else:
            now, why = environment.clock(), f"{found.waits.why}{tried.get(found.waits.why, '')}"
            if found.state == "stuck" or now >= until:
                return _report(found, taken_back, why)
            yield Waiting(min(found.waits.retry_after_seconds, until - now))


class Unfit(msgspec.Struct, frozen=True):
    """The call that is due does not fit the tool, however often it is tried."""

    why: str


def _made(environment: Environment, saga: str, move: SagaMove, *, may_await: bool) -> Recovery[str | bool]:
    """Make the call that is due, and say whether it returned; or say why no call can be made now.

    The service hears of a call that does not fit.
    """
    made = yield from _tried(environment, saga, move, may_await=may_await)
    if not isinstance(made, Unfit):
        return made
    yield Asking(_told(environment, saga, move, made.why))
    return made.why


def _tried(environment: Environment, saga: str, move: SagaMove, *, may_await: bool) -> Recovery[str | Unfit | bool]:
    call = _call(environment, saga, move, may_await=may_await)
    if not isinstance(call, ToolCall):
        return call
    outcome = yield Calling(call, is_async=environment.tools[move.tool].is_async)
    if isinstance(outcome, Returned):
        return True
    if isinstance(outcome.error, ApprovalAwaited):
        return f"{move.tool} waits for a person: {said(outcome.error)}"
    if isinstance(outcome.error, ToolArgumentError) or _is_refused(outcome.error):
        return Unfit(f"the call of {move.tool} that is due cannot be made: {said(outcome.error)}")
    return False


def _is_refused(error: BaseException) -> bool:
    return isinstance(error, RequestRefused) and error.code in ("invalid-request", "arguments-changed")


def _told(environment: Environment, saga: str, move: SagaMove, why: str) -> Flow[Any]:
    """Tell the service that a call does not fit, so that a person hears of it."""
    body = msgspec.json.encode(ReportStepRequest(reason=clean(why).replace("\x00", "")[:_LONGEST_REASON]))
    return posted(environment, saga, f"steps/{move.key}/report", _ANY, body)


def posted(
    environment: Environment, saga: str, verb: str, decoder: msgspec.json.Decoder[T], body: bytes | None = None
) -> Flow[Answered[T] | Problem | Unanswered]:
    """Post to a saga until the service answers."""
    request = Request(method="POST", path=f"{_path(saga)}/{verb}", body=body)
    return (yield from ask(environment, request, decoder, until=_patience(environment)))


def _path(saga: str) -> str:
    return f"/v1/sagas/{quote(saga, safe='')}"


def _patience(environment: Environment) -> float:
    return environment.clock() + environment.limits.unavailable_seconds


def _unanswered(answer: Problem | Unanswered) -> str:
    return answer.detail if isinstance(answer, Problem) else f"the service gives no answer ({answer.reason})"


def _report(found: NextAnswer, taken_back: list[str], left: str) -> SagaReport:
    return SagaReport(
        saga=found.saga,
        state=found.state,
        reason=found.reason,
        taken_back=tuple(taken_back),
        uncompensated=found.uncompensated,
        left=left,
    )


def _call(environment: Environment, saga: str, move: SagaMove, *, may_await: bool) -> ToolCall | Unfit | str:
    """Make the call that is due, or say why it cannot be made here."""
    known = environment.tools.get(move.tool)
    if known is None:
        return f"this process has no tool {move.tool}; a process that has it goes on"
    if known.is_async and not may_await:
        return f"{move.tool} is an `async def` function: use `async with guard.saga(...)`"
    try:
        bound = known.spec.signature.made(move.arguments)
    except Misfit as misfit:
        return Unfit(f"the call of {move.tool} that is due does not fit it: {misfit}")
    return ToolCall(
        spec=known.spec,
        function=known.function,
        bound=bound,
        written=move.arguments,
        run=move.run,
        keys=CallKeys(business_key=move.business_key, step=move.step, occurrence=move.occurrence),
        saga=saga,
        compensates=move.compensates,
        writer=environment.recorder.writer_of(move.run),
    )
