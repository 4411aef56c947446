"""The keyring: one statement a second for all who ask, and nobody waits long for a database that does not answer."""

import asyncio

from guard.accelerator.keyring import Keyring
from guard.core.effects import SECOND, Instant, TenantId
from guard.ports.epochs import CacheEpoch
from guard.ports.store import StoreUnavailable

TENANT = TenantId(1)


class Database:
    """Salts and epochs as the test wants them."""

    def __init__(self) -> None:
        self.epoch = 0
        self.at = Instant(100 * SECOND)
        self.reads = 0
        self.hangs = False
        self.is_away = False

    async def of(self, _tenant: TenantId) -> bytes:
        return b"salt" * 8

    async def read(self, _tenant: TenantId) -> CacheEpoch:
        self.reads += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_away:
            raise StoreUnavailable("away")
        return CacheEpoch(epoch=self.epoch, at=self.at)

    async def end(self, _tenant: TenantId) -> None:
        self.epoch += 1


class Watch:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def keyring() -> tuple[Keyring, Database, Watch]:
    database, watch = Database(), Watch()
    return Keyring(database, database, watch), database, watch


async def test_all_who_ask_within_a_second_cost_one_statement() -> None:
    keys, database, watch = keyring()
    assert keys.fresh(TENANT) is None
    await asyncio.gather(*(keys.learned(TENANT) for _ in range(100)))
    assert keys.fresh(TENANT) is not None
    assert database.reads == 1
    watch.now += 1.0
    assert keys.fresh(TENANT) is None


async def test_the_database_s_time_goes_on_from_what_it_said() -> None:
    keys, _, watch = keyring()
    known = await keys.learned(TENANT)
    assert known is not None
    watch.now += 0.25
    assert keys.now(known[1]) == 100 * SECOND + SECOND // 4


async def test_an_effect_is_kept_under_the_epoch_that_was_read_before_it_ended() -> None:
    keys, database, watch = keyring()
    assert keys.epoch_before(TENANT, Instant(200 * SECOND)) is None
    await keys.learned(TENANT)
    await database.end(TENANT)
    watch.now, database.at = watch.now + 5, Instant(105 * SECOND)
    await keys.learned(TENANT)
    assert keys.epoch_before(TENANT, Instant(99 * SECOND)) is None
    assert keys.epoch_before(TENANT, Instant(104 * SECOND)) == 0
    assert keys.epoch_before(TENANT, Instant(105 * SECOND)) == 1


async def test_a_database_that_is_away_is_asked_once_a_second() -> None:
    keys, database, watch = keyring()
    database.is_away = True
    assert [await keys.learned(TENANT) for _ in range(5)] == [None] * 5
    assert database.reads == 1
    watch.now, database.is_away = watch.now + 1.0, False
    assert await keys.learned(TENANT) is not None


async def test_nobody_waits_for_a_database_that_hangs() -> None:
    keys, database, _ = keyring()
    database.hangs, before = True, asyncio.all_tasks()
    async with asyncio.timeout(5):
        assert await asyncio.gather(*(keys.learned(TENANT) for _ in range(100))) == [None] * 100
    assert database.reads == 1
    await keys.close()
    assert asyncio.all_tasks() == before
