"""Begin: ask for the right to run a tool once, and go on asking while that is safe.

Nothing here lets a tool run but an `execute` answer whose lease, counted from before the request, still lasts.
"""

import logging
from typing import Final, NoReturn
from urllib.parse import quote
from uuid import uuid4

import msgspec

from twiceshy._answers import Begun, DeclaredTool, Execute, Replay
from twiceshy._ask import Answered, ask
from twiceshy._calls import ToolCall, request
from twiceshy._doubt import in_doubt
from twiceshy._effect import CurrentEffect
from twiceshy._environment import Environment
from twiceshy._lease import Lease
from twiceshy._options import STRICTNESS
from twiceshy._replies import Unanswered
from twiceshy._said import ended
from twiceshy._settings import is_database
from twiceshy._steps import Flow, send, sleep
from twiceshy._transports.base import Request
from twiceshy.exceptions import (
    ArgumentsChanged,
    AttemptsExhausted,
    EffectRef,
    GuardUnavailable,
    InProgress,
    KeyUsedByAnotherTool,
    RequestRefused,
    RetryLater,
    RunFinished,
)
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.names import EffectClass
from twiceshy_contract.problems import Problem

_LONGEST_HELD_WAIT = 30.0
_SHORTEST_PAUSE = 0.05
_RELEASE_SECONDS = 2.0
_log = logging.getLogger("twiceshy")


class Granted(msgspec.Struct, frozen=True):
    """The lease is held; `answer.arguments`, where not null, are the ones to run."""

    answer: Execute
    effect: CurrentEffect
    begin: BeginRequest


_TOOL: Final = msgspec.json.Decoder(DeclaredTool)
_BEGIN: Final[msgspec.json.Decoder[Begun]] = msgspec.json.Decoder(Begun)


def declare(environment: Environment, call: ToolCall) -> Flow[EffectClass]:
    """Declare the tool once a guard, and return its class: the stricter of the code's and the registry's."""
    spec = call.spec
    if spec.name in environment.classes:
        return environment.classes[spec.name]
    asked = Request(
        method="PUT", path=f"/v1/tools/{quote(spec.name, safe='')}", body=msgspec.json.encode(spec.declaration)
    )
    until = environment.clock() + environment.limits.unavailable_seconds
    answer = yield from ask(environment, asked, _TOOL, until=until)
    match answer:
        case Unanswered():
            raise _unavailable(environment, call.reference, answer.reason)
        case Problem():
            raise _refused(answer, call.reference)
        case Answered(view):
            return _registered(environment, call, view.declaration.class_)


def _registered(environment: Environment, call: ToolCall, registered: EffectClass) -> EffectClass:
    """Remember the stricter class, and say once where the registry's is the stricter one."""
    spec = call.spec
    ours = spec.rules.effect
    if STRICTNESS[registered] > STRICTNESS[ours]:
        _log.warning(
            "The registry holds %s as %s, its code says %s. The registry counts; correct the code or the registry.",
            spec.name, registered, ours,
        )  # fmt: skip
    environment.classes[spec.name] = max(registered, ours, key=lambda name: STRICTNESS[name])
    return environment.classes[spec.name]


def begin(environment: Environment, call: ToolCall, *, wait_until: float) -> Flow[Granted | Replay]:
    """Ask until the answer is a lease or a record; every other answer is raised."""
    asked = call.begin(uuid4(), environment.worker)
    while True:
        answer = yield from _ask_or_release(environment, call, asked)
        if isinstance(answer, Problem):
            asked = yield from _next_begin(environment, call, asked, answer, wait_until)
            continue
        environment.inner_doubts.pop(answer.value.key, None)
        if isinstance(answer.value, Replay):
            return answer.value
        lease = Lease.granted(answer.sent_at, answer.value.lease_seconds_left)
        if not lease.has_ended(environment.clock()):
            return Granted(answer.value, CurrentEffect(answer.value, lease, environment.clock), asked)
        yield from release(asked)
        if environment.clock() >= wait_until:
            raise _unavailable(environment, call.reference, "its answers take longer than the lease lasts")
        asked = call.begin(uuid4(), environment.worker)


def release(asked: BeginRequest) -> Flow[None]:
    """Tell the service that the tool never started; the answer does not matter."""
    body = msgspec.json.encode(asked)
    yield from send(Request(method="POST", path="/v1/effects/release", body=body, timeout_seconds=_RELEASE_SECONDS))


def _ask_or_release(environment: Environment, call: ToolCall, asked: BeginRequest) -> Flow[Answered[Begun] | Problem]:
    """Ask; whoever gives up, or is interrupted, says that the tool never started."""
    sent = request(asked)
    until = environment.clock() + asked.wait_seconds + environment.limits.unavailable_seconds
    try:
        answer = yield from ask(environment, sent, _BEGIN, until=until)
    except GeneratorExit:
        raise
    except BaseException:
        yield from release(asked)
        raise
    if isinstance(answer, Unanswered):
        yield from release(asked)
        raise _unavailable(environment, call.reference, answer.reason)
    return answer


def _next_begin(
    environment: Environment, call: ToolCall, asked: BeginRequest, problem: Problem, wait_until: float
) -> Flow[BeginRequest]:
    """Return the next begin where waiting helps; raise what the problem means where it does not."""
    reference = _refer(call, problem)
    left = wait_until - environment.clock()
    retry_after = problem.retry_after_seconds
    match problem.code:
        case "in-progress" if left <= 0:
            raise InProgress(_text(problem, reference), effect=reference, retry_after=retry_after)
        case "in-progress":
            yield from _pause_between_waits(environment, asked, left, retry_after)
            left = max(0.0, wait_until - environment.clock())
            return call.begin(asked.attempt, environment.worker, min(left, _LONGEST_HELD_WAIT))
        case "retry-later" if (retry_after or 0) > left:
            raise RetryLater(_text(problem, reference), effect=reference, retry_after=retry_after or 0)
        case "retry-later":
            yield from sleep(max(retry_after or 0, _SHORTEST_PAUSE))
            return call.begin(uuid4(), environment.worker)
        case "lease-lost" | "superseded" | "not-possible" if left > 0:
            yield from release(asked)
            yield from sleep(_SHORTEST_PAUSE)
            return call.begin(uuid4(), environment.worker)
        case _:
            _raise(environment, problem, reference, call)


def _pause_between_waits(
    environment: Environment, asked: BeginRequest, left: float, retry_after: float | None
) -> Flow[None]:
    """Pause where the service did not hold the request although it was asked to."""
    if asked.wait_seconds:
        pause = min(retry_after or _SHORTEST_PAUSE, 1.0) * (0.5 + environment.chance() / 2)
        yield from sleep(min(max(pause, _SHORTEST_PAUSE), left))


def _raise(environment: Environment, problem: Problem, reference: EffectRef, call: ToolCall) -> NoReturn:
    """Raise what a problem means. Its detail says what happened and what to do next."""
    text = _text(problem, reference)
    match problem.code:
        case "outcome-in-doubt":
            began_in = None if reference.key is None else environment.inner_doubts.get(reference.key)
            raise in_doubt(reference, text, call.spec.rules.on_doubt, began_in=began_in)
        case "attempts-exhausted":
            text = f"{text} Here that is {reference.tool}.with_key(reopen=True)(...)."
            raise AttemptsExhausted(text, effect=reference)
        case "arguments-changed":
            raise ArgumentsChanged(text, effect=reference, paths=problem.paths)
        case "key-used-by-another-tool":
            raise KeyUsedByAnotherTool(text, effect=reference)
        case "run-finished":
            raise RunFinished(text, effect=reference)
        case _:
            raise _refused(problem, reference)


def _refer(call: ToolCall, problem: Problem) -> EffectRef:
    """Name the effect that a problem is about."""
    return EffectRef(tool=call.spec.name, key=problem.key, run=call.run, fence=problem.fence)


def _refused(problem: Problem, reference: EffectRef) -> RequestRefused:
    places = "".join(f" At {error.path or 'the top'}: {error.message}." for error in problem.errors)
    return RequestRefused(
        _text(problem, reference) + places,
        effect=reference,
        code=problem.code,
        errors=[(error.path, error.message) for error in problem.errors],
    )


def _text(problem: Problem, reference: EffectRef) -> str:
    said = problem.detail or problem.title
    key = f" The effect is {reference.key}." if reference.key else ""
    return f"{reference.tool} did not run: {ended(said)}{key}"


def _unavailable(environment: Environment, reference: EffectRef, reason: str) -> GuardUnavailable:
    if is_database(environment.url):
        where, remedy = f"the guard embedded over {environment.url}", "See to the database, or call again later."
    else:
        where = f"the guard's service at {environment.url}"
        remedy = "Start it with `twiceshy serve`, correct TWICESHY_URL, or call again later."
    return GuardUnavailable(
        f"{reference.tool} did not run: {where} gives no answer ({reason}). {remedy}", effect=reference
    )
