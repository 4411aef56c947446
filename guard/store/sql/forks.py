"""The moment in which this process is forked: no worker is at work, none begins to be, and none has a file open.

Nothing here listens for forks. Whoever opens stores in a program that may be forked says when: it alone knows which
openings have to be over first, and the interpreter's own hooks run in an order, and from a list, that is too old.
"""

import threading
import weakref
from typing import Final, Protocol


class Standing(Protocol):
    """What can stand still."""

    def stand_still(self) -> None:
        """Finish the work at hand, let go of what no child may inherit, and begin nothing."""

    def go_on(self) -> None:
        """Work again."""


class Forks:
    """All that must stand still together; what joins while it does waits until the fork is over."""

    _depth: int
    _still: list[Standing]

    def __init__(self) -> None:
        self.forget()

    def join(self, standing: Standing) -> None:
        """Let one more take part, for as long as it lives."""
        with self._turn:
            self._all.add(standing)

    def begin(self) -> None:
        """Let all stand still, before the fork; in the thread that forks."""
        self._turn.acquire()
        self._depth += 1
        if self._depth == 1:
            self._still = list(self._all)
            for standing in self._still:
                standing.stand_still()

    def end(self) -> None:
        """Let all go on, after the fork; in the parent, in the thread that forked."""
        self._depth -= 1
        if self._depth == 0:
            still, self._still = self._still, []
            for standing in still:
                standing.go_on()
        self._turn.release()

    def forget(self) -> None:
        """Begin empty, in the child: what stands still there is the parent's."""
        self._turn = threading.RLock()
        self._all: weakref.WeakSet[Standing] = weakref.WeakSet()
        self._still = []
        self._depth = 0


FORKS: Final = Forks()
"""Those of this process: a fork concerns all stores in it."""
