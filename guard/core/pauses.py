"""A pause: a call at which a fork stopped, and what a person answered it.

An answer is bound to the call that was asked about. An outcome and a no hold for whatever names the same effect, in
other words too; a yes holds for these very arguments, and is spent by the attempts of that one effect.
"""

from typing import Literal

import msgspec

from guard.core.effects import AttemptToken, Instant, Key, RunId, TenantId
from guard.core.policy import Answered
from twiceshy_contract.forks import PauseWord
from twiceshy_contract.policy import PolicyRule


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """A call that stopped a fork: its key there, its arguments (JSON text, as they may be stored), and why it did."""

    run: RunId
    tenant: TenantId
    key: Key
    tool: str
    arguments: bytes
    identity_digest: bytes
    arguments_digest: bytes
    rule: PolicyRule


class PauseAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said: `outcome` (JSON text) where they gave one, the reason where they gave that."""

    word: PauseWord
    outcome: bytes | None = None
    reason: str | None = None


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """A stop as it is kept, what was answered, and which attempt was first to use that."""

    stop: Stop
    at: Instant
    answer: PauseAnswer | None = None
    answered_by: str | None = None
    answered_at: Instant | None = None
    spent_by: AttemptToken | None = None


_WORDS: dict[PauseWord, Literal["injected", "denied", "allowed"]] = {
    "inject": "injected", "deny": "denied", "allow": "allowed",
}  # fmt: skip


def answered(pause: Pause | None, stop: Stop, *, is_let: bool = False) -> Answered:
    """Say what a person answered a call that is this stop, should it stop again.

    Where its effect `is_let` run already, a yes holds for it in other words too: how it stands is the effect's to say.
    """
    if pause is None or pause.answer is None or pause.stop.identity_digest != stop.identity_digest:
        return "nothing"
    word = _WORDS[pause.answer.word]
    is_same = pause.stop.arguments_digest == stop.arguments_digest
    return "nothing" if word == "allowed" and not (is_same or is_let) else word


def may_give_way(pause: Pause, stop: Stop) -> bool:
    """Say whether another stop at the same key takes the place of a pause: it asks about a call not answered yet."""
    if pause.spent_by is not None or answered(pause, stop) != "nothing":
        return False
    return pause.answer is not None or pause.stop.arguments_digest != stop.arguments_digest


def is_given(pause: Pause, token: AttemptToken, repeats: str) -> bool:
    """Say whether an injected outcome was given to another call already, of a tool whose calls all count."""
    is_injected = pause.answer is not None and pause.answer.word == "inject"
    return is_injected and repeats != "replay" and pause.spent_by not in (None, token)
