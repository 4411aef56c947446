"""Finish: tell the service what the tool did, until it has heard, and tell the caller the same."""

from typing import Final

import msgspec

from twiceshy._answers import Effect
from twiceshy._ask import Answered, ask
from twiceshy._begin import Granted
from twiceshy._calls import ToolCall
from twiceshy._classify import Judgement, judge
from twiceshy._effect import CurrentEffect
from twiceshy._environment import Environment
from twiceshy._report import failure_body
from twiceshy._results import commit_body, opaque_body, warn_of_change
from twiceshy._said import kind_of
from twiceshy._seen import Delivery, Seen, is_lease_lost, undelivered
from twiceshy._steps import Flow, Raised, Returned
from twiceshy._transports.base import Request
from twiceshy_contract.names import EffectClass
from twiceshy_contract.problems import Problem

_EFFECT: Final = msgspec.json.Decoder(Effect)
_HURRIED_SECONDS = 2.0


def finish_returned(environment: Environment, call: ToolCall, granted: Granted, value: object) -> Flow[Returned]:
    """Commit what the tool returned."""
    effect = granted.effect
    body = commit_body(value, effect.reference)
    delivery = yield from _deliver(environment, effect, "commit", body, is_hurried=False)
    if isinstance(delivery, Problem) and delivery.code in ("invalid-request", "too-large"):
        body = opaque_body(value, effect.reference, f"the service refused it: {delivery.detail}")
        delivery = yield from _deliver(environment, effect, "commit", body, is_hurried=False)
    if not isinstance(delivery, Answered):
        raise undelivered(delivery, effect, Returned(value))
    if call.spec.name not in environment.checked:
        environment.checked.add(call.spec.name)
        warn_of_change(value, body, call.spec)
    return Returned(value)


def finish_raised(
    environment: Environment, call: ToolCall, granted: Granted, error: BaseException, effect_class: EffectClass
) -> Flow[Raised]:
    """Report what the tool's exception means, and return what the caller is to see."""
    effect = granted.effect
    judgement = judge(error, call.spec, effect.sending_state)
    is_hurried = not issubclass(type(error), Exception) or is_lease_lost(error, effect)
    try:
        delivery = yield from _report(environment, effect, judgement, error, is_hurried=is_hurried)
    except GeneratorExit:
        raise
    except BaseException as interruption:
        if interruption is not error and interruption.__context__ is None:
            interruption.__context__ = error
        raise
    seen = Seen(call.spec, effect, effect_class, judgement, delivery)
    if effect.inner_doubt is not None and seen.is_doubtful:
        environment.inner_doubts[effect.key] = effect.inner_doubt
    return Raised(seen.by_caller(error))


def _report(
    environment: Environment, effect: CurrentEffect, judgement: Judgement, error: BaseException, *, is_hurried: bool
) -> Flow[Delivery]:
    """Report what the tool's exception means."""
    if judgement == "succeeded":
        body = opaque_body(error, effect.reference, f"the tool raised {kind_of(error)} after it had sent")
        return (yield from _deliver(environment, effect, "commit", body, is_hurried=is_hurried))
    body = failure_body(effect, judgement, error)
    return (yield from _deliver(environment, effect, "fail", body, is_hurried=is_hurried))


def _deliver(
    environment: Environment, effect: CurrentEffect, verb: str, body: bytes, *, is_hurried: bool
) -> Flow[Delivery]:
    """Send an outcome until it is taken, finally refused, or the time for it is up."""
    effect.is_reported = True
    now = environment.clock()
    patience = max(environment.limits.deliver_seconds, effect.lease.seconds_left(now))
    request = Request(method="POST", path=f"/v1/effects/{effect.key}/{verb}", body=body)
    until = now + (_HURRIED_SECONDS if is_hurried else patience)
    return (yield from ask(environment, request, _EFFECT, until=until))
