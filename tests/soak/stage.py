"""A whole soak: replicas on a database, those who ask, the faults, and in the end what stands."""

import asyncio
import http.client
import json
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Final, Literal

import asyncpg
import msgspec

from guard.store.sql.codes import STATE_CODES
from guard.store.sql.schema import migrate
from tests.brokers import ValkeyServer
from tests.servers import PostgresServer
from tests.service import ServiceProcess
from tests.soak.checker import SETTLE_SECONDS
from tests.soak.clients import Agent, Operator, Program
from tests.soak.faults import Nemesis
from tests.soak.history import Entry, Journal, Operation, Stands, read
from tests.soak.world import World

Backend = Literal["postgresql", "sqlite"]
DECLARED: Final[Mapping[str, Mapping[str, object]]] = {
    "pay": {"settle_seconds": SETTLE_SECONDS},
    "sync": {
        "class": "idempotent",
        "provider_window_seconds": 86_400,
        "attempts": 100,
        "backoff_seconds": 0.1,
        "settle_seconds": SETTLE_SECONDS,
    },
}
_SELECT: Final = "SELECT key, state, outcome FROM effects"
_READERS: Final = 4


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done: for how many seconds, by how many, to what."""

    seconds: float
    backend: Backend = "postgresql"
    replicas: int = 2
    agents: int = 8
    programs: int = 2
    with_redis: bool = False
    seed: int = 1


def soak(plan: Plan, folder: Path, tell: Callable[[float], None] = lambda _part: None) -> list[Entry]:
    """Do it; `tell` hears which part of the time has gone. Return the history, which is in the folder too."""
    path = folder / "history.jsonl"
    journal = Journal(path)
    world = World(journal)
    try:
        with _service(plan, folder) as (replicas, database, redis, url):
            nemesis = Nemesis(world, replicas, plan.seed, database=database, redis=redis)
            _declare(replicas[0])
            ports = [replica.port for replica in replicas]
            threads = [Agent(number, world, ports, plan.seed) for number in range(plan.agents)]
            programs = [Program(number, world, ports[number % len(ports)]) for number in range(plan.programs)]
            _run(plan, world, [*threads, *programs, Operator(world, ports, plan.seed), nemesis], tell)
            if nemesis.errors:
                raise nemesis.errors[0]
            for stands in _standing(path, journal, replicas, url):
                journal.write(stands)
    finally:
        world.is_over.set()
        journal.close()
    return read(path)


def _run(plan: Plan, world: World, members: Sequence[Thread], tell: Callable[[float], None]) -> None:
    for thread in members:
        thread.start()
    began = time.monotonic()
    try:
        while (gone := time.monotonic() - began) < plan.seconds:
            tell(gone / plan.seconds)
            world.is_over.wait(0.2)
    finally:
        world.is_over.set()
        for thread in members:
            thread.join(60)


@contextmanager
def _service(
    plan: Plan, folder: Path
) -> Iterator[tuple[list[ServiceProcess], PostgresServer | None, ValkeyServer | None, str]]:
    """Start the database, Redis and the replicas."""
    with ExitStack() as stack:
        database: PostgresServer | None = None
        url = f"sqlite:///{folder / 'soak.db'}"
        if plan.backend == "postgresql":
            database = PostgresServer(is_durable=True)
            stack.callback(database.remove)
            database.start()
            url = database.url()
        asyncio.run(migrate(url))
        redis: ValkeyServer | None = None
        options: tuple[str, ...] = ("--log", "problems")
        if plan.with_redis:
            redis = ValkeyServer()
            stack.callback(redis.remove)
            redis.start()
            options += ("--redis", redis.url)
        count = plan.replicas if plan.backend == "postgresql" else 1
        replicas = [ServiceProcess(url, options=options, errors=subprocess.DEVNULL) for _ in range(count)]
        for replica in replicas:
            stack.enter_context(replica)
        yield replicas, database, redis, url


def _declare(replica: ServiceProcess) -> None:
    for tool, declaration in DECLARED.items():
        reply = replica.ask("PUT", f"/v1/tools/{tool}", declaration)
        if reply.status != 200:
            raise RuntimeError(f"{tool} was not declared: {reply.body}")


def _standing(path: Path, journal: Journal, replicas: Sequence[ServiceProcess], url: str) -> Iterator[Stands]:
    """Read every key that anybody heard of: from each replica, and from the database itself."""
    journal.flush()
    keys = sorted({entry.key for entry in read(path) if isinstance(entry, Operation) and entry.key})
    for number, replica in enumerate(replicas):
        with ThreadPoolExecutor(_READERS) as readers:
            parts = [keys[at::_READERS] for at in range(_READERS)]
            for found in readers.map(lambda part, n=number, r=replica: _read_all(f"replica-{n}", r, part), parts):
                yield from found
    wanted = set(keys)
    for key, state, outcome in _rows(url):
        if bytes(key).hex() in wanted:
            yield _stands("database", bytes(key).hex(), _STATES[state], None if outcome is None else bytes(outcome))


_STATES: Final = {code: name for name, code in STATE_CODES.items()}


def _read_all(name: str, replica: ServiceProcess, keys: Sequence[str]) -> list[Stands]:
    connection = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=30)
    found = []
    for key in keys:
        connection.request("GET", f"/v1/effects/{key}")
        body = json.loads(connection.getresponse().read())
        told = body.get("outcome") or {}
        state = str(body.get("state") or body.get("type"))
        found.append(Stands(replica=name, key=key, state=state, outcome=told.get("result")))
    connection.close()
    return found


def _stands(name: str, key: str, state: str, outcome: bytes | None) -> Stands:
    told = {} if outcome is None else msgspec.json.decode(outcome)
    return Stands(replica=name, key=key, state=state, outcome=told.get("result"))


def _rows(url: str) -> list[tuple[bytes, int, bytes | None]]:
    """Select all effects."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            return connection.execute(_SELECT).fetchall()

    async def select() -> list[tuple[bytes, int, bytes | None]]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(_SELECT)]
        finally:
            await connection.close()

    return asyncio.run(select())
