"""Wakes across replicas: who waits for a key says so, and the replica that ends what is waited for says that.

So where nobody waits, nothing is said, and a commit costs one look into a set. A want may cross the end that it waits
for; therefore each replica remembers for a moment what it has ended, and answers such a want at once. A word wakes one
of those who wait for a key: it looks into the database and tells the others. Words may be lost: then the glance that
somebody takes now and then for all finds the end a little later.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from guard.ports.wire import LONGEST_WORD, Wire
from guard.service.jitter import Jitter
from guard.service.waiting import Waiters

WANTED_SECONDS: Final = 60.0
"""How long a want is remembered after it was told last."""
MOST_WANTED: Final = 20_000
"""Keys of other replicas' wants that are remembered; beyond them the oldest are forgotten."""
MOST_AT_ONCE: Final = 2_000
"""Wants that are said again in one moment: fewer than a wire has room for."""
LATELY_SECONDS: Final = 2.0
"""How long at least what has ended here is remembered."""
SPREAD_SECONDS: Final = 1.0
"""Over how long those who wait look again when words may have been missed."""
_ID_BYTES: Final = 8
_WANT, _END = b"w", b"e"


class Wakes:
    """What this replica tells the others, and hears from them."""

    def __init__(
        self, waiters: Waiters, wire: Wire, jitter: Jitter, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._waiters = waiters
        self._wire = wire
        self._jitter = jitter
        self._clock = clock
        self._id = uuid4().bytes[:_ID_BYTES]
        self._wanted: OrderedDict[bytes, float] = OrderedDict()
        self._told: dict[bytes, float] = {}
        self._lately: set[bytes] = set()
        self._before: set[bytes] = set()
        waiters.tell_also(self)

    async def run(self) -> None:
        """Listen for ever; forget what is old, and say again what is still wanted."""
        async with self._wire.listening(self.heard):
            while True:
                await asyncio.sleep(LATELY_SECONDS)
                self.turn()

    def turn(self) -> None:
        """Forget what ended a while ago and what nobody wants any more; say again what is waited for."""
        self._before, self._lately = self._lately, set()
        now = self._clock()
        while self._wanted and next(iter(self._wanted.values())) <= now - WANTED_SECONDS:
            self._wanted.popitem(last=False)
        again: list[bytes] = []
        for key, told_at in list(self._told.items()):
            if key not in self._waiters:
                del self._told[key]
            elif told_at <= now - WANTED_SECONDS / 3:
                again.append(key)
        for key in again[:MOST_AT_ONCE]:
            self._want(key)

    def wanted(self, key: bytes) -> None:
        """Hear that somebody waits for a key here; say so, unless that was said lately."""
        told_at = self._told.get(key)
        if told_at is None or told_at <= self._clock() - WANTED_SECONDS / 3:
            self._want(key)

    def ended(self, key: bytes) -> None:
        """Hear that what a key names has ended here; say so where another replica waits for it.

        It stays wanted: who hears it may have to wait on, for another attempt or a second approver.
        """
        self._lately.add(key)
        if key in self._wanted:
            self._wire.tell(_END + self._id + key)

    def heard(self, word: bytes | None) -> None:
        """Take a word of a replica; None says that words may have been missed."""
        if word is None:
            self._begin_anew()
            return
        kind, sender, key = word[:1], word[1 : 1 + _ID_BYTES], word[1 + _ID_BYTES :]
        if not key or len(word) > LONGEST_WORD or sender == self._id:
            return
        if kind == _WANT:
            self._wanted[key] = self._clock()
            self._wanted.move_to_end(key)
            if len(self._wanted) > MOST_WANTED:
                self._wanted.popitem(last=False)
            if key in self._lately or key in self._before:
                self._wire.tell(_END + self._id + key)
        elif kind == _END:
            self._waiters.nudge(key)

    def _begin_anew(self) -> None:
        """Say again what is wanted here, and let somebody look for each key: not for all at one moment."""
        loop = asyncio.get_running_loop()
        for key in self._waiters.awaited():
            loop.call_later(SPREAD_SECONDS * self._jitter(), self._ask_anew, key)

    def _ask_anew(self, key: bytes) -> None:
        if key in self._waiters:
            self._want(key)
            self._waiters.nudge(key)

    def _want(self, key: bytes) -> None:
        self._told[key] = self._clock()
        self._wire.tell(_WANT + self._id + key)
