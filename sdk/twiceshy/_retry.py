"""Try again within one call what was not applied: each try is an attempt of its own under the same effect.

The service says how long to wait, with its own backoff and with what the tool asked for; the call's deadline and the
attempts of the tool say when to stop. Nothing is tried again that may have happened, unless a repeat is harmless: for
an idempotent tool, and under the same downstream key while the provider answers that from its record. Whether its
window still lasts, the service knows.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec
from tenacity import DoSleep, RetryCallState, Retrying

from twiceshy._calls import ToolCall
from twiceshy._environment import Environment
from twiceshy._said import note
from twiceshy._seen import Seen
from twiceshy._steps import Flow, Raised, Returned, pause
from twiceshy.exceptions import AttemptsExhausted, BeginError, OutcomeInDoubt, RetryLater, RunSuspended

Tried: TypeAlias = Returned | Seen
Attempt: TypeAlias = Callable[[ToolCall, float], Flow[Tried]]
_LONGEST_PAUSE: Final = 60.0


def until_settled(
    environment: Environment, call: ToolCall, attempt: Attempt, first: Seen, called_at: float
) -> Flow[Returned | Raised]:
    """Go on from a first try that raised, until a try brings an answer or the next one would come too late."""
    seconds = call.spec.rules.deadline_seconds
    if not seconds or first.may_be_tried_after is None:
        return Raised(first.by_caller())
    deadline = called_at + seconds
    again = _not_reopening(call)
    retrying = _retrying(environment, deadline)
    state = RetryCallState(retrying, fn=None, args=(), kwargs={})
    retrying.begin()
    tried: Tried | Raised = first
    while isinstance(tried, Seen):
        state.set_result(tried)
        step = retrying.iter(retry_state=state)
        if not isinstance(step, DoSleep):
            return _given_up(tried, state.attempt_number)
        yield from _waited(float(step), tried.error)
        state.prepare_for_next_attempt()
        tried = yield from _next(attempt, again, tried, deadline)
    return tried


def _not_reopening(call: ToolCall) -> ToolCall:
    """Return the same call for the tries that follow: to reopen the effect was meant once."""
    return msgspec.structs.replace(call, keys=msgspec.structs.replace(call.keys, reopen=False))


def _retrying(environment: Environment, deadline: float) -> Retrying:
    """Wait as the service says; stop where that wait would end after the deadline."""
    return Retrying(
        retry=lambda state: _pause_after(environment, state) is not None,
        wait=lambda state: _pause_after(environment, state) or 0.0,
        stop=lambda state: environment.clock() + state.upcoming_sleep > deadline,
        retry_error_callback=lambda _: None,
    )


def _pause_after(environment: Environment, state: RetryCallState) -> float | None:
    """Return the service's pause; after doubt it names none, and the tool's backoff doubles with each try."""
    tried = None if state.outcome is None else state.outcome.result()
    if not isinstance(tried, Seen) or tried.may_be_tried_after is None:
        return None
    if not tried.is_doubtful:
        return tried.may_be_tried_after
    ceiling = min(_LONGEST_PAUSE, tried.may_be_tried_after * 2.0 ** min(state.attempt_number - 1, 32))
    return ceiling * environment.chance()


def _waited(seconds: float, after: BaseException) -> Flow[None]:
    """Wait; an interruption passes at once, and shows what the tool had raised."""
    try:
        yield from pause(seconds, after)
    except GeneratorExit:
        raise
    except BaseException as interruption:
        if interruption.__context__ is None:
            interruption.__context__ = after
        raise


def _next(attempt: Attempt, call: ToolCall, last: Seen, deadline: float) -> Flow[Tried | Raised]:
    """Make the next try. What keeps it from beginning shows what the tool had raised."""
    try:
        return (yield from attempt(call, deadline))
    except (AttemptsExhausted, RetryLater) as refusal:
        note(last.error, f"twiceshy: {refusal}")
    except (BeginError, OutcomeInDoubt, RunSuspended) as refusal:
        if isinstance(refusal, BeginError) and last.is_doubtful:  # that nobody knows outweighs what kept it from a try
            doubt = last.by_caller()
            note(doubt, f"twiceshy: it could not be tried again. {refusal}")
            return Raised(doubt)
        if refusal.__cause__ is None:
            refusal.__cause__ = last.error
        raise
    return Raised(last.error)


def _given_up(last: Seen, tries: int) -> Raised:
    error = last.by_caller()
    if tries > 1:
        note(error, f"twiceshy: it was tried {tries} times.")
    return Raised(error)
