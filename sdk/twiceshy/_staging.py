"""One call of a stage-only tool: its messages are made, then begun and committed in one request.

No lease is taken and nothing is left in doubt: what was not heard is asked again with the same attempt, and the same
call made again later finds what was staged.
"""

from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from twiceshy._answers import Await, RenderAnew, Replay, Settled, StagedNow, Stub
from twiceshy._approvals import awaited
from twiceshy._ask import Answered, ask
from twiceshy._begin import is_known, next_begin
from twiceshy._binding import Bound
from twiceshy._calls import ToolCall, request
from twiceshy._carried import begun_by, hear
from twiceshy._declare import declare
from twiceshy._environment import Environment
from twiceshy._messages import Mail, Message, frozen, is_of_mail, message_of, require_room
from twiceshy._outbox import too_old
from twiceshy._problems import unstaged
from twiceshy._recorded import Answer, replayed, stubbed
from twiceshy._replies import Unanswered
from twiceshy._restore import Misfit
from twiceshy._staged import Staged
from twiceshy._steps import Flow, Raised, Render, Returned, render
from twiceshy.exceptions import EffectRef, MessageRefused, RecordMismatch, SetupError
from twiceshy_contract import messages as wire
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.problems import Problem
from twiceshy_contract.wire import EffectKey

_SETTLED: Final[msgspec.json.Decoder[Settled]] = msgspec.json.Decoder(Settled)
_PATH: Final = "/v1/outbox"
_UNSERVED: Final = "Nothing is served at "
"""How a service says that it does not know a path."""
_MOST_RENDERINGS: Final = 5
"""How often one call makes its messages; a person may edit the arguments again meanwhile."""


def staged(environment: Environment, call: ToolCall) -> Flow[Returned | Raised]:
    """Stage the messages of a call once, or give back what was staged before. What is returned is an Answer."""
    wait_until = environment.clock() + call.spec.rules.wait_seconds
    made = yield from _made(call, call.bound)
    if isinstance(made, Raised):
        return made
    call = replace((yield from declare(environment, call)), messages=made)
    for _ in range(_MOST_RENDERINGS):
        answer = yield from _settled(environment, call, wait_until)
        match answer:
            case StagedNow():
                value = Staged(key=answer.key, messages=answer.messages)
                return Returned(Answer(value=value, step=answer.step, run=answer.run, key=answer.key))
            case Replay():
                return Returned(replayed(answer, call))
            case Stub():
                return Returned(stubbed(answer, call.spec))
            case RenderAnew():
                made = yield from _made(call, _edited(call, answer))
                if isinstance(made, Raised):
                    return made
                call = replace(call, messages=made, rendered_from=answer.arguments)
    raise unstaged(environment, call.reference, f"it asked {_MOST_RENDERINGS} times for other messages")


def _settled(
    environment: Environment, call: ToolCall, wait_until: float
) -> Flow[StagedNow | RenderAnew | Replay | Stub]:
    """Ask until the answer is one; every other is raised."""
    asked = yield from begun_by(environment, call, uuid4())
    while True:
        answer = yield from _asked(environment, call, asked)
        if isinstance(answer, Problem):
            asked = yield from next_begin(environment, call, asked, answer, wait_until)
            continue
        if asked.delivered:
            environment.deliveries.told(call.run, asked.delivered)
        match answer.value:
            case Await() as awaiting:
                asked = yield from awaited(environment, call, awaiting)
            case Replay() as replay if is_known(environment, call, asked, replay):
                again = yield from begun_by(environment, call, uuid4())
                asked = replace(again, delivered=(EffectKey(replay.key),))
            case settled:
                return settled


def _asked(environment: Environment, call: ToolCall, asked: BeginRequest) -> Flow[Answered[Settled] | Problem]:
    sent = replace(request(asked, _PATH), token=environment.credential_of(asked.run), joins=False)
    until = environment.clock() + asked.wait_seconds + environment.limits.unavailable_seconds
    answer = yield from ask(environment, sent, _SETTLED, until=until)
    if isinstance(answer, Unanswered):
        raise unstaged(environment, call.reference, answer.reason)
    if isinstance(answer, Problem) and answer.code == "not-found" and answer.detail.startswith(_UNSERVED):
        raise too_old(call.spec.name)
    if call.writer is not None:
        hear(call.writer, call.spec.name, answer)
    return answer


def _edited(call: ToolCall, answer: RenderAnew) -> Bound:
    """Return the arguments that a person has put in the place of the call's own."""
    try:
        return call.spec.signature.recorded(answer.arguments)
    except Misfit as misfit:
        raise RecordMismatch(
            f"{call.spec.name} staged nothing: a person has approved it with arguments that do not fit the tool: "
            f"{misfit}. Whoever may approve takes that back with `twiceshy approvals cancel`; the next call is asked "
            "for anew.",
            effect=EffectRef(tool=answer.tool, key=answer.key, run=answer.run, fence=answer.fence),
        ) from misfit


def _made(call: ToolCall, bound: Bound) -> Flow[tuple[wire.Message, ...] | Raised]:
    """Let the function make the messages of a call, and freeze them."""
    rendered = yield from render(Render(call.spec.name, call.function, bound))
    if isinstance(rendered, Raised):
        return rendered
    made = [frozen(_sink(call), it) for it in _messages(call, bound, rendered.value)]
    require_room(made, call.spec.name)
    return tuple(made)


def _messages(call: ToolCall, bound: Bound, value: object) -> list[Message]:
    tool = call.spec.name
    if value is None:
        return [_of_arguments(call, bound)]
    if not isinstance(value, list | tuple):
        return [_message(tool, value)]
    if not value:
        raise MessageRefused(
            f"{tool} made no message: its function returned an empty {type(value).__name__}. Return one message at "
            "least, None for the call's arguments, or do not call it."
        )
    return [_message(tool, it) for it in value]


def _message(tool: str, value: object) -> Message:
    message = message_of(value)
    if message is None:
        raise SetupError(
            f"{tool} staged nothing: its function returned a value of type {type(value).__qualname__}. A tool "
            "with a sink returns a Mail, a Message, a dict (the payload), a text, a list of these, or None for the "
            "call's arguments; for any other payload return Message(payload=...)."
        )
    return message


def _of_arguments(call: ToolCall, bound: Bound) -> Message:
    """Make a message of a call's arguments: the Mail that they are, or else their payload."""
    given: dict[str, Any] = dict(bound.arguments)
    return Message(mail=Mail(**given)) if is_of_mail(call.spec.signature.parameters) else Message(payload=given)


def _sink(call: ToolCall) -> str:
    if call.spec.rules.sink is None:
        raise TypeError("a tool without a sink stages nothing by itself")
    return call.spec.rules.sink
