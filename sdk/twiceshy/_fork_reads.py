"""A call that only reads, in a fork: the service says whether it runs or what stands in its place."""

from typing import Final
from uuid import uuid4

import msgspec

from twiceshy._answers import Begun, Stub
from twiceshy._ask import Answered, ask
from twiceshy._calls import ToolCall, request
from twiceshy._declare import declare
from twiceshy._environment import Environment
from twiceshy._flow import guarded
from twiceshy._problems import meaning, unavailable
from twiceshy._recorded import stubbed
from twiceshy._replies import Unanswered
from twiceshy._steps import Flow, Raised, Returned
from twiceshy_contract.problems import Problem

_BEGIN: Final[msgspec.json.Decoder[Begun]] = msgspec.json.Decoder(Begun)
_RUNS_WITHOUT: Final = "not-possible"
"""What the service says of a call that takes no lease: it may run."""


def read_in_fork(environment: Environment, call: ToolCall) -> Flow[Returned | Raised]:
    """Return the Answer in the place of the read, or None where it may really run."""
    call = yield from declare(environment, call)
    if call.spec.rules.effect != "read":  # the registry is the stricter one
        return (yield from guarded(environment, call))
    asked = call.begin(uuid4(), environment.worker)
    until = environment.clock() + environment.limits.unavailable_seconds
    answer = yield from ask(environment, request(asked), _BEGIN, until=until)
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
