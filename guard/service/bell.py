"""The bell: relays hear that something was staged without waiting for their next look. It never delays an answer.

However much is staged, it rings no oftener than every few milliseconds, and outside of the transactions that stage:
telling within them would make them wait for each other.
"""

import asyncio
from typing import Final

from guard.logs import logger
from guard.ports.relay import RelayStore
from guard.ports.store import StatementFailed, StoreUnavailable

PAUSE_SECONDS: Final = 0.015

_log = logger("guard.bell")


class Bell:
    """Rung by whoever has staged; a relay that does not hear it looks by itself, a little later."""

    def __init__(self, relay: RelayStore) -> None:
        self._relay: Final = relay
        self._is_wanted = asyncio.Event()

    def ring(self) -> None:
        """Let relays be told, soon."""
        self._is_wanted.set()

    async def run(self) -> None:
        """Ring for ever, whenever that is wanted."""
        while True:
            await self._is_wanted.wait()
            await self.run_once()
            await asyncio.sleep(PAUSE_SECONDS)

    async def run_once(self) -> None:
        """Tell relays once of all that was staged until now."""
        self._is_wanted.clear()
        try:
            await self._relay.ring()
        except (StoreUnavailable, StatementFailed) as error:
            _log.info("bell_unheard", reason=str(error))
