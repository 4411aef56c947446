"""May this call begin? The comparison of a call with the effect that its key names, then the state machine."""

import msgspec
from msgspec.structs import replace

from guard.core.effects import NEVER_GRANTED, Effect, Instant
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
    is_other_call = effect.life.state == "failed" and effect.intent.arguments_digest != call.arguments_digest
    if is_other_call and not _is_own(effect, event):
        return NextGeneration()
    if effect.intent.identity_digest != call.identity_digest:
        return OtherArguments()
    if is_over(effect, event, rules, now):
        return NextGeneration()
    if effect.expired_at is not None:
        return Expired()
    return decide(effect.life, event, rules, now)


def is_over(effect: Effect, event: Event, rules: Rules, now: Instant) -> bool:
    """Say whether a final effect makes room for a new instance of its slot. Never for an attempt of its own.

    A window that has passed does so however the effect ended; so does the caller's knowledge of what an idempotent tool
    said, unless the caller has given the intent a name of its own; and success, where its tool may repeat or asks.
    Where calls are counted, none makes room: a later instance is asked for by its number.
    """
    life = effect.life
    if life.ended_at is None or not effect.is_final or rules.is_counted or _is_own(effect, event):
        return False
    if _is_window_passed(life.ended_at, rules, now):
        return True
    is_succeeded = life.state == "succeeded"
    is_known = effect.delivered and effect.intent.rule == "once" and (is_succeeded or _is_rejected(effect))
    if is_known and rules.effect_class == "idempotent":
        return True
    return is_succeeded and rules.repeat != "replay"


def makes_room(effect: Effect, call: Call, event: Event, rules: Rules, now: Instant) -> bool:
    """Say whether a call of a token that never held the effect's lease might be granted one of a later instance."""
    own = None if event.token is None else effect.life.attempt(event.token)
    if own is not None and own.fence > NEVER_GRANTED:
        return False
    return isinstance(admit(effect, call, replace(event, token=None), rules, now), NextGeneration)


def is_repeat(succeeded_at: Instant | None, rules: Rules, now: Instant) -> bool:
    """Say whether a new instance of a slot, whose last success ended then, does again what has been done."""
    return succeeded_at is not None and not _is_window_passed(succeeded_at, rules, now)


def _is_window_passed(ended_at: Instant, rules: Rules, now: Instant) -> bool:
    return rules.window is not None and ended_at + rules.window <= now


def _is_own(effect: Effect, event: Event) -> bool:
    return event.token is not None and effect.life.attempt(event.token) is not None


def _is_rejected(effect: Effect) -> bool:
    """Say whether the tool itself refused, and not a person, whose word may come after an attempt's."""
    life = effect.life
    return any(one.report == "rejected" and one.reported_at == life.ended_at for one in life.attempts)


def has_drifted(effect: Effect, call: Call) -> bool:
    """Say whether a call with the same identity has other content than the record."""
    return effect.intent.arguments_digest != call.arguments_digest
