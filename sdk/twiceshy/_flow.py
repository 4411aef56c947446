"""One guarded call from its declaration to its outcome: the only place where that order is written.

It is a generator without I/O. `_drive` has the two short drivers, blocking and async, so that neither can differ.
"""

from functools import partial

from twiceshy._answers import Replay, Stub
from twiceshy._begin import Granted, begin, release
from twiceshy._binding import Bound
from twiceshy._calls import ToolCall
from twiceshy._declare import declare
from twiceshy._environment import Environment
from twiceshy._finish import finish_raised, finish_returned
from twiceshy._probed_calls import after_raising
from twiceshy._recorded import executed, replayed, stubbed
from twiceshy._restore import Misfit
from twiceshy._retry import until_settled
from twiceshy._seen import Seen
from twiceshy._staging import staged
from twiceshy._steps import Flow, Raised, Returned, RunTool, blocking, run_tool
from twiceshy.exceptions import RecordMismatch


def guarded(environment: Environment, call: ToolCall) -> Flow[Returned | Raised]:
    """Run a tool once, or give back what it did before; where it was not applied, try again while that is allowed.

    What is returned is an Answer.
    """
    called_at = environment.clock()
    spooler = environment.spooler
    if spooler is not None and spooler.has_work:  # what waits there may be the outcome that this call asks for
        yield from blocking(spooler.visit(environment.limits.unavailable_seconds))
    if call.spec.rules.sink is not None:
        return (yield from staged(environment, call))
    call = yield from declare(environment, call)
    attempt = partial(_attempt, environment, called_at + call.spec.rules.deadline_seconds)
    tried = yield from attempt(call, environment.clock() + call.spec.rules.wait_seconds)
    if isinstance(tried, Returned):
        return tried
    return (yield from until_settled(environment, call, attempt, tried, called_at))


def _attempt(environment: Environment, deadline: float, call: ToolCall, wait_until: float) -> Flow[Returned | Seen]:
    """Begin once and run the tool once, or give back the record."""
    started = yield from begin(environment, call, wait_until=wait_until, deadline=deadline)
    match started:
        case Replay():
            return Returned(replayed(started, call))
        case Stub():
            return Returned(stubbed(started, call.spec))
        case Granted():
            bound = yield from _arguments_to_run(environment, call, started)
            tried = yield from _executed(environment, call, started, bound)
            if isinstance(tried, Returned):
                return tried
            found = yield from after_raising(environment, call, bound, tried, deadline=deadline)
            return found if isinstance(found, Seen) else (yield from _attempt(environment, deadline, call, wait_until))


def _arguments_to_run(environment: Environment, call: ToolCall, granted: Granted) -> Flow[Bound]:
    """Return the arguments that the answer names, else the caller's; the lease must still last."""
    bound = call.bound
    recorded = granted.answer.arguments
    if recorded is not None and (call.compensates is None or recorded != call.written):
        try:
            bound = call.spec.signature.recorded(recorded)
        except Misfit as misfit:
            yield from release(environment, granted.begin)
            raise _misfitting(call, granted, misfit) from misfit
    if granted.effect.lease.has_ended(environment.clock()):
        yield from release(environment, granted.begin)
        raise granted.effect.lost_error("The tool did not start.")
    return bound


def _misfitting(call: ToolCall, granted: Granted, misfit: Misfit) -> RecordMismatch:
    """Say why the arguments are not the caller's: no attempt came before the first, so a person has approved them."""
    reference = granted.effect.reference
    if reference.fence == 1:
        what = (
            f"a person has approved it with arguments that do not fit the tool: {misfit}. Nothing was sent. Whoever "
            "may approve takes that back with `twiceshy approvals cancel`; the next call is asked for anew"
        )
    else:
        what = (
            f"an earlier attempt may have sent, or a person has approved other arguments, so that these must be used, "
            f"and they do not fit the tool: {misfit}. Take back the change of the tool or the approval, or settle "
            f"effect {reference.key} with `twiceshy effects resolve`"
        )
    return RecordMismatch(f"{call.spec.name} did not run: {what}.", effect=reference)


def _executed(environment: Environment, call: ToolCall, granted: Granted, bound: Bound) -> Flow[Returned | Seen]:
    environment.heartbeat.watch(granted.effect)
    try:
        outcome = yield from run_tool(RunTool(call.function, bound, granted.effect))
        if isinstance(outcome, Returned):
            yield from finish_returned(environment, call, granted, outcome.value)
            return Returned(executed(granted.answer, outcome.value))
        return (yield from finish_raised(environment, call, granted, outcome.error))
    finally:
        environment.heartbeat.forget(granted.effect)
