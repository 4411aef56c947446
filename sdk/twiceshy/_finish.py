"""Finish: tell the service what the tool did, until it has heard, and tell the caller the same."""

from typing import Final

import msgspec

from twiceshy._answers import Effect
from twiceshy._ask import Answered, Unanswered, ask
from twiceshy._begin import Granted, in_doubt
from twiceshy._calls import ToolCall
from twiceshy._classify import Judgement, judge
from twiceshy._effect import CurrentEffect
from twiceshy._environment import Environment
from twiceshy._results import commit_body, error_outcome, opaque_body, warn_of_change
from twiceshy._steps import Flow, Raised, Returned
from twiceshy._transports.base import Request
from twiceshy.exceptions import (
    LeaseLost,
    NotApplied,
    OutcomeError,
    OutcomeNotDelivered,
    Superseded,
)
from twiceshy_contract.effects import FailRequest
from twiceshy_contract.names import EffectClass
from twiceshy_contract.problems import Problem

Delivery = Answered[Effect] | Problem | Unanswered
_EFFECT: Final = msgspec.json.Decoder(Effect)
_HURRIED_SECONDS = 2.0
_TOLD_SECONDS = 86_400.0


def finish_returned(environment: Environment, call: ToolCall, granted: Granted, value: object) -> Flow[Returned]:
    """Commit what the tool returned."""
    effect = granted.effect
    body = commit_body(value, effect.reference)
    delivery = yield from _deliver(environment, effect, "commit", body, is_hurried=False)
    if isinstance(delivery, Problem) and delivery.code in ("invalid-request", "too-large"):
        body = opaque_body(value, effect.reference, f"the service refused it: {delivery.detail}")
        delivery = yield from _deliver(environment, effect, "commit", body, is_hurried=False)
    if not isinstance(delivery, Answered):
        raise _undelivered(delivery, effect, Returned(value))
    if call.spec.name not in environment.checked:
        environment.checked.add(call.spec.name)
        warn_of_change(value, body, call.spec)
    return Returned(value)


def finish_raised(
    environment: Environment, call: ToolCall, granted: Granted, error: BaseException, effect_class: EffectClass
) -> Flow[Raised]:
    """Report what the tool's exception means, and return what the caller is to see."""
    effect = granted.effect
    judgement = judge(error, call.spec, effect.sending_state, effect_class)
    is_final = not isinstance(error, Exception) or _is_lease_lost(error, effect)
    if judgement == "succeeded":
        body = opaque_body(error, effect.reference, f"the tool raised {type(error).__name__} after it had sent")
        delivery = yield from _deliver(environment, effect, "commit", body, is_hurried=is_final)
    else:
        body = msgspec.json.encode(_failure(effect, judgement, error))
        delivery = yield from _deliver(environment, effect, "fail", body, is_hurried=is_final)
    if is_final:
        error.add_note(f"twiceshy: effect {effect.key} of {effect.reference.tool} was reported as {judgement}.")
        return Raised(error)
    return Raised(_seen_by_caller(call, effect, error, judgement, delivery))


def _deliver(
    environment: Environment, effect: CurrentEffect, verb: str, body: bytes, *, is_hurried: bool
) -> Flow[Delivery]:
    """Send an outcome until it is taken, finally refused, or the time for it is up."""
    now = environment.clock()
    patience = max(environment.limits.deliver_seconds, effect.lease.seconds_left(now))
    request = Request(method="POST", path=f"/v1/effects/{effect.key}/{verb}", body=body)
    until = now + (_HURRIED_SECONDS if is_hurried else patience)
    return (yield from ask(environment, request, _EFFECT, until=until))


def _failure(effect: CurrentEffect, judgement: Judgement, error: BaseException) -> FailRequest:
    retry_after = error.retry_after if isinstance(error, NotApplied) and judgement == "not_applied" else None
    return FailRequest(
        attempt=effect.attempt,
        fence=effect.fence,
        kind="unknown" if judgement == "succeeded" else judgement,
        error=error_outcome(error),
        retry_after=None if retry_after is None else min(max(0.0, retry_after), _TOLD_SECONDS),
    )


def _is_lease_lost(error: BaseException, effect: CurrentEffect) -> bool:
    return isinstance(error, LeaseLost) and error.key == effect.key


def _seen_by_caller(
    call: ToolCall, effect: CurrentEffect, error: BaseException, judgement: Judgement, delivery: Delivery
) -> BaseException:
    state = delivery.value.state if isinstance(delivery, Answered) else None
    if state == "in_doubt" or (judgement == "unknown" and state is None and not _is_superseded(delivery)):
        doubt = in_doubt(effect.reference, _doubtful(effect, error), call.spec.rules.on_doubt)
        return _caused(doubt, error)
    if not isinstance(delivery, Answered):
        return _caused(_undelivered(delivery, effect, Raised(error)), error)
    error.add_note(f"twiceshy: {_note(delivery.value, judgement)} The effect is {effect.key}.")
    return error


def _note(answer: Effect, judgement: Judgement) -> str:
    match judgement:
        case "succeeded":
            return "the tool had sent before it raised, so it counts as done; a replay raises ResultNotKept."
        case "rejected":
            return "it was rejected for good; the same call will raise this again."
        case "not_applied" | "unknown":
            seconds = answer.retry_after_seconds
            when = f" not before {seconds:.3g} seconds from now" if seconds else ""
            return f"nothing was applied; the same call will try again{when}."


def _doubtful(effect: CurrentEffect, error: BaseException) -> str:
    raised = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return (
        f"Nobody knows whether {effect.reference.tool} happened: it raised {raised}. Do not retry; find out at the "
        f"provider and settle effect {effect.key}."
    )


def _caused(new: BaseException, cause: BaseException) -> BaseException:
    new.__cause__ = cause
    return new


def _is_superseded(delivery: Delivery) -> bool:
    return isinstance(delivery, Problem) and delivery.code == "superseded"


def _undelivered(delivery: Problem | Unanswered, effect: CurrentEffect, outcome: Returned | Raised) -> OutcomeError:
    """Say that the record does not hold what the tool did, and what to save."""
    reference = effect.reference
    has_result = isinstance(outcome, Returned)
    result = outcome.value if isinstance(outcome, Returned) else None
    did = "ran and returned" if has_result else "ran and raised"
    kind: type[OutcomeError]
    if isinstance(delivery, Problem) and delivery.code == "superseded":
        kind, why = Superseded, "another attempt has settled the effect meanwhile. Call again to read the record"
    elif isinstance(delivery, Problem) and delivery.code == "lease-lost":
        kind, why = LeaseLost, f"the service says: {delivery.detail} Do not act again; call again and obey the answer"
    else:
        said = delivery.detail if isinstance(delivery, Problem) else delivery.reason
        kind, why = (
            OutcomeNotDelivered,
            (
                f"the service could not be told ({said}). Save this error's `result`, then settle the effect with "
                f"`twiceshy effects resolve {reference.key} --as applied --reason ... --result ...`"
                if has_result
                else f"the service could not be told ({said}). The effect will be in doubt when its lease ends; settle "
                f"it with `twiceshy effects resolve {reference.key} ...`"
            ),
        )
    return kind(
        f"{reference.tool} {did}, but {why}. Effect {reference.key}, attempt {reference.attempt}, fence "
        f"{reference.fence}.",
        effect=reference,
        result=result,
        has_result=has_result,
    )
