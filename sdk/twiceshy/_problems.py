"""What a problem that the service answers to a begin means in Python. Its detail says what happened and what to do."""

import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from twiceshy._calls import ToolCall
from twiceshy._doubt import in_doubt
from twiceshy._environment import Environment
from twiceshy._said import ended, note
from twiceshy._settings import is_database
from twiceshy.exceptions import (
    ApprovalExpired,
    ArgumentsChanged,
    AttemptsExhausted,
    BeginError,
    EffectRef,
    ForkSuspended,
    GuardUnavailable,
    HoldLost,
    InProgress,
    KeyUsedByAnotherTool,
    LoopLimitReached,
    OutcomeInDoubt,
    PolicyDenied,
    RecordExpired,
    RequestRefused,
    ResourceHeld,
    RetryLater,
    RunFinished,
    RunSuspended,
    SagaOver,
    SiblingInDoubt,
)
from twiceshy_contract.problems import Problem

_PLAIN: Final[Mapping[str, type[BeginError] | type[RunSuspended]]] = MappingProxyType(
    {
        "approval-expired": ApprovalExpired,
        "attempts-exhausted": AttemptsExhausted,
        "expired": RecordExpired,
        "forbidden": PolicyDenied,
        "hold-lost": HoldLost,
        "key-used-by-another-tool": KeyUsedByAnotherTool,
        "loop-limit": LoopLimitReached,
        "resource-held": ResourceHeld,
        "run-finished": RunFinished,
        "saga-over": SagaOver,
        "sibling-in-doubt": SiblingInDoubt,
    }
)
_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {"approval-expired": "reopen=True", "attempts-exhausted": "reopen=True", "sibling-in-doubt": "distinct=True"}
)
"""With which word the next call may overrule a problem."""


def meaning(  # noqa: PLR0911 - one error for each problem
    environment: Environment, problem: Problem, call: ToolCall
) -> BeginError | OutcomeInDoubt | RunSuspended:
    """Return the error that a problem is to the caller."""
    reference = EffectRef(tool=call.spec.name, key=problem.key, run=call.run, fence=problem.fence)
    text = _text(problem, reference)
    if problem.code in _WORDS:
        text = f"{text} Here that is {reference.tool}.with_key({_WORDS[problem.code]})(...)."
    if problem.code == "run-suspended":
        return _stopped(problem, reference, text)
    if problem.code in _PLAIN:
        return _PLAIN[problem.code](text, effect=reference)
    match problem.code:
        case "in-progress":
            return InProgress(text, effect=reference, retry_after=problem.retry_after_seconds)
        case "retry-later":
            return RetryLater(text, effect=reference, retry_after=problem.retry_after_seconds or 0)
        case "outcome-in-doubt":
            began_in = None if reference.key is None else environment.inner_doubts.get(reference.key)
            return in_doubt(reference, text, call.spec.rules.on_doubt, began_in=began_in)
        case "arguments-changed":
            return ArgumentsChanged(text, effect=reference, paths=problem.paths)
        case _:
            return refused(problem, reference)


def _stopped(problem: Problem, reference: EffectRef, text: str) -> ForkSuspended:
    """Return the error for a call at which a fork stops, with how a person answers it."""
    error = ForkSuspended(text, effect=reference, pause=problem.pause)
    if problem.pause is not None and reference.run is not None:
        run = shlex.quote(reference.run)
        note(
            error,
            f"`twiceshy runs pauses {run}` shows where it stops. A person answers with\n"
            f"  twiceshy runs answer {run} {problem.pause} --inject JSON\n"
            f"  twiceshy runs answer {run} {problem.pause} --deny REASON\n"
            f"  twiceshy runs answer {run} {problem.pause} --allow REASON\n"
            "then run the same fork again: it goes on from here.",
        )
    return error


def refused(problem: Problem, reference: EffectRef) -> RequestRefused:
    """Return the error for a refusal that has no class of its own, with the places that are wrong."""
    unsaid = [error for error in problem.errors if error.message not in problem.detail]
    places = "".join(f" At {error.path or 'the top'}: {ended(error.message)}" for error in unsaid)
    return RequestRefused(
        _text(problem, reference) + places,
        effect=reference,
        code=problem.code,
        errors=[(error.path, error.message) for error in problem.errors],
    )


def unavailable(environment: Environment, reference: EffectRef, reason: str) -> GuardUnavailable:
    """Return the error for a service that gives no answer."""
    where, remedy = _place(environment)
    return GuardUnavailable(
        f"{reference.tool} did not run: {where} gives no answer ({reason}). {remedy}", effect=reference
    )


def unstaged(environment: Environment, reference: EffectRef, reason: str) -> GuardUnavailable:
    """Return the error for a staging that was not answered: it may be kept, and asking again does no harm."""
    where, remedy = _place(environment)
    return GuardUnavailable(
        f"Nobody knows whether the messages of {reference.tool} are staged: {where} gives no answer ({reason}). "
        f"{remedy} The same call, made again, stages them if they are not, and never twice.",
        effect=reference,
    )


def _place(environment: Environment) -> tuple[str, str]:
    """Say where the service is, and what to do where it is silent."""
    if is_database(environment.url):
        return f"the guard embedded over {environment.url}", "See to the database, or call again later."
    where = f"the guard's service at {environment.url}"
    return where, "Start it with `twiceshy serve`, correct TWICESHY_URL, or call again later."


def _text(problem: Problem, reference: EffectRef) -> str:
    said = problem.detail or problem.title
    key = f" The effect is {reference.key}." if reference.key else ""
    return f"{reference.tool} did not run: {ended(said)}{key}"
