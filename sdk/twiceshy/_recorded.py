"""Outcomes as the caller gets them: of this call, of the record, of another run, or in the place of a tool's own."""

import logging
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from twiceshy._answers import Execute, Replay, Stub
from twiceshy._approvals import denied
from twiceshy._calls import ToolCall
from twiceshy._options import ToolSpec
from twiceshy._restore import Misfit, is_opaque, refuse_opaque, restore, untag
from twiceshy._results import returns_nothing
from twiceshy._said import ended, note
from twiceshy._staged import staged_of
from twiceshy.exceptions import ClaimedByAnother, EffectRef, RecordError, RecordMismatch, Rejected
from twiceshy_contract.effects import Outcome
from twiceshy_contract.events import Source
from twiceshy_contract.outcomes import ErrorOutcome

T = TypeVar("T")
_SOURCE = "_twiceshy_source"
_log = logging.getLogger("twiceshy")


class Answer(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What a call came to, and where that comes from.

    `is_replay` says that the tool did not run now; `said` then tells a model so, such as `done at step 3 of run
    booking-42`, and is empty otherwise. `step` counts the effects of `run`, the run that did it. `key` names the
    effect, which a `read` tool has not. `source` is where the value comes from in a fork or a replay.
    """

    value: T
    is_replay: bool = False
    said: str = ""
    step: int | None = None
    run: str | None = None
    key: str | None = None
    source: Source = "live"


def executed(answer: Execute, value: Any) -> Answer[Any]:
    """Return what the tool has just returned."""
    return Answer(value=value, step=answer.step, run=answer.run, key=answer.key)


def replayed(answer: Replay, call: ToolCall) -> Answer[Any]:
    """Return the recorded result in its annotated type. Raises what it raised, or ClaimedByAnother."""
    spec = call.spec
    reference = EffectRef(tool=answer.tool, key=answer.key, run=answer.run, fence=answer.fence)
    said = answer.said or f"done on {answer.committed_at}"
    drift = answer.drift.content if answer.drift else ()
    worded = f"; worded differently at {', '.join(drift)}" if drift else ""
    _log.info("%s was answered from the record: %s (effect %s%s).", spec.name, said, answer.key, worded)
    error = answer.outcome.failure
    if error is not None:
        _raise_recorded(error, said, reference)
    if answer.shared is not None and not _takes_what_others_did(call):
        raise _claimed(answer, call, reference)
    value = _value(answer.outcome, spec, reference)
    step = answer.step if answer.repeat_of is None else answer.repeat_of.step
    return Answer(value=value, is_replay=True, said=said, step=step, run=answer.run, key=answer.key)


def stubbed(answer: Stub, spec: ToolSpec) -> Answer[Any]:
    """Return the outcome that a fork is given in the place of the tool's. Raises a recorded rejection."""
    reference = EffectRef(tool=answer.tool, key=answer.origin, run=answer.run)
    source = {"recorded": "the record", "injected": "a person"}.get(answer.provenance, "the tool's simulator")
    said = f"not run in this fork; {source} answers ({answer.rule})"
    _log.info("%s was %s.", spec.name, said)
    error = answer.outcome.failure
    if error is not None:
        try:
            _raise_recorded(error, said, reference)
        except Exception as raised:
            vars(raised)[_SOURCE] = answer.provenance
            raise
    value = _value(answer.outcome, spec, reference)
    return Answer(value=value, is_replay=True, said=said, run=answer.run, key=answer.origin, source=answer.provenance)


def source_of(error: BaseException | None) -> Source:
    """Return where an error of a call comes from in a fork."""
    source: Source = vars(error).get(_SOURCE, "live") if error is not None else "live"
    return source


def _raise_recorded(error: ErrorOutcome, said: str, reference: EffectRef) -> NoReturn:
    """Raise a recorded rejection. Of another run it is the same: the world has refused just this."""
    denial = denied(error, reference)
    if denial is not None:
        raise denial
    rejection = Rejected(error.message, data=untag(error.data), type=error.type)
    note(rejection, f"twiceshy: {ended(said)} It was not asked for again.")
    raise rejection


def _takes_what_others_did(call: ToolCall) -> bool:
    """Tell whether another run's answer is this one's: the tool says so; without its word, who names a key agrees."""
    share = call.spec.rules.share
    return call.keys.business_key is not None if share is None else share


def _claimed(answer: Replay, call: ToolCall, reference: EffectRef) -> ClaimedByAnother:
    """Return the error that another run has done it, with what that got as far as it can be given back."""
    origin = None if answer.shared is None else answer.shared.run
    step = answer.step if answer.repeat_of is None else answer.repeat_of.step
    unread: RecordError | None = None
    try:
        result = _value(answer.outcome, call.spec, reference)
    except RecordError as error:
        result, unread = None, error
    who = "another caller" if origin is None else f"run {origin}"
    where = "" if step is None else f" at its step {step}"
    claimed = ClaimedByAnother(
        f"{answer.tool} did not run: {who} has done it{where}. Its effect is {answer.key}, and this error's `result` "
        "is what it got. Go on with something else; or, where such an answer is as good as one's own, declare the "
        "tool with share=True.",
        effect=reference, result=result, run=origin, step=step,
    )  # fmt: skip
    claimed.__cause__ = unread
    return claimed


def _value(outcome: Outcome, spec: ToolSpec, reference: EffectRef) -> object:
    if spec.rules.sink is not None:
        return staged_of(outcome.result, reference)
    if is_opaque(outcome.result) and returns_nothing(spec):
        return None
    refuse_opaque(outcome.result, reference)
    try:
        return restore(outcome.result, spec.signature.returns, outcome.result_type)
    except Misfit as misfit:
        raise RecordMismatch(
            f"{spec.name} happened before, but its record does not fit its return annotation: {misfit}. Take back the "
            f"change of the annotation, or make the type take what is recorded. The effect is {reference.key}; "
            "`twiceshy effects show` has the record.",
            effect=reference,
        ) from misfit
