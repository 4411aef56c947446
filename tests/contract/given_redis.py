"""Accelerators over a real Valkey and a store, each as a replica of the service has one."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from guard.accelerator.address import address_of
from guard.accelerator.clients import client_of
from guard.accelerator.keyring import Keyring
from guard.accelerator.link import Link
from guard.accelerator.meters import Meters
from guard.accelerator.opening import RedisAccelerator
from guard.core.effects import SECOND, Duration, Effect, Key
from guard.ports.accelerator import Recalled
from guard.ports.store import Store
from tests.contract.given import TENANT

LIVES: Final = 3_600
KEPT: Final = Duration(72 * 3600 * SECOND)


class Counted:
    """Meters that a test reads."""

    def __init__(self) -> None:
        self.answers: list[Recalled] = []
        self.doubts: list[str] = []
        self.sent = 0
        self.dropped = 0
        self.failures: list[str] = []
        self.is_reached = False

    def recalled(self, answer: Recalled) -> None:
        self.answers.append(answer)

    def distrusted(self, why: str) -> None:
        self.doubts.append(why)

    def shared(self, answer: str, times: int) -> None:
        if answer == "sent":
            self.sent += times
        else:
            self.dropped += times

    def accelerator_failed(self, why: str) -> None:
        self.failures.append(why)

    def accelerator_reached(self, *, is_reached: bool) -> None:
        self.is_reached = is_reached


class Replica:
    """An accelerator, its meters, and the means to know that what was told has left."""

    def __init__(self, accelerator: RedisAccelerator, counted: Counted) -> None:
        self.accelerator = accelerator
        self.counted = counted

    async def knows(self) -> None:
        """Learn the tenant's epoch, as the begin of an effect does before the effect ends."""
        await self.accelerator.recall(TENANT, Key(bytes(32)), KEPT)

    async def keep(self, *effects: Effect) -> None:
        """Keep effects, and wait until all have been sent."""
        before = self.counted.sent
        for effect in effects:
            self.accelerator.keep(effect)
        await until(lambda: self.counted.sent == before + len(effects))

    async def recall(self, key: Key, kept: Duration = KEPT) -> Effect | None:
        """Return what is believed under a key."""
        return await self.accelerator.recall(TENANT, key, kept)


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for some seconds at the most."""
    async with asyncio.timeout(10):
        for _ in itertools.count():
            if is_so():
                return
            await asyncio.sleep(0.002)


@asynccontextmanager
async def replica(
    store: Store, url: str, clock: Callable[[], float] = time.monotonic, lives: int = LIVES, *, is_reached: bool = True
) -> AsyncIterator[Replica]:
    """Open an accelerator as a replica does; wait until it is reached."""
    counted = Counted()
    address = address_of(url)
    link = Link(client_of(address), address.shown, Meters())
    link.start()
    accelerator = RedisAccelerator(link, Keyring(store.salts, store.cache_epochs, clock), lives)
    accelerator.measure(counted)
    try:
        if is_reached:
            await until(lambda: accelerator.reached.is_reached)
        yield Replica(accelerator, counted)
    finally:
        await accelerator.close()
