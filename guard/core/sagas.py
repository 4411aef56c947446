"""Sagas: what a saga that failed needs next, as a pure function of what is on record.

Theory of operation. A saga enlists the effects of its steps before they begin. Once it has failed, no step begins any
more, and:

1. Doubt is settled first: while nobody knows whether a step was done, nothing is taken back.
2. Steps that were done are taken back one after the other, in the reverse order of their ends.
3. A compensation is an effect of its own, named after the step. It is due until it has succeeded.
4. Any way to succeeded counts: a step that was passed over is enlisted again once its effect proves to be done.
5. What is due and begun by nobody for `PATIENCE`, or does not fit whoever tried, calls for a person; it stays due.

Nothing here is remembered: a process that dies anywhere leaves a record from which the same move follows. Of a step
that is known to be done the saga keeps when it ended, so that only the one which is next has to be read.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from guard.core import lease as leases
from guard.core.arguments import arguments_of
from guard.core.compensations import compensation_arguments, holds_mark
from guard.core.effects import SECOND, Duration, Effect, Instant, Key, TenantId
from guard.core.lease import Rules
from twiceshy_contract.effects import Outcome
from twiceshy_contract.policies import Compensation
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.sagas import Purpose, SagaState, StepState

PATIENCE: Final = Duration(120 * SECOND)
"""How long doubt, or a call that nobody begins, may stand in the way of a saga before a person is called."""
LATE: Final = "its deadline has passed"
"""Why a saga is taken back whose deadline has passed."""


class Saga(msgspec.Struct, frozen=True, kw_only=True):
    """A saga as the record holds it. `reason` says why it is taken back; `changed_at`, when that went on last."""

    id: UUID
    tenant: TenantId
    name: str
    run: str
    state: SagaState
    started_at: Instant
    deadline: Instant | None = None
    reason: str | None = None
    failed_at: Instant | None = None
    changed_at: Instant | None = None
    ended_at: Instant | None = None

    def is_late(self, now: Instant) -> bool:
        """Say whether its deadline has passed while it was running."""
        return self.state == "running" and self.deadline is not None and self.deadline <= now


class SagaStep(msgspec.Struct, frozen=True, kw_only=True):
    """An effect that a saga enlisted, and how it is taken back. `round` counts the tries that a person asked for.

    `misfit` is why the call that is due could not be made where it was tried. `done` is known of a step that was done
    in a saga that failed, and is to be taken back.
    """

    key: Key
    number: int
    tool: str
    enlisted_at: Instant
    compensation: Compensation | None = None
    state: StepState = "enlisted"
    round: int = 1
    compensation_key: Key | None = None
    note: str | None = None
    misfit: str | None = None
    done: "DoneStep | None" = None


class DoneStep(msgspec.Struct, frozen=True, order=True):
    """When a step ended, and where it stands in its run among those of the same moment."""

    at: int
    step: int


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A step with its effect and the one that takes it back, as far as there are any, and the rules that they obey.

    `redacted` are the places (JSON Pointers) of the step's arguments that its tool says are not stored.
    """

    step: SagaStep
    effect: Effect | None = None
    rules: Rules = Rules()
    redacted: tuple[str, ...] = ()
    compensation: Effect | None = None
    compensation_rules: Rules = Rules()


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What is now known of a step and is to be written down."""

    key: Key
    seen: StepState
    state: StepState
    note: str | None
    done: DoneStep | None = None


class Cancel(msgspec.Struct, frozen=True):
    """A step waits for another try, and nothing of it was applied: no try is to come."""

    key: Key


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is to be made for a step now."""

    purpose: Purpose
    standing: Standing
    arguments: dict[str, object]

    @property
    def key(self) -> Key:
        """The step that the call is about."""
        return self.standing.step.key


class Wait(msgspec.Struct, frozen=True):
    """Something must end or be settled first; it may be `until` then."""

    key: Key
    why: str
    until: Instant


class Stuck(msgspec.Struct, frozen=True):
    """A person must see to a step first. What is `due` nonetheless, whoever can may still do."""

    key: Key
    why: str
    due: Due | None = None


class Done(msgspec.Struct, frozen=True):
    """Nothing is left to be taken back."""


Move = Cancel | Due | Wait | Stuck | Done


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written down of a saga that failed, and what it needs next."""

    marks: tuple[Mark, ...]
    move: Move


def plan(saga: Saga, standings: Sequence[Standing], now: Instant) -> Plan:
    """Say what a saga that failed needs next."""
    marks = tuple(mark for standing in standings if (mark := _mark(saga, standing)) is not None)
    states = {mark.key: mark.state for mark in marks}
    left = [it for it in standings if states.get(it.step.key, it.step.state) == "enlisted"]
    return Plan(marks=marks, move=_move(saga, left, now))


def due_of(move: Move | None) -> Due | None:
    """Return the call that is due."""
    match move:
        case Due():
            return move
        case Stuck(due=due):
            return due
        case _:
            return None


def _mark(saga: Saga, standing: Standing) -> Mark | None:
    """Say what is known of a step by now, where that is new."""
    step, effect = standing.step, standing.effect
    state = None if effect is None else effect.life.state
    if step.state == "passed_over" and state == "succeeded":
        return _marked(step, "enlisted", "proof came late that it was done")
    if step.state != "enlisted":
        return None
    if effect is None:
        return _marked(step, "passed_over", "it was never begun")
    if state == "failed":
        return _marked(step, "skipped", "it was not done")
    return _mark_of_done(saga, standing, effect) if state == "succeeded" else None


def _mark_of_done(saga: Saga, standing: Standing, effect: Effect) -> Mark | None:
    """Say whether a step that was done is to be taken back at all, or is already."""
    step, taken_back = standing.step, standing.compensation
    if effect.intent.run != saga.run:
        return _marked(step, "skipped", f"run {effect.intent.run} did it, not this saga")
    if (effect.life.ended_at or saga.started_at) < saga.started_at:
        return _marked(step, "skipped", "it was done before this saga began")
    if step.compensation is None:
        return _marked(step, "uncompensated", "its tool names no compensation")
    if taken_back is not None and taken_back.life.state == "succeeded":
        return _marked(step, "compensated", None)
    if step.done is not None:
        return None
    done = DoneStep(effect.life.ended_at or 0, effect.intent.step or 0)
    return Mark(key=step.key, seen="enlisted", state="enlisted", note=None, done=done)


def _marked(step: SagaStep, state: StepState, note: str | None) -> Mark:
    return Mark(key=step.key, seen=step.state, state=state, note=note)


def _move(saga: Saga, left: Sequence[Standing], now: Instant) -> Move:
    """Cancel what is open, settle what is doubtful, then take back what ended last."""
    begun = [(it, it.effect) for it in left if it.effect is not None]
    unsure = [(it, effect) for it, effect in begun if effect.life.state != "succeeded"]
    for standing, effect in unsure:
        if effect.life.state == "pending" and not effect.life.unresolved():
            return Cancel(standing.step.key)
    if unsure:
        return min((_settle(saga, standing, effect, now) for standing, effect in unsure), key=_urgency)
    if not begun:
        return Done()
    last, effect = max(begun, key=_end)
    return _take_back(saga, last, effect, now)


def _urgency(move: Move) -> tuple[int, int]:
    """Order the moves of doubtful steps: what can be done, what a person must see to, what may come by itself."""
    match move:
        case Due():
            return 0, 0
        case Wait(until=until):
            return 2, until
        case _:
            return 1, 0


def _end(begun: tuple[Standing, Effect]) -> tuple[int, int, int]:
    """Return when a step that was done has ended, and where it stands among those of the same moment."""
    standing, effect = begun
    return effect.life.ended_at or 0, effect.intent.step or 0, standing.step.number


def _settle(saga: Saga, standing: Standing, effect: Effect, now: Instant) -> Move:
    """Say how it becomes known whether a step was done."""
    arguments = arguments_of(effect.edited or effect.intent.arguments)
    call = Due(purpose="settle", standing=standing, arguments=arguments)
    move = _tried(call, effect, standing.rules, now)
    if not isinstance(move, Due):
        return move
    if holds_mark(arguments, standing.redacted):
        return Stuck(call.key, "the step cannot be run again: arguments of it are redacted")
    return _offered(saga, call, effect, now)


def _take_back(saga: Saga, standing: Standing, effect: Effect, now: Instant) -> Move:
    """Say how a step that was done is taken back."""
    taken_back = standing.compensation
    if taken_back is not None and taken_back.life.state == "failed":
        return Stuck(standing.step.key, f"its compensation was refused{_said(taken_back)}")
    try:
        arguments = compensation_arguments(standing.step.compensation, effect, standing.redacted)
    except Refusal as refusal:
        return Stuck(standing.step.key, f"the arguments of its compensation cannot be made: {refusal.reason}")
    call = Due(purpose="compensate", standing=standing, arguments=arguments)
    move = call if taken_back is None else _tried(call, taken_back, standing.compensation_rules, now)
    return _offered(saga, call, taken_back, now) if isinstance(move, Due) else move


def _offered(saga: Saga, call: Due, effect: Effect | None, now: Instant) -> Due | Stuck:
    """Offer a call that is due; where nobody begins it in time, or it was tried and does not fit, tell a person."""
    step = call.standing.step
    if step.misfit is not None:
        return Stuck(call.key, step.misfit, call)
    if now < _due_since(saga, call, effect) + PATIENCE:
        return call
    tool = step.tool if step.compensation is None or call.purpose == "settle" else step.compensation.tool
    why = f"for {PATIENCE // SECOND} s no process has begun the call of {tool} that is due; one that has it still can"
    return Stuck(call.key, why, call)


def _due_since(saga: Saga, call: Due, effect: Effect | None) -> int:
    """Return from when on a call could be begun, as far as is known; `effect` is its own, where it was begun before."""
    done = call.standing.effect
    moments = [saga.started_at, saga.failed_at, saga.changed_at, None if done is None else done.life.ended_at]
    if effect is not None:
        latest = effect.life.latest
        moments += [effect.life.retry_at, None if latest is None else latest.ended_at]
    return max(moment for moment in moments if moment is not None)


def _tried(call: Due, effect: Effect, rules: Rules, now: Instant) -> Move:
    """Say whether a call whose effect is begun may be made again, or what stands in its way."""
    life, key = effect.life, call.key
    what = "the step" if call.purpose == "settle" else "its compensation"
    if life.state == "executing" and life.latest is not None:
        return Wait(key, f"{what} is being executed", life.latest.deadline)
    settles_at = leases.settles_at(life, rules)
    if settles_at is not None and not leases.is_rerun_harmless(life, rules, now, rules.lease):
        until = Instant(settles_at + PATIENCE)
        why = f"{what} may or may not have happened (effect {effect.intent.key.hex()})"
        return Wait(key, why, until) if now < until else Stuck(key, why)
    if life.tries >= rules.attempts:
        return Stuck(key, f"{what} was tried {life.tries} times, and no try said that it was done")
    if life.retry_at is not None and now < life.retry_at:
        return Wait(key, f"{what} is tried again later", life.retry_at)
    return call


def _said(effect: Effect) -> str:
    """Return what was recorded of a refusal."""
    failure = None if effect.outcome is None else msgspec.json.decode(effect.outcome, type=Outcome).failure
    return "" if failure is None else f": {failure.type}: {failure.message}"
