"""A call that only reads: it runs without a lease, unless the registry holds its tool stricter or a fork says other.

Outside of a fork it does not need the service: where that gives no answer, the word of the code counts for a while. A
tool that the registry is known to hold stricter fails closed like any other.
"""

import logging
from typing import Final
from uuid import uuid4

import msgspec

from twiceshy._answers import Begun, DeclaredTool, Stub
from twiceshy._ask import Answered, ask
from twiceshy._calls import ToolCall, checked, request
from twiceshy._carried import begun_by, hear
from twiceshy._declare import declare, known, obeying, told
from twiceshy._environment import Environment
from twiceshy._flow import guarded
from twiceshy._problems import meaning, refused, unavailable
from twiceshy._recorded import stubbed
from twiceshy._replies import Unanswered
from twiceshy._steps import Flow, Raised, Returned
from twiceshy_contract.problems import Problem

_BEGIN: Final[msgspec.json.Decoder[Begun]] = msgspec.json.Decoder(Begun)
_RUNS_WITHOUT: Final = "not-possible"
"""What the service says of a call that takes no lease: it may run."""
FRESH_SECONDS: Final = 60.0
"""How long the registry's word about a tool that reads is believed before it is asked again."""
UNASKED_SECONDS: Final = 30.0
"""How long reads run unasked after the registry gave no answer."""
_PATIENCE_SECONDS: Final = 2.0
_log: Final = logging.getLogger("twiceshy")


def read(environment: Environment, call: ToolCall) -> Flow[Returned | Raised]:
    """Return the Answer in the place of the read, or None where it may really run."""
    call = yield from (declare(environment, call) if call.in_fork else _looked_up(environment, call))
    if call.spec.rules.effect != "read":  # the registry is the stricter one
        written = call.written if call.in_fork else call.spec.signature.written(call.bound)
        return (yield from guarded(environment, checked(msgspec.structs.replace(call, written=written))))
    return (yield from _in_fork(environment, call)) if call.in_fork else Returned(None)


def _looked_up(environment: Environment, call: ToolCall) -> Flow[ToolCall]:
    """Return the call under the rules that hold, as far as the registry can be asked now."""
    held, now = known(environment, call.spec), environment.clock()
    is_fresh = held is not None and now < environment.declared[call.spec.name].at + FRESH_SECONDS
    if not is_fresh and now >= environment.reads_unasked_until:
        patience = min(_PATIENCE_SECONDS, environment.limits.unavailable_seconds)
        answer = yield from told(environment, call.spec, until=now + patience)
        match answer:
            case DeclaredTool():
                held = answer.declaration
            case Problem():
                raise refused(answer, call.reference)
            case Unanswered(reason=reason):
                environment.reads_unasked_until = environment.clock() + UNASKED_SECONDS
                _log.warning(
                    "The registry at %s gives no answer (%s): for %g s tools that their code calls reads run without "
                    "a look at it, unless it was known to hold them stricter. The first of them is %s.",
                    environment.url, reason, UNASKED_SECONDS, call.spec.name,
                )  # fmt: skip
    return call if held is None else obeying(call, held)


def _in_fork(environment: Environment, call: ToolCall) -> Flow[Returned | Raised]:
    """Ask the service whether the read runs or what stands in its place."""
    asked = yield from begun_by(environment, call, uuid4())
    until = environment.clock() + environment.limits.unavailable_seconds
    sent = msgspec.structs.replace(request(asked), token=environment.credential_of(call.run))
    answer = yield from ask(environment, sent, _BEGIN, until=until)
    if call.writer is not None and not isinstance(answer, Unanswered):
        hear(call.writer, call.spec.name, answer)
    match answer:
        case Unanswered():
            raise unavailable(environment, call.reference, answer.reason)
        case Problem():
            if answer.code == _RUNS_WITHOUT:
                return Returned(None)
            raise meaning(environment, answer, call)
        case Answered(Stub() as stub):
            return Returned(stubbed(stub, call.spec))
        case Answered():
            raise unavailable(environment, call.reference, "it answers a read with a lease")
