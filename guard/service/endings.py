"""How an effect ends that a person did not let run: the error that its calls are answered with from then on."""

from collections.abc import Generator
from typing import Literal, assert_never

import msgspec

from guard.core.approvals import Approval
from guard.core.effects import Effect, Instant
from guard.core.lifecycle import Decision, decide
from guard.core.situation import Event
from guard.ports.steps import Found, HoldGone, Look, Overruled, Replace, RunClosed, Sibling, Step, StepResult, Written
from guard.service.amend import Amendment
from guard.service.naming import NamedCall
from guard.service.outcomes import BeginOutcome, Replayed
from guard.service.reconsider import CANCELLED
from guard.service.ruling import barred
from guard.service.verdicts import refusal
from twiceshy_contract.effects import Outcome
from twiceshy_contract.outcomes import ErrorOutcome

DENIED_TYPE = "ApprovalDenied"
"""The type of the error that a denied effect is answered with."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """Why an effect ends without having run: its outcome (JSON text), and how the record words it."""

    event: Literal["denied", "cancelled"]
    outcome: bytes
    resolution: str


def ending_of(approval: Approval) -> Ending | None:
    """Return how an approval ends its effect; None where it does not."""
    denial = approval.denial
    if approval.decided == "denied" and denial is not None:
        message = denial.reason or f"{denial.person} denied it and gave no reason"
        outcome = _outcome(DENIED_TYPE, message, approval, denial.person)
        return Ending(event="denied", outcome=outcome, resolution=f"denied by {denial.person}: {message}")
    if approval.decided == "cancelled" and not approval.is_withdrawn:
        reason, by = approval.cancel_reason or "the question was taken back", approval.cancelled_by
        whose = "" if by is None else f" by {by}"
        outcome = _outcome(CANCELLED, reason, approval, by)
        return Ending(event="cancelled", outcome=outcome, resolution=f"cancelled{whose}: {reason}")
    return None


def _outcome(kind: str, message: str, approval: Approval, by: str | None) -> bytes:
    data = {"approval": str(approval.id), "by": by}
    return msgspec.json.encode(Outcome(error=ErrorOutcome(type=kind, message=message, data=data)))


def amendment_of(approval: Approval, ending: Ending) -> Amendment:
    """Return what an approval's end writes on its effect."""

    def change(effect: Effect, _decision: Decision, _at: Instant) -> Effect:
        return _ended(effect, ending)

    return Amendment(key=approval.question.key, event=Event(name=ending.event), change=change)


def end(call: NamedCall, ending: Ending) -> Generator[Step, StepResult, BeginOutcome]:
    """End the effect that a call names, which may be new, and answer the call with that; unless it is over already."""
    found: StepResult = yield Look(key=call.key(call.start))
    while True:
        match found:
            case Written(effect=effect):
                return Replayed(effect=effect, drift=(), is_shared=call.is_of_another_run(effect))
            case RunClosed() | Sibling() | HoldGone() | Overruled():
                return barred(call, found)
            case Found():
                effect = found.effect or _asked(call, found.at)
            case _:
                assert_never(found)
        if effect.is_final:
            return Replayed(effect=effect, drift=(), is_shared=call.is_of_another_run(effect))
        decision = decide(effect.life, Event(name=ending.event), call.rules, found.at)
        if decision.verdict != "done":
            return refusal(decision.verdict, effect, call.rules, found.at)
        ended = _ended(msgspec.structs.replace(effect, life=decision.life), ending)
        found = yield Replace(seen=effect.version, effect=ended, open_run=None if effect.version else call.run_id)


def _asked(call: NamedCall, at: Instant) -> Effect:
    """Return the effect as it would be while a person is asked."""
    waiting = decide(None, Event(name="begin", approval="open"), call.rules, at).life
    return Effect(version=0, intent=call.intent(call.start), life=waiting)


def _ended(effect: Effect, ending: Ending) -> Effect:
    return msgspec.structs.replace(effect, outcome=ending.outcome, resolution=ending.resolution)
