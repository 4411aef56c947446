"""Find out: ask a tool's probe about a doubtful effect, and settle what it proves.

Word that nothing was applied is believed only once no request can be on its way any more, judged as of a moment before
the provider was asked. Until then the call waits, as long as it may, and asks again.
"""

import inspect
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from twiceshy._answers import Effect
from twiceshy._ask import Answered, ask
from twiceshy._binding import Bound
from twiceshy._encode import encode_result
from twiceshy._environment import Environment
from twiceshy._options import ToolSpec
from twiceshy._probes import Applied, DoubtfulEffect, Finding, NotFound, Probe, Unproven
from twiceshy._replies import Unanswered, is_about_the_body
from twiceshy._restore import Misfit, restore
from twiceshy._said import clean, said
from twiceshy._steps import Flow, Raised, RunProbe, pause, run_probe, sleep
from twiceshy._transports.base import Request
from twiceshy_contract.effects import ResolveRequest
from twiceshy_contract.names import PublicState
from twiceshy_contract.problems import Problem

_REDACTED: Final = "[redacted]"
_MOST_MOVES: Final = 3
_SHORTEST_PAUSE: Final = 0.05
_LONGEST_REASON: Final = 500


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Which effect, of which tool, called how: as it ran here, else as it is recorded.

    `own` is this call of the same intent, for what a record does not hold. `after` is what the tool has raised.
    """

    spec: ToolSpec
    key: str
    ran: Bound | None = None
    own: Bound | None = None
    after: BaseException | None = None


class Settled(msgspec.Struct, frozen=True):
    """It is known now: what became of it is on record, or nothing was applied and it may be tried again."""

    is_final: bool


class Early(msgspec.Struct, frozen=True):
    """The provider has nothing of it, and that is not believed for so many seconds yet."""

    seconds: float

    @property
    def reason(self) -> str:
        """The same in words."""
        return (
            "its probe found nothing, which is believed only once no request can be on its way: "
            f"{self.seconds:.3g} s from then"
        )


class Unknown(msgspec.Struct, frozen=True):
    """Nobody knows more than before."""

    reason: str


Found: TypeAlias = Settled | Early | Unknown


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """An effect as it was read."""

    key: str
    tool: str
    run: str | None
    step: int | None
    state: PublicState
    fence: int
    downstream_key: str
    arguments: dict[str, object]
    as_of: datetime
    settles_at: datetime | None

    @property
    def unsettled_seconds(self) -> float:
        """How long after this reading a request may still be on its way."""
        return 0.0 if self.settles_at is None else max(0.0, (self.settles_at - self.as_of).total_seconds())


_READ: Final = msgspec.json.Decoder(_Read)
_EFFECT: Final = msgspec.json.Decoder(Effect)


def find_out(environment: Environment, question: Question, *, deadline: float) -> Flow[Found]:
    """Ask the tool's probe, again where it came too early and there is time, and settle what it proves."""
    probe = environment.probes[question.spec.name]
    moves = 0
    while moves < _MOST_MOVES:
        read = yield from _read(environment, question)
        if not isinstance(read, _Read):
            return Unknown(f"its probe was not asked: {read}")
        if read.state != "in_doubt":
            return _moved(read.state)
        finding = yield from _asked(probe, question, read)
        match finding:
            case Applied() | NotFound() if isinstance(finding, Applied) or read.unsettled_seconds <= 0:
                settled = yield from _settled(environment, question, read, finding)
                if settled is not None:
                    return settled
                moves += 1
            case NotFound():
                wait = read.unsettled_seconds + _SHORTEST_PAUSE
                if environment.clock() + wait > deadline:
                    return Early(wait)
                yield from _waited(wait, question)
            case Unproven(reason):
                return Unknown(f"its probe was asked: {reason}")
    return Unknown("its probe was asked, and each time the effect had moved on meanwhile")


def _moved(state: PublicState) -> Found:
    match state:
        case "succeeded" | "failed":
            return Settled(is_final=True)
        case "pending":
            return Settled(is_final=False)
        case "executing" | "in_doubt":
            return Unknown("another attempt is under way")


def _read(environment: Environment, question: Question) -> Flow[_Read | str]:
    request = Request(method="GET", path=f"/v1/effects/{question.key}")
    until = environment.clock() + environment.limits.unavailable_seconds
    answer = yield from ask(environment, request, _READ, until=until)
    match answer:
        case Answered(value):
            return value
        case Problem(detail=reason) | Unanswered(reason=reason):
            return reason


def _asked(probe: Probe, question: Question, read: _Read) -> Flow[Finding]:
    bound = _bound(question, read)
    if isinstance(bound, Unproven):
        return bound
    effect = DoubtfulEffect(
        key=read.key,
        downstream_key=read.downstream_key,
        tool=read.tool,
        run=read.run,
        step=read.step,
        fence=read.fence,
    )
    call = probe.asked(effect, question.spec, bound)
    outcome = yield from run_probe(RunProbe(call, probe.is_async, probe.timeout_seconds))
    if isinstance(outcome, Raised):
        return Unproven(f"it raised {said(outcome.error)}")
    if isinstance(outcome.value, Applied):
        return _fitting(outcome.value, question.spec)
    if isinstance(outcome.value, (NotFound, Unproven)):
        return outcome.value
    if inspect.iscoroutine(outcome.value):
        outcome.value.close()
    return Unproven(f"it returned a {type(outcome.value).__name__}, and not Applied, NotFound or Unproven")


def _fitting(finding: Applied, spec: ToolSpec) -> Applied | Unproven:
    """Return the finding, unless no call could ever give its result back: then the probe is wrong, not the tool."""
    result = _encoded(finding)
    if result is msgspec.UNSET:
        return finding
    try:
        restore(result, spec.signature.returns)
    except Misfit as misfit:
        return Unproven(f"its result does not fit the tool's return annotation: {misfit}")
    return finding


def _encoded(finding: Applied) -> object:
    """Return the result as it is recorded; none where it cannot be: it was applied all the same."""
    if finding.result is msgspec.UNSET:
        return msgspec.UNSET
    try:
        return encode_result(finding.result, depth=2)
    except Exception:  # noqa: BLE001 - the result's own properties may raise anything
        return msgspec.UNSET


def _bound(question: Question, read: _Read) -> Bound | Unproven:
    """Return the arguments that the effect was sent with, as far as anybody knows them here."""
    if question.ran is not None:
        return question.ran
    if _REDACTED in msgspec.json.encode(read.arguments).decode():
        return question.own or Unproven("not possible here: its arguments are redacted in the record")
    try:
        return question.spec.signature.recorded(read.arguments)
    except Misfit as misfit:
        return Unproven(f"not possible: the recorded arguments do not fit the tool: {misfit}")


def _settled(
    environment: Environment, question: Question, read: _Read, finding: Applied | NotFound
) -> Flow[Found | None]:
    """Tell the service what the provider has said; a result that it cannot take is left out. None: it has moved on."""
    answer = yield from _resolved(environment, question, _resolution(question, read, finding))
    if isinstance(answer, Problem) and is_about_the_body(answer):
        answer = yield from _resolved(environment, question, _resolution(question, read, Applied()))
    match answer:
        case Answered():
            return Settled(is_final=isinstance(finding, Applied))
        case Problem(code="changed-since" | "superseded" | "not-possible"):
            return None
        case Problem(detail=reason) | Unanswered(reason=reason):
            return Unknown(f"its probe was asked, and the service could not be told: {reason}")


def _resolution(question: Question, read: _Read, finding: Applied | NotFound) -> ResolveRequest:
    word = "applied" if isinstance(finding, Applied) else "not applied"
    return ResolveRequest(
        as_="applied" if isinstance(finding, Applied) else "not_applied",
        fence=read.fence,
        reason=clean(f"the probe of {question.spec.name} says: {word}")[:_LONGEST_REASON],
        result=_encoded(finding) if isinstance(finding, Applied) else msgspec.UNSET,
        as_of=read.as_of,
    )


def _resolved(
    environment: Environment, question: Question, resolution: ResolveRequest
) -> Flow[Answered[Effect] | Problem | Unanswered]:
    body = msgspec.json.encode(resolution)
    request = Request(method="POST", path=f"/v1/effects/{question.key}/resolve", body=body)
    until = environment.clock() + environment.limits.deliver_seconds
    return (yield from ask(environment, request, _EFFECT, until=until))


def _waited(seconds: float, question: Question) -> Flow[None]:
    if question.after is None:
        yield from sleep(seconds)
    else:
        yield from pause(seconds, question.after)
