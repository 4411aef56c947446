"""Finish: tell the service what the tool did, until it has heard, and tell the caller the same."""

from twiceshy._ask import Answered
from twiceshy._begin import Granted
from twiceshy._calls import ToolCall
from twiceshy._classify import Judgement, judge
from twiceshy._delivery import Delivery, Spooled, deliver
from twiceshy._effect import CurrentEffect
from twiceshy._environment import Environment
from twiceshy._lesser import without_data
from twiceshy._replies import is_about_the_body
from twiceshy._report import failure_body
from twiceshy._results import commit_body, opaque_body, warn_of_change
from twiceshy._said import kind_of
from twiceshy._seen import Seen, is_lease_lost, undelivered
from twiceshy._steps import Flow, Returned
from twiceshy_contract.problems import Problem


def finish_returned(environment: Environment, call: ToolCall, granted: Granted, value: object) -> Flow[None]:
    """Commit what the tool returned."""
    effect = granted.effect
    body = commit_body(value, effect.reference, effect.staged)
    delivery = yield from deliver(environment, effect, "succeeded", body, is_hurried=False)
    if isinstance(delivery, Problem) and is_about_the_body(delivery):
        body = opaque_body(value, effect.reference, f"the service refused it: {delivery.detail}", effect.staged)
        delivery = yield from deliver(environment, effect, "succeeded", body, is_hurried=False)
    if not isinstance(delivery, (Answered, Spooled)):
        raise undelivered(delivery, effect, Returned(value))
    if call.spec.name not in environment.checked:
        environment.checked.add(call.spec.name)
        warn_of_change(value, body, call.spec)


def finish_raised(environment: Environment, call: ToolCall, granted: Granted, error: BaseException) -> Flow[Seen]:
    """Report what the tool's exception means, and return how that stands."""
    effect = granted.effect
    judgement = judge(error, call.spec, effect.sending_state, effect.requests)
    is_hurried = not issubclass(type(error), Exception) or is_lease_lost(error, effect)
    try:
        delivery = yield from _report(environment, effect, judgement, error, is_hurried=is_hurried)
    except GeneratorExit:
        raise
    except BaseException as interruption:
        if interruption is not error and interruption.__context__ is None:
            interruption.__context__ = error
        raise
    seen = Seen(call.spec, effect, judgement, delivery, error)
    if effect.inner_doubt is not None and seen.is_doubtful:
        environment.inner_doubts[effect.key] = effect.inner_doubt
    return seen


def _report(
    environment: Environment, effect: CurrentEffect, judgement: Judgement, error: BaseException, *, is_hurried: bool
) -> Flow[Delivery]:
    """Report what the tool's exception means; where the service cannot take the error's data, once more without."""
    if judgement == "succeeded":
        why = f"the tool raised {kind_of(error)} after it had sent"
        body = opaque_body(error, effect.reference, why, effect.staged)
        return (yield from deliver(environment, effect, judgement, body, is_hurried=is_hurried))
    body = failure_body(effect, judgement, error)
    delivery = yield from deliver(environment, effect, judgement, body, is_hurried=is_hurried)
    less = without_data(body) if isinstance(delivery, Problem) and is_about_the_body(delivery) else None
    if less is None:
        return delivery
    return (yield from deliver(environment, effect, judgement, less, is_hurried=is_hurried))
