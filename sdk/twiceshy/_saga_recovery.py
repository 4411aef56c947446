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
from twiceshy._said import said
from twiceshy._steps import Flow, Returned
from twiceshy._transports.base import Request
from twiceshy.exceptions import ApprovalAwaited
from twiceshy_contract.problems import Problem
from twiceshy_contract.sagas import NextAnswer, SagaMove, SagaState

T = TypeVar("T")
_NEXT: Final = msgspec.json.Decoder(NextAnswer)
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
        else:
            now = environment.clock()
            if found.waits is None or found.state == "stuck" or now >= until:
                return _report(found, taken_back, "" if found.waits is None else found.waits.why)
            yield Waiting(min(found.waits.retry_after_seconds, until - now))


def _made(environment: Environment, saga: str, move: SagaMove, *, may_await: bool) -> Recovery[str | bool]:
    """Make the call that is due, and say whether it returned; or say why no call can be made now."""
    call = _call(environment, saga, move, may_await=may_await)
    if isinstance(call, str):
        return call
    outcome = yield Calling(call, is_async=environment.tools[move.tool].is_async)
    if isinstance(outcome, Returned):
        return True
    if isinstance(outcome.error, ApprovalAwaited):
        return f"{move.tool} waits for a person: {said(outcome.error)}"
    return False


def posted(
    environment: Environment, saga: str, verb: str, decoder: msgspec.json.Decoder[T], body: bytes | None = None
) -> Flow[Answered[T] | Problem | Unanswered]:
    """Post to a saga until the service answers."""
    path = f"/v1/sagas/{quote(saga, safe='')}/{verb}"
    request = Request(method="POST", path=path, body=body)
    return (yield from ask(environment, request, decoder, until=_patience(environment)))


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


def _call(environment: Environment, saga: str, move: SagaMove, *, may_await: bool) -> ToolCall | str:
    """Make the call that is due, or say why it cannot be made here."""
    known = environment.tools.get(move.tool)
    if known is None:
        return f"this process has no tool {move.tool}; a process that has it goes on"
    if known.is_async and not may_await:
        return f"{move.tool} is an `async def` function: use `async with guard.saga(...)`"
    try:
        bound = known.spec.signature.made(move.arguments)
    except Misfit as misfit:
        return f"the call of {move.tool} that is due does not fit it: {misfit}"
    return ToolCall(
        spec=known.spec,
        function=known.function,
        bound=bound,
        written=move.arguments,
        run=move.run,
        keys=CallKeys(business_key=move.business_key, step=move.step, occurrence=move.occurrence),
        saga=saga,
        compensates=move.compensates,
    )
