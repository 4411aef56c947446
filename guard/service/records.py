"""Final effects that this process has lately seen: a replay of one of them asks the database nothing.

That is safe without any word from elsewhere: no event changes a final effect, so what was read once stays true. Only
retention and erasure take something away: so what was read is believed for a minute, and what this process lets expire
is forgotten at once.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from guard.core.effects import Effect, Key

MAX_BYTES: Final = 64 * 2**20
"""What all of them may take."""
FRESH_SECONDS: Final = 60.0
"""How long a record is believed before it is read again."""
LARGEST: Final = 256 * 2**10
"""What one of them may take."""
_FIXED_BYTES: Final = 2_000
"""About what an effect takes without its arguments and its outcome, which its answer holds once more."""
_FINAL: Final = ("succeeded", "failed")


class Record:
    """A final effect, and the answer to a begin that is it to the letter, once somebody has written that."""

    __slots__ = ("answer", "effect", "until")

    def __init__(self, effect: Effect, until: float) -> None:
        self.effect: Final = effect
        self.until: Final = until
        self.answer: bytes | None = None


class Records:
    """The latest final effects by key; beyond the limit of bytes the least lately used go first."""

    def __init__(self, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._bytes = 0
        self._records: OrderedDict[Key, Record] = OrderedDict()

    def get(self, key: Key) -> Record | None:
        """Return the record of a key's final effect, where it is kept."""
        record = self._records.get(key)
        if record is None:
            return None
        if self._clock() >= record.until:
            self.forget((key,))
            return None
        self._records.move_to_end(key)
        return record

    def keep(self, effect: Effect) -> None:
        """Keep an effect, if it may be kept."""
        key, size = effect.intent.key, _size(effect)
        if key in self._records or not may_be_kept(effect):
            return
        self._records[key] = Record(effect, self._clock() + FRESH_SECONDS)
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, least = self._records.popitem(last=False)
            self._bytes -= _size(least.effect)

    def forget(self, keys: Sequence[Key]) -> None:
        """Keep these effects no longer."""
        for key in keys:
            record = self._records.pop(key, None)
            if record is not None:
                self._bytes -= _size(record.effect)


def may_be_kept(effect: Effect) -> bool:
    """Say whether an effect is final, not too large, and no newer instance of its slot may be meant."""
    is_last = effect.life.state in _FINAL and effect.expired_at is None and effect.intent.slot is None
    return is_last and _size(effect) <= LARGEST


def _size(effect: Effect) -> int:
    return _FIXED_BYTES + len(effect.intent.arguments) + 2 * len(effect.outcome or b"")
