"""Sagas as answers: from what the service says to the wire structs."""

from typing import Final, TypedDict

from guard.core.compensations import step_name
from guard.core.effects import SECOND, Effect, Instant
from guard.core.sagas import Move, Saga, Standing, Stuck, Wait, due_of
from guard.service.sagas import Looked
from guard.web.instants import rfc3339, rfc3339_or_none, seconds_between
from guard.web.wire import wire_key
from twiceshy_contract.names import PublicState
from twiceshy_contract.sagas import (
    NextAnswer,
    SagaMove,
    SagaState,
    SagaStepView,
    SagaSummary,
    SagaView,
    SagaWait,
)

_LONGEST_WAIT: Final = 1.0
"""A look is cheap, and what a saga waits for may end before its time."""
_LOOK_AGAIN: Final = 60.0
"""When to look again at what a person must see to."""


class _Summary(TypedDict):
    saga: str
    run: str
    state: SagaState
    reason: str | None
    deadline: str | None
    started_at: str
    failed_at: str | None
    ended_at: str | None


def saga_summary(saga: Saga) -> SagaSummary:
    """Return a saga as a line of a listing."""
    return SagaSummary(**_summary(saga))


def saga_view(looked: Looked) -> SagaView:
    """Return a saga with its steps."""
    return SagaView(
        **_summary(looked.saga),
        steps=tuple(_step(standing) for standing in looked.standings),
        due=_due(looked.saga, looked.move),
        waits=_waits(looked.move, looked.record.at),
    )


def next_answer(looked: Looked) -> NextAnswer:
    """Return what a saga needs next."""
    marked = {mark.key: mark.state for mark in looked.plan.marks}
    left = [it.step for it in looked.standings if marked.get(it.step.key, it.step.state) == "uncompensated"]
    return NextAnswer(
        **_summary(looked.saga),
        due=_due(looked.saga, looked.move),
        waits=_waits(looked.move, looked.record.at),
        uncompensated=tuple(f"{step.tool} ({step.key.hex()})" for step in left),
    )


def _summary(saga: Saga) -> _Summary:
    return {
        "saga": saga.name,
        "run": saga.run,
        "state": saga.state,
        "reason": saga.reason,
        "deadline": rfc3339_or_none(saga.deadline),
        "started_at": rfc3339(saga.started_at),
        "failed_at": rfc3339_or_none(saga.failed_at),
        "ended_at": rfc3339_or_none(saga.ended_at),
    }


def _step(standing: Standing) -> SagaStepView:
    step = standing.step
    return SagaStepView(
        number=step.number,
        key=wire_key(step.key),
        tool=step.tool,
        state=step.state,
        effect=_state(standing.effect),
        compensation=None if step.compensation is None else step.compensation.tool,
        compensation_key=None if step.compensation_key is None else wire_key(step.compensation_key),
        compensation_effect=_state(standing.compensation),
        enlisted_at=rfc3339(step.enlisted_at),
        note=step.note,
    )


def _state(effect: Effect | None) -> PublicState | None:
    return None if effect is None else effect.life.state


def _due(saga: Saga, move: Move | None) -> SagaMove | None:
    """Return the call that is due: the step again as it was begun, or its compensation under the step's name."""
    due = due_of(move)
    if due is None:
        return None
    step, effect = due.standing.step, due.standing.effect
    key = wire_key(step.key)
    if due.purpose == "compensate" and step.compensation is not None:
        return SagaMove(
            purpose="compensate",
            key=key,
            tool=step.compensation.tool,
            arguments=due.arguments,
            run=saga.run,
            step=step_name(key),
            business_key=None,
            occurrence=step.round,
        )
    intent = None if effect is None else effect.intent
    return SagaMove(
        purpose="settle",
        key=key,
        tool=step.tool,
        arguments=due.arguments,
        run=saga.run,
        step=None if intent is None else intent.caller_step,
        business_key=None if intent is None else intent.business_key,
        occurrence=1 if intent is None else intent.occurrence,
    )


def _waits(move: Move | None, now: Instant) -> SagaWait | None:
    match move:
        case Wait(key=key, why=why, until=until):
            left = min(seconds_between(now, until), _LONGEST_WAIT)
            return SagaWait(key=wire_key(key), why=why, retry_after_seconds=max(left, 1000 / SECOND))
        case Stuck(key=key, why=why):
            return SagaWait(key=wire_key(key), why=why, retry_after_seconds=_LOOK_AGAIN)
        case _:
            return None
