"""The lease of a relay: how long it is asked for, what is kept under it, and what is given back unheard.

Its ends are counted on the loop's clock from before the database was asked, so they are never later than the database's
own. Where the database answers slowly it is asked for longer: a lease that is half over when it is heard of is of no
use.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from guard.core.effects import SECOND, Duration, seconds
from guard.logs import logger
from guard.ports.relay import Claimed, RelayStore
from outbox_relay.dispatch import Dispatch
from outbox_relay.route import Route

_log = logger("guard.relay")
_NEVER: Final = float("inf")
_KEPT_AFTER: Final = 3
"""A lease is kept when this part of it is over."""


class Slowness:
    """How long a call of the database takes; one that was slow is remembered for a while."""

    def __init__(self) -> None:
        self._took = 0.0

    def took(self, seconds: float) -> None:
        """Remember how long a call took."""
        self._took = max(seconds, self._took / 2)

    def stretched(self, length: Duration) -> Duration:
        """Return a lease of which so much is left when it is heard of."""
        return Duration(length + seconds(2 * self._took))


class Leases:
    """What a relay has under its lease. `is_unheard`: a turn may have given it something, and nobody knows what."""

    def __init__(self, store: RelayStore, lease: UUID, dispatch: Dispatch) -> None:
        self._store = store
        self._lease = lease
        self._dispatch = dispatch
        self.slowness: Final = Slowness()
        self.renew_at = _NEVER
        self.is_unheard = False

    def length(self, routes: Iterable[Route]) -> Duration:
        """Return how long a lease is asked for of messages that may be of any of these."""
        return self.slowness.stretched(max((route.lease for route in routes), default=seconds(30)))

    def took(self, claimed: Iterable[Claimed], routes: Mapping[int, Route], now: float) -> None:
        """Remember when what was claimed is to be kept."""
        lengths = [routes[message.destination].lease for message in claimed if message.destination in routes]
        self.renew_at = min(self.renew_at, now + min(lengths, default=seconds(30)) / SECOND / _KEPT_AFTER)

    async def renew(self, now: float) -> None:
        """Keep what is held; what is others' now is let go of. Raises StoreUnavailable."""
        held: dict[Duration, list[int]] = {}
        for id_, flight in self._dispatch.held.items():
            held.setdefault(flight.route.lease, []).append(id_)
        for length, ids in held.items():
            kept = await self._store.renew(self._lease, ids, length)
            self._dispatch.renewed(kept, now + length / SECOND)
            self._dispatch.lost(set(ids) - kept)
        self.renew_at = now + min(held, default=_NEVER) / SECOND / _KEPT_AFTER

    async def give_back_unheard(self) -> None:
        """Give back what a turn claimed of which nothing was heard: none of it was sent. Raises StoreUnavailable."""
        besides = (*self._dispatch.held, *self._dispatch.adrift)
        count = await self._store.release(self._lease, besides)
        self.is_unheard = False
        if count:
            _log.warning("claims_given_back", count=count, reason="the answer that named them was lost")
