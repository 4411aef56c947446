"""What only the replicas of one database know, and since when what was kept of its records may be believed.

A tenant's secrets come from its salt, which never leaves the database. Its epoch is read no more often than once a
second, and with it the database's clock, so that no other clock decides how old an entry is.
"""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Final

import msgspec

from guard.core.effects import SECOND, Instant, TenantId
from guard.ports.epochs import CacheEpochStore
from guard.ports.salts import SaltStore
from guard.ports.store import StatementFailed, StoreUnavailable

FRESH_SECONDS: Final = 1.0
"""How long an epoch is believed before it is read again."""
PATIENCE_SECONDS: Final = 0.05
"""How long anybody waits for the database to say it."""
HOUSE: Final = TenantId(1)
"""The first tenant of every database: under its salt is what belongs to no tenant."""


class Secrets(msgspec.Struct, frozen=True):
    """Secrets of a tenant: names are made under one, and entries are sealed under the other."""

    naming: bytes
    sealing: bytes

    def name(self, kind: bytes, what: bytes) -> bytes:
        """Return the name of something in Redis, which reveals nothing and is no other thing's name."""
        digest = hmac.digest(self.naming, kind + b":" + what, hashlib.sha256)
        return b"twiceshy:%b:%b" % (kind, digest[:20].hex().encode())

    def seal(self, text: bytes) -> bytes:
        """Return what nobody can write who does not know the secret."""
        return hmac.digest(self.sealing, text, hashlib.sha256)


class Reading(msgspec.Struct, frozen=True):
    """A tenant's epoch as it was `at` an instant of the database, which was asked at a moment of this process."""

    epoch: int
    at: Instant
    asked: float


class Keyring:
    """Secrets, epochs and the database's time. Nothing raises; what the database does not say now is not known."""

    def __init__(self, salts: SaltStore, epochs: CacheEpochStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._salts = salts
        self._epochs = epochs
        self._clock = clock
        self._secrets: dict[TenantId, Secrets] = {}
        self._readings: dict[TenantId, tuple[Reading, ...]] = {}
        self._failed: dict[TenantId, float] = {}
        self._in_flight: dict[TenantId, asyncio.Task[None]] = {}

    async def secrets(self, tenant: TenantId) -> Secrets | None:
        """Return a tenant's secrets."""
        known = self._secrets.get(tenant)
        if known is None:
            try:
                salt = await self._salts.of(tenant)
            except (StoreUnavailable, StatementFailed, LookupError):
                return None
            known = Secrets(naming=_derived(salt, b"names"), sealing=_derived(salt, b"seals"))
            self._secrets[tenant] = known
        return known

    def fresh(self, tenant: TenantId) -> tuple[Secrets, Reading] | None:
        """Return a tenant's secrets and its epoch, if both are known and it is no older than a second."""
        secrets, readings = self._secrets.get(tenant), self._readings.get(tenant)
        if secrets is None or readings is None or self._clock() - readings[-1].asked >= FRESH_SECONDS:
            return None
        return secrets, readings[-1]

    async def learned(self, tenant: TenantId) -> tuple[Secrets, Reading] | None:
        """Learn both from the database; all who ask meanwhile wait for one statement, and not for long.

        A database that does not answer is not asked again at once: whoever asks here will ask it himself.
        """
        task = self._in_flight.get(tenant)
        if task is None:
            if self._clock() - self._failed.get(tenant, -FRESH_SECONDS) < FRESH_SECONDS:
                return None
            task = self._in_flight[tenant] = asyncio.get_running_loop().create_task(self._learn(tenant))
        await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
        return self.fresh(tenant)

    def epoch_before(self, tenant: TenantId, ended_at: Instant) -> int | None:
        """Return the epoch as it was read before an effect became final, however long before.

        One that began since is not the entry's: it may have begun because the record was removed.
        """
        earlier = (one for one in reversed(self._readings.get(tenant, ())) if one.at <= ended_at)
        found = next(earlier, None)
        return None if found is None else found.epoch

    async def close(self) -> None:
        """Learn nothing more."""
        learning = list(self._in_flight.values())
        for task in learning:
            task.cancel()
        await asyncio.gather(*learning, return_exceptions=True)

    def now(self, reading: Reading) -> Instant:
        """Return the database's present moment, or a little later, from when it said its epoch."""
        return Instant(reading.at + round((self._clock() - reading.asked) * SECOND))

    async def _learn(self, tenant: TenantId) -> None:
        asked, reading = self._clock(), None
        try:
            if await self.secrets(tenant) is not None:
                found = await self._epochs.read(tenant)
                reading = Reading(epoch=found.epoch, at=found.at, asked=asked)
        except (StoreUnavailable, StatementFailed, LookupError):
            pass  # whoever asks does without
        finally:
            del self._in_flight[tenant]
        if reading is None:
            self._failed[tenant] = self._clock()
        else:
            self._readings[tenant] = (*self._readings.get(tenant, ())[-1:], reading)


def _derived(salt: bytes, purpose: bytes) -> bytes:
    return hmac.digest(salt, b"twiceshy accelerator 1: " + purpose, hashlib.sha256)
