"""The faults of a soak, drawn by a seed: replicas, database and Redis are killed, frozen and started again."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from redis import Redis

from tests.brokers import ValkeyServer
from tests.servers import PostgresServer
from tests.service import ServiceProcess
from tests.soak.history import Fault
from tests.soak.world import World

_PAUSE: Final = (0.5, 2.5)
_FREEZE: Final = (0.5, 2.5)


class Nemesis(threading.Thread):
    """Does one thing after the other, and mends each before the next."""

    def __init__(
        self,
        world: World,
        replicas: Sequence[ServiceProcess],
        seed: int,
        *,
        database: PostgresServer | None = None,
        redis: ValkeyServer | None = None,
    ) -> None:
        super().__init__(name="nemesis")
        self._world, self._replicas, self._database, self._redis = world, replicas, database, redis
        self._chance = random.Random(seed)  # noqa: S311
        self.errors: list[BaseException] = []

    def run(self) -> None:
        """Do harm until the soak is over."""
        deeds: list[Callable[[], str]] = [self._kill_replica, self._freeze_replica, self._restart_replica]
        deeds += [self._kill_database] if self._database is not None else []
        deeds += [self._kill_redis, self._freeze_redis, self._empty_redis] if self._redis is not None else []
        while not self._world.is_over.wait(self._chance.uniform(*_PAUSE)):
            try:
                what = self._chance.choice(deeds)()
            except BaseException as error:  # noqa: BLE001  the soak must hear that its faults have ended
                self.errors.append(error)
                return
            self._world.journal.write(Fault(what=what, at=time.monotonic()))

    def _kill_replica(self) -> str:
        replica = self._chance.choice(self._replicas)
        replica.kill()
        replica.start()
        return "replica killed"

    def _restart_replica(self) -> str:
        replica = self._chance.choice(self._replicas)
        replica.stop()
        replica.start()
        return "replica restarted"

    def _freeze_replica(self) -> str:
        pid = self._chance.choice(self._replicas).pid
        os.kill(pid, signal.SIGSTOP)
        try:
            self._world.is_over.wait(self._chance.uniform(*_FREEZE))
        finally:
            os.kill(pid, signal.SIGCONT)
        return "replica frozen"

    def _kill_database(self) -> str:
        assert self._database is not None
        self._database.kill()
        self._database.start()
        return "database killed"

    def _kill_redis(self) -> str:
        assert self._redis is not None
        self._redis.kill()
        self._redis.start()
        return "redis killed"

    def _freeze_redis(self) -> str:
        assert self._redis is not None
        self._redis.freeze()
        try:
            self._world.is_over.wait(self._chance.uniform(*_FREEZE))
        finally:
            self._redis.thaw()
        return "redis frozen"

    def _empty_redis(self) -> str:
        assert self._redis is not None
        with Redis.from_url(self._redis.url) as client:
            client.flushall()
        return "redis emptied"
