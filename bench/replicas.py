"""Two replicas on one PostgreSQL: what one has settled the other answers, and waiters of one key sit on both."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import Final, Literal, TypeAlias
from uuid import uuid4

from bench import load
from bench.connection import Connection, connected
from bench.load import CONNECTIONS, Side
from bench.peers.install import Say
from bench.servers import durability, noop, postgres, service, valkey
from bench.sides import Sides, TakeTurn
from bench.stampede import Stampede
from bench.turns import Turn

KEYS: Final = 2_000
"""How many settled keys a turn replays, each once: asked again, a replica has it in its own memory."""
Peer: TypeAlias = Literal["no-op", "without Redis"]


@contextmanager
def replay_of_another(peer: Peer, _: Say) -> Iterator[Sides]:
    """Compare begins of keys that another replica settled, which a Redis has, with the no-op or with no Redis."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres())
        first, second = _pair(stack, url, stack.enter_context(_redis()))
        if peer == "no-op":
            theirs = _replays(None, stack.enter_context(noop()), "execute")
        else:
            theirs = _replays(*_pair(stack, url, ()), "replay")
        yield Sides(ours=_replays(first, second, "replay"), peer=theirs, facts=(durability(url),))


@contextmanager
def stampede(_: Say) -> Iterator[Sides]:
    """Send a thousand begins of one key at once to two replicas, half to each; no peer does that."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres())
        pair = _pair(stack, url, stack.enter_context(_redis()))
        yield Sides(ours=Stampede(*pair).turn, facts=(durability(url),))


@contextmanager
def _redis() -> Iterator[tuple[str, ...]]:
    """Start a Valkey; give the options with which the service uses it."""
    with valkey() as port:
        yield ("--redis", f"redis://127.0.0.1:{port}/0")


def _pair(stack: ExitStack, url: str, options: tuple[str, ...]) -> tuple[Side, Side]:
    """Start two replicas on one database."""
    return stack.enter_context(service(url, options)), stack.enter_context(service(url, options))


def _replays(settling: Side | None, asked: Side, decision: str) -> TakeTurn:
    """Return turns that begin keys again, each once; `settling` has settled them before, which is not timed."""

    async def turn() -> Turn:
        run = f"bench-{uuid4().hex[:12]}"
        if settling is not None:
            await _each_once(settling, run, "execute", is_committed=True)
        return await _each_once(asked, run, decision, is_committed=False)

    return lambda _seconds: load.run(turn())


async def _each_once(side: Side, run: str, decision: str, *, is_committed: bool) -> Turn:
    """Begin each of the keys, over all connections at once, and commit those that are to be."""
    numbers = iter(range(KEYS))
    milliseconds: list[float] = []

    async def calls(connection: Connection) -> None:
        for number in numbers:
            before = time.perf_counter()
            attempt, grant = await load.begin(connection, side, run, number, decision)
            if is_committed:
                await load.commit(connection, side, attempt, grant, number)
            milliseconds.append((time.perf_counter() - before) * 1000)

    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(connected(side.port)) for _ in range(CONNECTIONS)]
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(calls(connection))
        seconds = time.perf_counter() - started
    return Turn(calls=KEYS, seconds=seconds, milliseconds=tuple(milliseconds))
