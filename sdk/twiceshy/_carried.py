"""What a begin brings of its run's log: all that the service may not have, so that it is kept before the effect is.

Where that is too much, or values must go before it, it is sent in requests of its own first. Every begin of a recorded
run names its writer's epoch, so that an older writer begins nothing any more.
"""

from typing import Final
from uuid import UUID

import msgspec

from twiceshy._answers import Begun, Settled
from twiceshy._ask import Answered, ask
from twiceshy._calls import ToolCall
from twiceshy._environment import Environment
from twiceshy._problems import refused, unavailable
from twiceshy._recorder import append_request
from twiceshy._replies import Unanswered, is_passing
from twiceshy._steps import Flow
from twiceshy._writer import Writer
from twiceshy.exceptions import EffectRef
from twiceshy_contract.canonical import MAX_BYTES
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.events import AppendAnswer
from twiceshy_contract.problems import Problem

_REFUSED: Final = frozenset({"run-taken-over", "recording-diverged", "recording-gap", "blobs-missing"})
_MOST_TIMES: Final = 3
"""How often values are sent again that the service says it has not."""
_ROOM: Final = MAX_BYTES - 8192
_ANSWER: Final = msgspec.json.Decoder(AppendAnswer)


def begun_by(environment: Environment, call: ToolCall, attempt: UUID, wait_seconds: float = 0) -> Flow[BeginRequest]:
    """Return a begin of a call with all of its run's log up to here that the service may not have.

    Where a begin cannot bring that, it is sent before. Raises RunTakenOver, RecordingDiverged, GuardUnavailable.
    """
    begin = call.begin(attempt, environment.worker, wait_seconds)
    writer = call.writer
    if writer is None:
        return begin
    if writer.is_refused:
        raise writer.refusal(call.spec.name)
    events = writer.carried(_ROOM - len(msgspec.json.encode(begin)))
    if events is None:
        yield from _sent(environment, writer, call.reference)
        events = ()  # what was written since by others is none of this call's: its own intent came before
    return msgspec.structs.replace(begin, events=events, epoch=writer.epoch)


def _sent(environment: Environment, writer: Writer, reference: EffectRef) -> Flow[None]:
    """Send all that waits now, and not what comes meanwhile."""
    last = writer.last
    until = environment.clock() + environment.limits.unavailable_seconds
    again = 0
    while writer.waits_below(last + 1) and (append := writer.next_append()) is not None:
        answer = yield from ask(environment, append_request(writer, append), _ANSWER, until=until)
        match answer:
            case Answered(value=taken):
                writer.taken(append, taken.next_seq)
            case Problem():
                again += 1
                if not writer.hear(answer) and (again == _MOST_TIMES or is_passing(answer)):
                    raise refused(answer, reference)
            case Unanswered(reason):
                raise unavailable(environment, reference, reason)
    if writer.is_refused:
        raise writer.refusal(reference.tool)


def hear(writer: Writer, tool: str, answer: Answered[Begun] | Answered[Settled] | Problem) -> None:
    """Take in how far the log is kept, as the answer to a begin tells. Raises what its writer was refused with."""
    if isinstance(answer, Problem) and answer.code in _REFUSED:
        writer.hear(answer)
        if writer.is_refused:
            raise writer.refusal(tool)
    next_seq = answer.next_seq if isinstance(answer, Problem) else answer.value.next_seq
    if next_seq is not None:
        writer.acknowledged(next_seq)
