"""Arithmetic of leases: deadlines, backoff, settle time, the provider's window. All pure."""

from typing import Final

import msgspec
from msgspec.structs import replace

from guard.core.effects import SECOND, AttemptToken, Duration, Instant, Life
from twiceshy_contract.names import EffectClass, Repeat

SETTLE: Final = Duration(10 * SECOND)
"""How long a request that was sent before an attempt's end may still reach the provider."""
MAX_BACKOFF: Final = Duration(60 * SECOND)
STRICTNESS: Final[tuple[EffectClass, ...]] = ("read", "idempotent", "side_effect")
"""The classes; each allows less than the one before it."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the tool's declaration says about the life of its effects.

    `window` slides from an effect's end: after it the same intent is a new one. Where `is_counted`, each call says
    which of its like it is: no other one is meant by it, whatever has ended.
    """

    effect_class: EffectClass = "side_effect"
    lease: Duration = Duration(30 * SECOND)
    attempts: int = 5
    backoff: Duration = Duration(SECOND)
    provider_window: Duration | None = None
    settle: Duration = SETTLE
    repeat: Repeat = "replay"
    window: Duration | None = None
    is_counted: bool = False


def stricter(one: EffectClass, other: EffectClass) -> EffectClass:
    """Return the class of the two that allows less."""
    return max(one, other, key=STRICTNESS.index)


def narrowed(today: Rules, named_by: Rules) -> Rules:
    """Return today's rules as far as they do not say which calls are the same: that, the version of the name says.

    And no more is allowed than that version promises: no lower class, no more of a provider's window.
    """
    provider_window = None
    if today.provider_window is not None and named_by.provider_window is not None:
        provider_window = min(today.provider_window, named_by.provider_window)
    return replace(
        today,
        effect_class=stricter(today.effect_class, named_by.effect_class),
        window=named_by.window,
        repeat=named_by.repeat,
        provider_window=provider_window,
    )


def deadline(now: Instant, lease: Duration) -> Instant:
    """Return when a lease granted now ends."""
    return Instant(now + lease)


def retry_at(now: Instant, tries: int, rules: Rules, jitter: float) -> Instant:
    """Return when to try again: full jitter (0 ≤ `jitter` < 1) below a backoff that doubles with each try.

    Full jitter as in Marc Brooker, Exponential Backoff And Jitter, 2015.
    """
    ceiling = min(MAX_BACKOFF, rules.backoff * 2 ** min(max(tries - 1, 0), 32))
    return Instant(now + int(ceiling * jitter))


def settles_at(life: Life, rules: Rules, besides: AttemptToken | None = None) -> Instant | None:
    """Return from when on word that nothing was applied is believed; None where no attempt is unresolved."""
    ends = [attempt.ended_at for attempt in life.unresolved(besides)]
    return Instant(max(ends) + rules.settle) if ends else None


def is_rerun_harmless(life: Life, rules: Rules, now: Instant, lease: Duration) -> bool:
    """Say whether running the effect again under the same downstream key cannot apply it twice.

    Always for an idempotent tool; else while a whole lease and the settle time fit into what is left of the
    provider's window.
    """
    if rules.effect_class == "idempotent":
        return True
    if rules.provider_window is None or life.epoch_since is None:
        return False
    return now + lease + rules.settle <= life.epoch_since + rules.provider_window
