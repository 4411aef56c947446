"""An outcome on its way to the code."""

import asyncio

import msgspec

from twiceshy._boundaries import Outcome
from twiceshy._log import Entry


class Waiting(msgspec.Struct):
    """An outcome that waits for its turn. `recorded` is the number of its intent in the record.

    One that `ends` the replay is no outcome: it comes once nothing else is left, and is not written down.
    """

    entry: Entry
    outcome: Outcome
    recorded: int | None
    future: asyncio.Future[None] | None = None
    is_cancelled: bool = False
    is_abandoned: bool = False
    ends: bool = False

    @property
    def is_awaited(self) -> bool:
        """Whether the code waits for it now."""
        return self.future is not None and not self.future.cancelled()

    @property
    def may_be_given(self) -> bool:
        """Whether what the record says has come about: a recorded cancellation waits for the code's own."""
        return self.is_cancelled or not (self.outcome.is_recorded and self.outcome.kind == "cancelled")
