"""Where a call meets its probe: after its tool has raised and nobody knows, and where a begin finds an old doubt."""

import msgspec

from twiceshy._ask import Answered
from twiceshy._binding import Bound
from twiceshy._calls import ToolCall
from twiceshy._environment import Environment
from twiceshy._probing import Early, Question, Settled, Unknown, find_out
from twiceshy._problems import meaning
from twiceshy._said import ended, note
from twiceshy._seen import Seen
from twiceshy._steps import Flow, pause
from twiceshy_contract.problems import Problem


def after_raising(
    environment: Environment, call: ToolCall, bound: Bound, seen: Seen, *, deadline: float
) -> Flow[Settled | Seen]:
    """Ask the probe about what has just been reported as unknown; return how that stands now.

    Settled means that the record holds the outcome. The doubt is on record before anybody is asked, so that an
    interruption here loses nothing and passes at once.
    """
    if call.spec.name not in environment.probes or not _is_plain_doubt(seen):
        return seen
    yield from pause(0, seen.error)
    question = Question(spec=call.spec, key=seen.effect.key, ran=bound, after=seen.error)
    try:
        found = yield from find_out(environment, question, deadline=deadline)
    except GeneratorExit:
        raise
    except BaseException as interruption:
        if interruption.__context__ is None and interruption is not seen.error:
            interruption.__context__ = seen.error
        raise
    match found:
        case Settled(is_final=True):
            return found
        case Settled():
            return _open_again(seen)
        case Early(reason=reason) | Unknown(reason=reason):
            return msgspec.structs.replace(seen, probed=reason)


def at_begin(environment: Environment, call: ToolCall, problem: Problem, *, deadline: float) -> Flow[None]:
    """Ask the probe about a doubt that a begin has found; raise what it means where it stays."""
    error = meaning(environment, problem, call)
    if problem.key is None or call.spec.name not in environment.probes:
        raise error
    question = Question(spec=call.spec, key=problem.key, own=call.bound)
    found = yield from find_out(environment, question, deadline=deadline)
    match found:
        case Settled():
            return
        case Early(reason=reason) | Unknown(reason=reason):
            note(error, f"twiceshy: {ended(reason)}")
            raise error


def _is_plain_doubt(seen: Seen) -> bool:
    """Tell whether the service holds the effect in doubt, and the tool's own exception says why."""
    is_held = isinstance(seen.delivery, Answered) and seen.delivery.value.state == "in_doubt"
    return is_held and issubclass(type(seen.error), Exception)


def _open_again(seen: Seen) -> Seen:
    """Return the same with what is known since: nothing was applied, and the tool may be tried again at once."""
    if not isinstance(seen.delivery, Answered):
        return seen
    value = msgspec.structs.replace(seen.delivery.value, state="pending", retry_after_seconds=0.0)
    delivery = msgspec.structs.replace(seen.delivery, value=value)
    return msgspec.structs.replace(seen, judgement="not_applied", delivery=delivery)
