"""The relay beside its peers: queues of messages that are filled, and emptied in turn."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import asyncpg

from bench.peers.install import Say, outbox_python
from bench.processes import CallerProcess, caller_process, running
from bench.servers import POSTGRES_MUST, durability, durable, postgres, sqlite
from bench.sides import Sides
from bench.turns import Turn
from twiceshy import Guard

_MESSAGES: Final = 20_000
_SYNCS: Final = {name: POSTGRES_MUST[name] for name in ("fsync", "synchronous_commit")}
_BESIDE: Final = "peers"


@contextmanager
def against(peer: str, module: str, say: Say) -> Iterator[Sides]:
    """Compare claim and settle, with a sink that does nothing, with a peer on the same PostgreSQL."""
    with ExitStack() as stack:
        python = outbox_python(say)
        url = stack.enter_context(postgres())
        ours = _relay(stack, url, "free")
        theirs = stack.enter_context(caller_process(peer, python, f"bench.peers.{module}", _beside(url)))
        facts = (durability(url), durable(f"{peer}'s connections", theirs.facts, _SYNCS))
        yield Sides(ours=_drains(ours), peer=_drains(theirs), facts=facts)


@contextmanager
def webhooks(_: Say) -> Iterator[Sides]:
    """Compare signed webhooks out of PostgreSQL with a bare loop that has no database, 64 in flight both."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres())
        receiver = stack.enter_context(running("the receiver", [sys.executable, "-m", "bench.receiver"]))
        address = receiver.read().decode().strip()
        ours = _relay(stack, url, "free", address)
        bare = caller_process("the bare loop", sys.executable, "bench.clients.bare_webhooks", address)
        yield Sides(ours=_drains(ours), peer=_drains(stack.enter_context(bare)), facts=(durability(url),))


@contextmanager
def poisoned(_: Say) -> Iterator[Sides]:
    """Compare 500 lanes beside a poisoned one of 50,000 with the same lanes alone, each on a PostgreSQL of its own."""
    with ExitStack() as stack:
        url, alone = stack.enter_context(postgres()), stack.enter_context(postgres())
        ours, peer = _relay(stack, url, "poisoned"), _relay(stack, alone, "lanes")
        yield Sides(ours=_drains(ours), peer=_drains(peer), facts=(durability(url),))


@contextmanager
def on_sqlite(_: Say) -> Iterator[Sides]:
    """Claim and settle on SQLite; a separate relay is refused there, and so no peer is like it."""
    with sqlite() as url, ExitStack() as stack:
        yield Sides(ours=_drains(_relay(stack, url, "free")), facts=(durability(url),))


def _drains(process: CallerProcess) -> Callable[[float], Turn]:
    return lambda _seconds: process.turn(_MESSAGES, 0)


def _relay(stack: ExitStack, url: str, load: str, webhook: str | None = None) -> CallerProcess:
    """Record an effect, which all messages are of, and start the relay over a queue."""
    with Guard(url, spool=None) as guard:

        @guard.tool
        def order() -> None:
            """Succeed."""

        with guard.run("bench"):
            order()
    arguments = [url, load, *([webhook] if webhook else [])]
    return stack.enter_context(caller_process("the relay", sys.executable, "bench.clients.relay_drain", *arguments))


def _beside(url: str) -> str:
    """Make the database that peers use, of the same server; return its address."""

    async def make() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(f"create database {_BESIDE}")
        finally:
            await connection.close()

    asyncio.run(make())
    return f"{url.rpartition('/')[0]}/{_BESIDE}"
