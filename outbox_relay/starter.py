"""Starting what was claimed behind others in its lane: all that asks while the database is asked goes together."""

import asyncio
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from guard.core.effects import SECOND, Duration
from guard.logs import logger
from guard.ports.relay import RelayStore
from outbox_relay.dispatch import Started
from outbox_relay.leases import Slowness

_log = logger("guard.relay")
_LOST: Final[Started] = "lost"
_AWAY: Final[Started] = "away"


class Starter:
    """Starts messages under one lease."""

    def __init__(self, store: RelayStore, lease: UUID) -> None:
        self._store = store
        self._lease = lease
        self._loop = asyncio.get_running_loop()
        self._slowness = Slowness()
        self._waiting: dict[int, tuple[asyncio.Future[tuple[Started, float]], Duration]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def start(self, id_: int, length: Duration) -> tuple[Started, float]:
        """Start one message; return besides until when its lease surely lasts, by the loop's clock."""
        answer: asyncio.Future[tuple[Started, float]] = self._loop.create_future()
        self._waiting[id_] = (answer, length)
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return await answer

    async def close(self) -> None:
        """Wait for the last answer."""
        if self._asking is not None:
            await asyncio.wait((self._asking,))

    async def _ask(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, {}
            length = self._slowness.stretched(max(length for _, length in asked.values()))
            began = self._loop.time()
            said: Mapping[int, Started] = {}
            otherwise = _LOST
            try:
                said = await self._store.start(self._lease, tuple(asked), length)
            except Exception as error:  # noqa: BLE001  what is not started is given back, and claimed again
                _log.warning("messages_not_started", count=len(asked), reason=str(error))
                otherwise = _AWAY
            self._slowness.took(self._loop.time() - began)
            for id_, (answer, _) in asked.items():
                if not answer.done():
                    answer.set_result((said.get(id_, otherwise), began + length / SECOND))
