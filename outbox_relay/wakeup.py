"""When a relay looks for work: when it is told, and always after a pause, since nobody promises that it is told."""

import asyncio
from collections.abc import Callable


class Wakeup:
    """Calls `due` whenever it rings, and after a pause that grows from `shortest` to `longest` while nothing comes.

    Pauses are in seconds and jittered, so that relays that started together do not ask together.
    """

    def __init__(self, due: Callable[[], None], jitter: Callable[[], float], shortest: float, longest: float) -> None:
        self._due = due
        self._jitter = jitter
        self._shortest = shortest
        self._longest = longest
        self._pause = shortest
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Begin to look after pauses."""
        self._arm()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def ring(self) -> None:
        """Say that there may be work."""
        self._due()

    def worked(self) -> None:
        """Remember that there was work: more may come soon."""
        if self._pause > self._shortest:
            self._pause = self._shortest
            if self._timer is not None:
                self._timer.cancel()
                self._arm()

    def _arm(self) -> None:
        self._timer = self._loop.call_later(self._pause * (0.75 + self._jitter() / 4), self._look)

    def _look(self) -> None:
        self._pause = min(self._pause * 2, self._longest)
        self._arm()
        self._due()
