"""The accelerator over Redis: opened by its URL, it reaches for Redis by itself, and nobody waits for that."""

from collections.abc import Sequence

from guard.accelerator.address import address_of
from guard.accelerator.clients import client_of
from guard.accelerator.entries import Distrusted, opened
from guard.accelerator.hot_keys import hottest, questions
from guard.accelerator.keyring import Keyring
from guard.accelerator.link import Link
from guard.accelerator.meters import Meters
from guard.accelerator.reads import ABSENT, AWAY, Missing, Reads
from guard.accelerator.wire import RedisWire
from guard.accelerator.writes import Writes
from guard.core.effects import SECOND, Duration, Effect, Key, TenantId
from guard.core.retention import RECALLED_AT_MOST
from guard.logs import logger
from guard.ports.accelerator import AcceleratorMeters, HotKey, Reached
from guard.ports.epochs import CacheEpochStore
from guard.ports.salts import SaltStore
from guard.ports.wire import Wire

_log = logger("guard.accelerator")


class RedisAccelerator:
    """The port's accelerator over Redis or Valkey."""

    def __init__(self, link: Link, keyring: Keyring, lives_seconds: int) -> None:
        self._link = link
        self._keyring = keyring
        self._lives = Duration(min(lives_seconds * SECOND, RECALLED_AT_MOST))
        self._reads = Reads(link)
        self._writes = Writes(link, keyring, self._lives // SECOND)
        self.wire: Wire = RedisWire(link, keyring)

    @property
    def reached(self) -> Reached:
        """Where it is, and whether it is reached."""
        return Reached(address=self._link.address, is_reached=self._link.is_up, why=self._link.why)

    def measure(self, meters: AcceleratorMeters) -> None:
        """Count what becomes of it with these meters from now on."""
        self._link.meters.count_with(meters)

    async def recall(self, tenant: TenantId, key: Key, kept: Duration) -> Effect | None:
        """Return the final effect that a replica kept under the key, where that is proved."""
        try:
            return await self._recall(tenant, key, kept)
        except Exception:  # noqa: BLE001  nothing here may keep a begin from its answer
            _log.error("redis_recall_failed", exc_info=True)
            return None

    async def _recall(self, tenant: TenantId, key: Key, kept: Duration) -> Effect | None:
        meters = self._link.meters
        known = None
        if self._link.is_up:
            known = self._keyring.fresh(tenant) or await self._keyring.learned(tenant)
        if known is None:
            meters.recalled("away")
            return None
        secrets, reading = known
        entry = await self._reads.get(secrets.name(b"record", key))
        if isinstance(entry, Missing):
            if entry is ABSENT or entry is AWAY:
                meters.recalled("miss" if entry is ABSENT else "away")
            else:
                meters.distrusted("wrong-type")
            return None
        effect = opened(secrets, reading.epoch, tenant, key, entry)
        if isinstance(effect, Distrusted):
            meters.distrusted(effect.why)
            return None
        ended_at = effect.life.ended_at
        if ended_at is None or self._keyring.now(reading) >= ended_at + min(self._lives, kept):
            meters.distrusted("expired")
            return None
        meters.recalled("hit")
        return effect

    def keep(self, effect: Effect) -> None:
        """Keep a final effect, soon, for all replicas."""
        self._writes.keep(effect)

    def forget(self, tenant: TenantId, keys: Sequence[Key]) -> None:
        """Keep these effects no longer, soon."""
        self._writes.forget(tenant, keys)

    def contended(self, tenant: TenantId, tool: str, key: Key) -> None:
        """Count a begin that found another attempt's lease."""
        self._writes.count(tenant, tool, key)

    async def hottest(self, tenant: TenantId, limit: int) -> list[HotKey] | None:
        """Return the keys that most begins found executing within the last minutes; None: it cannot be reached."""
        secrets = await self._keyring.secrets(tenant) if self._link.is_up else None
        answers = None if secrets is None else await self._link.ask(questions(secrets, limit))
        return None if secrets is None or answers is None else hottest(secrets, answers, limit)

    async def close(self) -> None:
        """Send what waits, if Redis takes it, and give back all connections."""
        await self._writes.close()
        await self.wire.close()
        await self._link.close()
        await self._keyring.close()


def open_accelerator(url: str, salts: SaltStore, epochs: CacheEpochStore, lives_seconds: int) -> RedisAccelerator:
    """Open the accelerator of a URL, and begin to reach for it. Raises AddressRefused."""
    address = address_of(url)
    link = Link(client_of(address), address.shown, Meters())
    link.start()
    return RedisAccelerator(link, Keyring(salts, epochs), lives_seconds)
