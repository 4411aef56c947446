"""Final effects that this process has lately seen: a replay of one of them asks the database nothing.

That is safe without any word from elsewhere: no event changes a final effect, so what was read once stays true.
"""

from collections import OrderedDict
from typing import Final

from guard.core.effects import Effect, Key

MAX_BYTES: Final = 64 * 2**20
"""What all of them may take."""
LARGEST: Final = 256 * 2**10
"""What one of them may take."""
_FIXED_BYTES: Final = 2_000
"""About what an effect takes without its arguments and its outcome."""
_FINAL: Final = ("succeeded", "failed")


class Records:
    """The latest final effects by key; beyond the limit of bytes the least lately used go first."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._effects: OrderedDict[Key, Effect] = OrderedDict()

    def get(self, key: Key) -> Effect | None:
        """Return the final effect of a key, where it is kept."""
        effect = self._effects.get(key)
        if effect is not None:
            self._effects.move_to_end(key)
        return effect

    def keep(self, effect: Effect) -> None:
        """Keep an effect, if it is final and not too large."""
        key, size = effect.intent.key, _size(effect)
        if effect.life.state not in _FINAL or size > LARGEST or key in self._effects:
            return
        self._effects[key] = effect
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, least = self._effects.popitem(last=False)
            self._bytes -= _size(least)


def _size(effect: Effect) -> int:
    return _FIXED_BYTES + len(effect.intent.arguments) + len(effect.outcome or b"")
