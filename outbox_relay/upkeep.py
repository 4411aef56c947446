"""What a relay does beside sending: it takes back what relays that are gone had, and clears old history away."""

import asyncio
from typing import Final

from guard.core.effects import seconds
from guard.logs import logger
from guard.ports.relay import RelayStore
from outbox_relay.measures import Measures
from outbox_relay.settings import RelaySettings

_log = logger("guard.relay")
_REAPED: Final = 1000
_LOOK_SECONDS: Final = 5.0
_TIDY_SECONDS: Final = 60.0
_DAY: Final = 86_400


class Upkeep:
    """The rounds of one relay; each is tried again whatever comes of it."""

    def __init__(self, store: RelayStore, measures: Measures, settings: RelaySettings) -> None:
        self._store = store
        self._measures = measures
        self._settings = settings

    async def run(self) -> None:
        """Do all rounds, each at its pace, for ever."""
        loop = asyncio.get_running_loop()
        look_at = tidy_at = loop.time()
        while True:
            try:
                await self.reap()
                if loop.time() >= look_at:
                    look_at = loop.time() + _LOOK_SECONDS
                    await self.look()
                if loop.time() >= tidy_at:
                    tidy_at = loop.time() + _TIDY_SECONDS
                    await self.tidy()
            except Exception as error:  # noqa: BLE001  a later round may well succeed
                _log.warning("upkeep_postponed", reason=str(error) or repr(error))
            await asyncio.sleep(self._settings.refresh_seconds)

    async def reap(self) -> None:
        """Take back what no relay has under a lease any more. Raises StoreUnavailable."""
        while True:
            reaped = await self._store.reap(_REAPED)
            self._measures.reaped(reaped)
            if reaped.again or reaped.unknown:
                _log.warning("messages_taken_back", again=reaped.again, unknown=reaped.unknown)
            if reaped.again + reaped.unknown + reaped.released < _REAPED:
                return

    async def look(self) -> None:
        """Count what waits. Raises StoreUnavailable."""
        self._measures.wait(await self._store.backlogs())

    async def tidy(self) -> None:
        """Clear away history that is past its time. Raises StoreUnavailable."""
        await self._store.tidy(seconds(self._settings.history_days * _DAY))
