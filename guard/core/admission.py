"""May this call begin? The comparison of a call with the effect that its key names, then the state machine."""

import msgspec

from guard.core.effects import Effect, Instant
from guard.core.lease import Rules
from guard.core.lifecycle import Decision, decide
from guard.core.situation import Event


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What must agree between a call and an effect."""

    tool: str
    identity_digest: bytes
    arguments_digest: bytes


class OtherTool(msgspec.Struct, frozen=True):
    """The key belongs to another tool."""


class OtherArguments(msgspec.Struct, frozen=True):
    """The key was used with another identity."""


class NextGeneration(msgspec.Struct, frozen=True):
    """The effect is over for this call, which is a new instance of the slot."""


class Expired(msgspec.Struct, frozen=True):
    """The effect is final, and only its digests are left."""


Admission = Decision | OtherTool | OtherArguments | NextGeneration | Expired


def admit(effect: Effect, call: Call, event: Event, rules: Rules, now: Instant) -> Admission:
    """Say what becomes of a call whose key names an effect that exists."""
    if effect.intent.tool != call.tool:
        return OtherTool()
    if effect.life.state == "failed" and effect.intent.arguments_digest != call.arguments_digest:
        return NextGeneration()
    if effect.intent.identity_digest != call.identity_digest:
        return OtherArguments()
    if is_over(effect, event, rules, now):
        return NextGeneration()
    if effect.expired_at is not None:
        return Expired()
    return decide(effect.life, event, rules, now)


def is_over(effect: Effect, event: Event, rules: Rules, now: Instant) -> bool:
    """Say whether a final effect makes room for a new instance of its slot. Never for an attempt of its own."""
    ended_at, is_succeeded = effect.life.ended_at, effect.life.state == "succeeded"
    if ended_at is None or not effect.is_final:
        return False
    if event.token is not None and effect.life.attempt(event.token) is not None:
        return False
    if rules.window is not None and ended_at + rules.window <= now:
        return True
    is_known = rules.effect_class == "idempotent" and effect.delivered
    return is_succeeded and (is_known or rules.repeat != "replay")


def has_drifted(effect: Effect, call: Call) -> bool:
    """Say whether a call with the same identity has other content than the record."""
    return effect.intent.arguments_digest != call.arguments_digest
