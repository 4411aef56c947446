"""The arguments of a compensation: a template over the record of a step that was done, never guessed."""

from typing import Final, cast

import msgspec

from guard.core.effects import Effect
from guard.core.keys import downstream_key
from guard.core.templates import Known, rendered, unfound
from twiceshy_contract.canonical import canonical
from twiceshy_contract.effects import Outcome
from twiceshy_contract.policies import Compensation
from twiceshy_contract.redaction import REDACTED
from twiceshy_contract.refusals import JsonValue, Refusal, pointer, steps_of

_ANOTHER_MARK: Final = "[another redacted value]"
_EVERY: Final = "*"
_PREFIX: Final = "compensate:"


def step_name(key: str) -> str:
    """Return the step under which the compensation of an effect is begun, whose key is written so."""
    return f"{_PREFIX}{key}"


def is_reserved(step: str) -> bool:
    """Say whether a step is one under which only a compensation may begin."""
    return step.startswith(_PREFIX)


def compensation_arguments(
    compensation: Compensation | None, effect: Effect, redacted: tuple[str, ...] = ()
) -> dict[str, object]:
    """Render the arguments that take back a step which was done; `redacted` are the places that are not stored of it.

    Raises Refusal where something is not on record, or no expression makes arguments of it.
    """
    if effect.expired_at is not None:
        raise Refusal("the record of the step has expired")
    known = known_of(effect)
    template: dict[str, JsonValue] = {} if compensation is None else compensation.arguments
    for place, expression in unfound(template, known):
        kept = "" if "result" in known else ", and the result of the step was not kept"
        raise Refusal(f"`${{{expression}}}` at {pointer(place)} finds nothing{kept}")
    filled = _filled(template, known)
    canonical(filled)
    if holds_mark(known["arguments"], redacted):
        other: JsonValue = cast("JsonValue", remarked(known["arguments"], redacted))
        if _filled(template, {**known, "arguments": other}) != filled:
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


def holds_mark(arguments: object, places: tuple[str, ...]) -> bool:
    """Say whether recorded arguments hold the mark in one of the places (JSON Pointers) that are not stored."""
    return remarked(arguments, places) != arguments


def remarked(arguments: object, places: tuple[str, ...]) -> object:
    """Return recorded arguments with another mark in each of these places that holds the mark."""
    for place in places:
        arguments = _remarked(arguments, steps_of(place))
    return arguments


def _remarked(value: object, steps: tuple[str, ...]) -> object:
    """Mark anew what is left out at a place, or above it where the value has another shape than the place expects."""
    if value == REDACTED:
        return _ANOTHER_MARK
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        meant = (step, f"${step}")
        return {
            name: _remarked(member, rest) if step == _EVERY or name in meant else member
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_remarked(item, rest) if step in (_EVERY, str(at)) else item for at, item in enumerate(value)]
    return value


def _filled(template: dict[str, JsonValue], known: Known) -> dict[str, object]:
    return {name: rendered(member, known) for name, member in template.items()}


def _is_opaque(result: object) -> bool:
    return isinstance(result, dict) and "$opaque" in result
