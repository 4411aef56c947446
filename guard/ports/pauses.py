"""What the service needs of a database to stop forks at calls, and to hear what persons answered."""

from typing import Protocol

import msgspec

from guard.core.effects import AttemptToken, Key, RunId
from guard.core.pauses import Pause, PauseAnswer, Stop
from twiceshy_contract.forks import PauseState


class PauseFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which pauses of a run a listing shows; `after` is the last page's cursor, opaque to all but the store."""

    state: PauseState | None = None
    limit: int = 50
    after: str | None = None


class PauseStore(Protocol):
    """Calls at which forks stopped."""

    async def keep(self, stop: Stop) -> Pause:
        """Keep a stop, unless its key has a pause that does not give way to it; return the pause of the key."""

    async def find(self, run: RunId, key: Key) -> Pause | None:
        """Return the pause of a key in a run."""

    async def page(self, run: RunId, chosen: PauseFilter) -> tuple[list[Pause], str | None]:
        """Return pauses of a run, oldest first, and the cursor of the next page. Raises ValueError for another's."""

    async def answer(self, run: RunId, key: Key, answer: PauseAnswer, by: str | None) -> Pause | None:
        """Answer a pause that is open; return it as it stands (an answered one unchanged), or None: there is none."""

    async def spend(self, run: RunId, key: Key, token: AttemptToken) -> AttemptToken | None:
        """Let an attempt use an answer, unless another was the first to do so; return which was (None: no answer)."""
