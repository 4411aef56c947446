"""Sagas: what a saga that failed needs next, as a pure function of what is on record.

Theory of operation. A saga enlists the effects of its steps before they begin. Once it has failed, no step begins any
more, and:

1. Doubt is settled first: while nobody knows whether a step was done, nothing is taken back.
2. Steps that were done are taken back one after the other, in the reverse order of their ends.
3. A compensation is an effect of its own, named after the step. It is due until it has succeeded.
4. Any way to succeeded counts: a step that was passed over is enlisted again once its effect proves to be done.

Nothing here is remembered: a process that dies anywhere leaves a record from which the same move follows.
"""

from collections.abc import Sequence
from typing import Final, cast
from uuid import UUID

import msgspec

from guard.core import lease as leases
from guard.core.arguments import arguments_of
from guard.core.effects import SECOND, Duration, Effect, Instant, Key, TenantId
from guard.core.keys import downstream_key
from guard.core.lease import Rules
from guard.core.redaction import REDACTED
from guard.core.templates import Known, rendered, unfound
from twiceshy_contract.effects import Outcome
from twiceshy_contract.policies import Compensation
from twiceshy_contract.refusals import JsonValue, Refusal, pointer
from twiceshy_contract.sagas import Purpose, SagaState, StepState

PATIENCE: Final = Duration(120 * SECOND)
"""How long doubt may stand in the way of a saga, for a probe or late word to settle it, before a person is called."""
LATE: Final = "Its deadline has passed."
"""Why a saga is taken back whose deadline has passed."""
_PREFIX: Final = "compensate:"


class Saga(msgspec.Struct, frozen=True, kw_only=True):
    """A saga as the record holds it. `reason` says why it is taken back."""

    id: UUID
    tenant: TenantId
    name: str
    run: str
    state: SagaState
    started_at: Instant
    deadline: Instant | None = None
    reason: str | None = None
    failed_at: Instant | None = None
    ended_at: Instant | None = None

    def is_late(self, now: Instant) -> bool:
        """Say whether its deadline has passed while it was running."""
        return self.state == "running" and self.deadline is not None and self.deadline <= now


class SagaStep(msgspec.Struct, frozen=True, kw_only=True):
    """An effect that a saga enlisted, and how it is taken back. `round` counts the tries that a person asked for."""

    key: Key
    number: int
    tool: str
    enlisted_at: Instant
    compensation: Compensation | None = None
    state: StepState = "enlisted"
    round: int = 1
    compensation_key: Key | None = None
    note: str | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A step with its effect and the one that takes it back, as far as there are any, and the rules that they obey."""

    step: SagaStep
    effect: Effect | None = None
    rules: Rules = Rules()
    compensation: Effect | None = None
    compensation_rules: Rules = Rules()


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What is now known of a step and is to be written down."""

    key: Key
    seen: StepState
    state: StepState
    note: str | None


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
    """A person must see to a step first."""

    key: Key
    why: str


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
    return Plan(marks=marks, move=_move(left, now))


def step_name(key: str) -> str:
    """Return the step under which the compensation of an effect is begun, whose key is written so."""
    return f"{_PREFIX}{key}"


def is_reserved(step: str) -> bool:
    """Say whether a step is one under which only a compensation may begin."""
    return step.startswith(_PREFIX)


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
    is_taken_back = taken_back is not None and taken_back.life.state == "succeeded"
    return _marked(step, "compensated", None) if is_taken_back else None


def _marked(step: SagaStep, state: StepState, note: str | None) -> Mark:
    return Mark(key=step.key, seen=step.state, state=state, note=note)


def _move(left: Sequence[Standing], now: Instant) -> Move:
    """Cancel what is open, settle what is doubtful, then take back what ended last."""
    begun = [(it, it.effect) for it in left if it.effect is not None]
    unsure = [(it, effect) for it, effect in begun if effect.life.state != "succeeded"]
    for standing, effect in unsure:
        if effect.life.state == "pending" and not effect.life.unresolved():
            return Cancel(standing.step.key)
    if unsure:
        return min((_settle(standing, effect, now) for standing, effect in unsure), key=_urgency)
    if not begun:
        return Done()
    last, effect = max(begun, key=_end)
    return _take_back(last, effect, now)


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


def _settle(standing: Standing, effect: Effect, now: Instant) -> Move:
    """Say how it becomes known whether a step was done."""
    arguments = arguments_of(effect.edited or effect.intent.arguments)
    call = Due(purpose="settle", standing=standing, arguments=arguments)
    move = _tried(call, effect, standing.rules, now)
    is_lost = isinstance(move, Due) and _is_redacted(arguments)
    return Stuck(call.key, "the step cannot be run again: arguments of it are redacted") if is_lost else move


def _take_back(standing: Standing, effect: Effect, now: Instant) -> Move:
    """Say how a step that was done is taken back."""
    taken_back = standing.compensation
    if taken_back is not None and taken_back.life.state == "failed":
        return Stuck(standing.step.key, f"its compensation was refused{_said(taken_back)}")
    try:
        arguments = compensation_arguments(standing.step, effect)
    except Refusal as refusal:
        return Stuck(standing.step.key, f"the arguments of its compensation cannot be made: {refusal.reason}")
    call = Due(purpose="compensate", standing=standing, arguments=arguments)
    return call if taken_back is None else _tried(call, taken_back, standing.compensation_rules, now)


def compensation_arguments(step: SagaStep, effect: Effect) -> dict[str, object]:
    """Render the arguments that take back a step which was done. Raises Refusal where something is not on record."""
    if effect.expired_at is not None:
        raise Refusal("the record of the step has expired")
    known = known_of(effect)
    template: dict[str, JsonValue] = {} if step.compensation is None else step.compensation.arguments
    for place, expression in unfound(template, known):
        kept = "" if "result" in known else ", and the result of the step was not kept"
        raise Refusal(f"`${{{expression}}}` at {pointer(place)} finds nothing{kept}")
    filled: dict[str, object] = {name: rendered(member, known) for name, member in template.items()}
    if _is_redacted(filled):
        raise Refusal("the template takes what is redacted in the record")
    return filled


def known_of(effect: Effect) -> Known:
    """Return what a template may name of an effect; a result that was not kept is not among it."""
    intent = effect.intent
    known: dict[str, JsonValue] = {
        "arguments": msgspec.json.decode(effect.edited or intent.arguments),
        "key": intent.key.hex(),
        "downstream_key": downstream_key(intent.key, effect.life.epoch),
        "run": intent.run,
        "step": intent.step,
        "tool": intent.tool,
    }
    outcome = None if effect.outcome is None else msgspec.json.decode(effect.outcome, type=Outcome)
    if outcome is not None and outcome.result is not msgspec.UNSET and not _is_opaque(outcome.result):
        known["result"] = cast("JsonValue", outcome.result)
    return known


def _is_redacted(arguments: dict[str, object]) -> bool:
    return REDACTED.encode() in msgspec.json.encode(arguments)


def _is_opaque(result: object) -> bool:
    return isinstance(result, dict) and "$opaque" in result


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
