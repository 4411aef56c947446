"""When the outcomes of each effect are sent again: one that its service stumbles over delays no other effect."""

from collections.abc import Callable
from typing import Final

import msgspec

from twiceshy._lease import Clock
from twiceshy._spool_record import Undelivered
from twiceshy._spool_send import Stuck

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 60.0
LONGEST_ASKED_PAUSE: Final = 600.0


class _Turn(msgspec.Struct):
    """When an effect was last tried, when it is due, and how long it pauses after the next vain try."""

    tried: float
    due: float
    pause: float = FIRST_PAUSE


class Pace:
    """The turns of all effects that were tried in vain. Whoever uses it holds the lock of the sending."""

    def __init__(self, clock: Clock, chance: Callable[[], float]) -> None:
        self._clock = clock
        self._chance = chance
        self._turns: dict[str, _Turn] = {}

    @property
    def count(self) -> int:
        """How many effects were tried in vain."""
        return len(self._turns)

    def in_turn(self, queues: list[list[Undelivered]], *, is_due_only: bool) -> list[list[Undelivered]]:
        """Return the queues, the one that was tried longest ago first; what waits no more is forgotten."""
        keys = [queue[0].key for queue in queues]
        self._turns = {key: self._turns[key] for key in keys if key in self._turns}
        now = self._clock()
        turns = [self._turns.get(key, _Turn(tried=0.0, due=now)) for key in keys]
        order = sorted(range(len(queues)), key=lambda index: turns[index].tried)
        return [queues[index] for index in order if turns[index].due <= now or not is_due_only]

    def put_back(self, key: str, stuck: Stuck) -> None:
        """Let an effect pause, longer each time. Where all are held up alike, it only goes to the end of the row."""
        now = self._clock()
        turn = self._turns.setdefault(key, _Turn(tried=now, due=now))
        turn.tried = now
        if stuck.is_for_all:
            turn.due = now
            return
        pause = turn.pause * (0.5 + self._chance() / 2)
        turn.due = now + max(pause, min(stuck.retry_after, LONGEST_ASKED_PAUSE))
        turn.pause = min(turn.pause * 2, LONGEST_PAUSE)

    def forget(self, key: str) -> None:
        """Let an effect be due at once: it was told something."""
        self._turns.pop(key, None)

    def seconds_to_next(self) -> float:
        """Return when the next effect is due."""
        now = self._clock()
        return max(FIRST_PAUSE / 2, min((turn.due for turn in self._turns.values()), default=now) - now)
