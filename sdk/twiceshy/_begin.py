"""Begin: ask for the right to run a tool once, and go on asking while that is safe.

Nothing here lets a tool run but an `execute` answer whose lease, counted from before the request, still lasts.
"""

from typing import Final
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from twiceshy._answers import Await, Begun, Execute, Replay, Stub
from twiceshy._approvals import awaited
from twiceshy._ask import Answered, ask
from twiceshy._calls import ToolCall, request
from twiceshy._carried import begun_by, hear
from twiceshy._effect import CurrentEffect
from twiceshy._environment import Environment
from twiceshy._lease import Lease
from twiceshy._probed_calls import at_begin
from twiceshy._problems import meaning, unavailable
from twiceshy._replies import Unanswered
from twiceshy._steps import Flow, send, sleep
from twiceshy._transports.base import Request
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.problems import Problem
from twiceshy_contract.wire import EffectKey

_LONGEST_HELD_WAIT = 30.0
_SHORTEST_PAUSE = 0.05
_RELEASE_SECONDS = 2.0
_MOST_DOUBTS = 3
"""How often a begin that finds its effect in doubt again asks the probe again."""


class Granted(msgspec.Struct, frozen=True):
    """The lease is held; `answer.arguments`, where not null, are the ones to run."""

    answer: Execute
    effect: CurrentEffect
    begin: BeginRequest


_BEGIN: Final[msgspec.json.Decoder[Begun]] = msgspec.json.Decoder(Begun)


def begin(
    environment: Environment, call: ToolCall, *, wait_until: float, deadline: float
) -> Flow[Granted | Replay | Stub]:
    """Ask until the answer is a lease or an outcome; every other answer is raised.

    Until `deadline` the tool's probe is asked about a doubt that is found.
    """
    asked = yield from begun_by(environment, call, uuid4())
    doubts = 0
    while True:
        answer = yield from _ask_or_release(environment, call, asked)
        if isinstance(answer, Problem):
            if answer.code == "outcome-in-doubt" and doubts < _MOST_DOUBTS:
                yield from at_begin(environment, call, answer, deadline=deadline)
                doubts += 1
                asked = yield from begun_by(environment, call, uuid4())
            else:
                asked = yield from next_begin(environment, call, asked, answer, wait_until)
            continue
        begun = yield from _begun(environment, call, asked, answer, wait_until)
        if not isinstance(begun, BeginRequest):
            return begun
        asked = begun


def _begun(
    environment: Environment, call: ToolCall, asked: BeginRequest, answer: Answered[Begun], wait_until: float
) -> Flow[Granted | Replay | Stub | BeginRequest]:
    """Return what the answer came to, or the next begin."""
    if asked.delivered:
        environment.deliveries.told(call.run, asked.delivered)
    match answer.value:
        case Execute() as granted:
            environment.inner_doubts.pop(granted.key, None)
            lease = Lease.granted(answer.sent_at, granted.lease_seconds_left)
            if not lease.has_ended(environment.clock()):
                header = call.spec.rules.provider_key_header
                effect = CurrentEffect(
                    granted, lease, environment.clock, provider_key_header=header, contract=answer.contract
                )
                return Granted(granted, effect, asked)
            yield from release(environment, asked)
            if environment.clock() >= wait_until:
                raise unavailable(environment, call.reference, "its answers take longer than the lease lasts")
            return (yield from begun_by(environment, call, uuid4()))
        case Replay() as replay:
            environment.inner_doubts.pop(replay.key, None)
            if not is_known(environment, call, asked, replay):
                return replay
            return replace((yield from begun_by(environment, call, uuid4())), delivered=(EffectKey(replay.key),))
        case Stub() as stub:
            return stub
        case Await() as awaiting:
            return (yield from awaited(environment, call, awaiting))


def is_known(environment: Environment, call: ToolCall, asked: BeginRequest, replay: Replay) -> bool:
    """Tell whether a record is what the agent was given before this call, and the service could not know that."""
    return (
        call.spec.rules.effect == "idempotent"
        and replay.key not in asked.delivered
        and environment.deliveries.was_known(call.run, replay.key, call.known)
    )


def release(environment: Environment, asked: BeginRequest) -> Flow[None]:
    """Tell the service that the tool never started; the answer does not matter."""
    given_up = Request(
        method="POST",
        path="/v1/effects/release",
        body=msgspec.json.encode(asked),
        timeout_seconds=_RELEASE_SECONDS,
        token=environment.credential_of(asked.run),
    )
    yield from send(given_up)


def _ask_or_release(environment: Environment, call: ToolCall, asked: BeginRequest) -> Flow[Answered[Begun] | Problem]:
    """Ask; whoever gives up, or is interrupted, says that the tool never started."""
    sent = replace(request(asked), token=environment.credential_of(asked.run))
    until = environment.clock() + asked.wait_seconds + environment.limits.unavailable_seconds
    try:
        answer = yield from ask(environment, sent, _BEGIN, until=until)
    except GeneratorExit:
        raise
    except BaseException:
        yield from release(environment, asked)
        raise
    if isinstance(answer, Unanswered):
        yield from release(environment, asked)
        raise unavailable(environment, call.reference, answer.reason)
    if call.writer is not None:
        hear(call.writer, call.spec.name, answer)
    return answer


def next_begin(
    environment: Environment, call: ToolCall, asked: BeginRequest, problem: Problem, wait_until: float
) -> Flow[BeginRequest]:
    """Return the next begin where waiting helps; raise what the problem means where it does not."""
    left = wait_until - environment.clock()
    retry_after = problem.retry_after_seconds
    match problem.code:
        case "in-progress" if left > 0:
            yield from _pause_between_waits(environment, asked, left, retry_after)
            left = max(0.0, wait_until - environment.clock())
            return (yield from begun_by(environment, call, asked.attempt, min(left, _LONGEST_HELD_WAIT)))
        case "retry-later" if (retry_after or 0) <= left:
            yield from sleep(max(retry_after or 0, _SHORTEST_PAUSE))
            return (yield from begun_by(environment, call, uuid4()))
        case "resource-held" if retry_after is not None and retry_after <= left:
            yield from sleep(max(retry_after, _SHORTEST_PAUSE))
            return (yield from begun_by(environment, call, uuid4()))
        case "lease-lost" | "superseded" | "not-possible" if left > 0:
            if not call.messages:  # else there is no lease to give back
                yield from release(environment, asked)
            yield from sleep(_SHORTEST_PAUSE)
            return (yield from begun_by(environment, call, uuid4()))
        case _:
            raise meaning(environment, problem, call)


def _pause_between_waits(
    environment: Environment, asked: BeginRequest, left: float, retry_after: float | None
) -> Flow[None]:
    """Pause where the service did not hold the request although it was asked to."""
    if asked.wait_seconds:
        pause = min(retry_after or _SHORTEST_PAUSE, 1.0) * (0.5 + environment.chance() / 2)
        yield from sleep(min(max(pause, _SHORTEST_PAUSE), left))
