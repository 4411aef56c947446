"""The wire form of a batch for PostgreSQL's functions `apply_steps_v2` and `stage_messages_v1`, and of its answers.

A step travels as one tuple, in the order of the type `step_v2`; an effect as its columns in the order of
`effect_v2`, whose last field is the array of earlier attempts.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never
from uuid import UUID

from msgspec.structs import replace

from guard.core.effects import Effect, Instant
from guard.ports.steps import (
    Consent,
    Finish,
    Found,
    HoldGone,
    Insert,
    Look,
    Overruled,
    Replace,
    RunClosed,
    Sibling,
    Step,
    StepResult,
    Written,
)
from guard.store.sql.codes import REPORTED_SUCCESS, SUCCEEDED
from guard.store.sql.order import creating_in, holds_of, in_order, runs_of
from guard.store.sql.rows import EFFECT_WIDTH, earlier_of, effect_of, inserted, intent_row, replaced, row_of
from guard.store.sql.staging import staging_row

_INSERT, _FINISH, _REPLACE, _LOOK = 1, 2, 3, 4
_WRITTEN, _FOUND, _RUN_CLOSED, _SIBLING, _HOLD_GONE, _OVERRULED = 1, 2, 3, 4, 5, 6
_NOTHING: Final = (None, None, None, None, False, None, None, None)
_BARS: Final[Mapping[int, type[RunClosed] | type[HoldGone] | type[Overruled]]] = {
    _RUN_CLOSED: RunClosed,
    _HOLD_GONE: HoldGone,
    _OVERRULED: Overruled,
}
_NO_LIFE: Final = (None,) * 16


def arguments_of(steps: Sequence[Step]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Return the arguments of the function: runs to lock, what may be created in each, holds to lock, ordered steps."""
    runs = runs_of(steps)
    ordered = [_step_row(place, step) for place, step in in_order(steps)]
    return list(runs), creating_in(steps, runs), holds_of(steps), ordered


def stagings_of(steps: Sequence[Step]) -> list[tuple[Any, ...]]:
    """Return what the steps stage, each with the place of its step."""
    return [
        (place, *staging_row(step, step.staging))
        for place, step in enumerate(steps)
        if isinstance(step, Finish | Replace) and step.staging is not None
    ]


def answers_of(steps: Sequence[Step], rows: Sequence[Sequence[Any]]) -> list[StepResult]:
    """Return the answers in the places of their steps."""
    return [_answer(steps[row[0]], row) for row in sorted(rows, key=lambda row: int(row[0]))]


def _step_row(place: int, step: Step) -> tuple[Any, ...]:
    match step:
        case Insert(intent=intent):
            effect = (*intent_row(intent, 0), *_NO_LIFE, intent.slot, None, False, None, None)
            asked = (step.alone, step.hold, *_consent_row(step.consent))
            return (place, _INSERT, intent.key, step.token, None, step.lease, None, 0, None, effect, None, *asked)
        case Finish():
            return (place, _FINISH, step.key, step.token, step.fence, None, step.outcome, *_NOTHING)
        case Replace(effect=effect):
            evidence = [(proof.at, proof.token, proof.kind, proof.body) for proof in step.evidence]
            row = (*row_of(effect), earlier_of(effect.life))
            key = effect.intent.key
            asked = (step.alone, step.hold, *_consent_row(step.consent))
            return (place, _REPLACE, key, None, None, None, None, step.seen, step.open_run, row, evidence, *asked)
        case Look():
            return (place, _LOOK, step.key, None, None, None, None, *_NOTHING)
        case _:
            assert_never(step)


def _consent_row(consent: Consent | None) -> tuple[int | None, UUID | None]:
    return (None, None) if consent is None else (consent.edits, consent.approval)


def _answer(step: Step, row: Sequence[Any]) -> StepResult:  # noqa: PLR0911
    _, answer, stamp, version, count, began_at, *finished, stands = row
    at = Instant(stamp)
    if answer in _BARS:
        return _BARS[answer](at=at)
    if answer == _SIBLING:
        return Sibling(effect=effect_of(stands, stands[EFFECT_WIDTH] or ()), at=at)
    if answer == _FOUND:
        return Found(effect=_standing(stands), at=at)
    match step:
        case Insert():
            return Written(effect=inserted(step, at, count), at=at)
        case Replace():
            return Written(effect=replaced(step, version, count, began_at), at=at)
        case Finish() if stands is None or stands[0] is None:
            return Written(effect=effect_of(_finished_row(step, stamp, finished)), at=at)
        case Finish():
            return Written(effect=replace(effect_of(stands, stands[EFFECT_WIDTH] or ()), outcome=step.outcome), at=at)
        case Look():
            message = "a look writes nothing"
            raise AssertionError(message)
        case _:
            assert_never(step)


def _finished_row(step: Finish, stamp: int, finished: Sequence[Any]) -> tuple[Any, ...]:
    """Return the columns of an effect that was finished: what the step says of it, and what was not known."""
    version, *intent, granted_at, deadline, tries, epoch, epoch_since, resolution, slot, edited = finished
    lease = (SUCCEEDED, step.fence, step.token, granted_at, deadline, REPORTED_SUCCESS, stamp, False)
    rest = (tries, None, epoch, epoch_since, False, stamp, step.outcome, resolution, slot, edited, False, None)
    return (step.key, version, *intent, *lease, *rest)


def _standing(row: Sequence[Any] | None) -> Effect | None:
    """Return the effect that was found; none is a row without a key."""
    return None if row is None or row[0] is None else effect_of(row, row[EFFECT_WIDTH] or ())
