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
    """The effect was rejected with other arguments; these are a new instance of the slot."""


Admission = Decision | OtherTool | OtherArguments | NextGeneration


def admit(effect: Effect, call: Call, event: Event, rules: Rules, now: Instant) -> Admission:
    """Say what becomes of a call whose key names an effect that exists."""
    if effect.intent.tool != call.tool:
        return OtherTool()
    if effect.life.state == "failed" and effect.intent.arguments_digest != call.arguments_digest:
        return NextGeneration()
    if effect.intent.identity_digest != call.identity_digest:
        return OtherArguments()
    return decide(effect.life, event, rules, now)


def has_drifted(effect: Effect, call: Call) -> bool:
    """Say whether a call with the same identity has other content than the record."""
    return effect.intent.arguments_digest != call.arguments_digest
