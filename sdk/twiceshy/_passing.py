"""A boundary that was entered and whose outcome the code gets later: what it reads of a stream lies in between."""

from typing import Final

from twiceshy._boundaries import Outcome
from twiceshy._log import Entry
from twiceshy._paused import see
from twiceshy._pump import Pump
from twiceshy._replay_errors import ReplayPaused
from twiceshy._waiting import Waiting


class Passing:
    """A boundary that is being passed. Its outcome is given once; where it never is, nobody knows how it ended.

    `served` is the outcome of the record, or of what stands in its place (None: the boundary really runs).
    """

    def __init__(self, pump: Pump, entry: Entry, waiting: Waiting | None, recorded: int | None = None) -> None:
        """Take what waits for its turn already. With `recorded`, what really runs takes that call's turn."""
        self.served: Final[Outcome | None] = None if waiting is None else waiting.outcome
        self._pump = pump
        self._entry = entry
        self._waiting = waiting
        self._recorded = recorded

    def give(self, outcome: Outcome | None = None) -> None:
        """Give the outcome, blocking until it is its turn; what is served comes before what really ran."""
        try:
            self._pump.give(self._turn(outcome))
        except ReplayPaused as paused:
            see(paused)
            raise

    async def give_async(self, outcome: Outcome | None = None) -> None:
        """Give the outcome on an event loop, when it is its turn."""
        try:
            await self._pump.give_async(self._turn(outcome))
        except ReplayPaused as paused:
            see(paused)
            raise

    def _turn(self, outcome: Outcome | None) -> Waiting:
        if self._waiting is not None:
            if outcome is not None:
                self._waiting.outcome = outcome
            return self._waiting
        if outcome is None:
            raise RuntimeError("a boundary that really ran has no outcome yet")
        return Waiting(self._entry, outcome, self._recorded)
