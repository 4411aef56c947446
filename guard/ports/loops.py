"""What the service needs of a database to see that a run goes round in circles."""

from typing import Protocol

from guard.core.effects import AttemptToken, RunId


class LoopStore(Protocol):
    """Which attempts of each run began a slot."""

    async def admit(self, run: RunId, slot: bytes, token: AttemptToken, limit: int) -> bool:
        """Say whether an attempt is among those that may begin a slot; a new one is, while there is room.

        Of many attempts the latest hundred are remembered.
        """
