"""Effects under a lease that this process has lately granted or renewed: a commit need not read its effect back.

What is known may be out of date; whoever uses it compares the version. It holds arguments, so it is bounded, and what
this process lets expire is forgotten at once.
"""

from collections.abc import Sequence
from typing import Final

from guard.core.effects import AttemptToken, Effect, Fence, Key
from guard.service.recent import Recent

MOST: Final = 2_048
LARGEST: Final = 8 * 2**10
"""Larger effects are read back: those that are known take some 20 MiB at most."""


class Leased:
    """The latest effects under a lease, by key."""

    def __init__(self) -> None:
        self._effects: Recent[Key, Effect] = Recent(MOST)

    def keep(self, effect: Effect) -> None:
        """Keep an effect, if it is small; of a large one nothing older either."""
        if _size(effect) <= LARGEST:
            self._effects.keep(effect.intent.key, effect)
        else:
            self._effects.take(effect.intent.key)

    def take(self, key: Key, token: AttemptToken, fence: Fence) -> Effect | None:
        """Return the effect that was leased to this attempt, where it is known, and keep it no longer."""
        effect = self._effects.take(key)
        latest = None if effect is None else effect.life.latest
        is_held = latest is not None and latest.token == token and latest.fence == fence
        return effect if is_held else None

    def forget(self, keys: Sequence[Key]) -> None:
        """Keep these effects no longer."""
        for key in keys:
            self._effects.take(key)


def _size(effect: Effect) -> int:
    kept = (effect.intent.arguments, effect.edited, effect.outcome, effect.resolution)
    return sum(len(part) for part in kept if part is not None)
