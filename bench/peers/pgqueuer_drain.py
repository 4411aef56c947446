"""pgqueuer: an entrypoint that does nothing, with the batch that it was measured fastest with.

Runs in an environment of its own: `python -m bench.peers.pgqueuer_drain DATABASE_URL`.
"""

import asyncio
import logging
import sys
from datetime import timedelta
from typing import Any, Final

import asyncpg
from pgqueuer.core.qm import QueueManager
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from bench.draining import MESSAGE_BYTES, drained, serve_drains

_BATCH: Final = 100
_AT_ONCE: Final = 1_000
_ASKED: Final = ("fsync", "synchronous_commit")


async def main(url: str) -> None:
    """Take turns."""
    logging.disable(logging.CRITICAL)
    connection = await asyncpg.connect(url)
    watching = await asyncpg.connect(url)
    queries: Any = Queries(AsyncpgDriver(connection))
    if not await queries.schema_is_installed():
        await queries.install()
    facts = {name: str(await connection.fetchval(f"show {name}")) for name in _ASKED}

    async def fill(messages: int) -> None:
        for _ in range(0, messages, _AT_ONCE):
            await queries.enqueue(["bench"] * _AT_ONCE, [b"x" * MESSAGE_BYTES] * _AT_ONCE, [0] * _AT_ONCE)

    async def is_filled() -> bool:
        return bool(await watching.fetchval("select exists (select from pgqueuer)"))

    async def drain(_messages: int) -> None:
        manager: Any = QueueManager(queries)

        async def nothing(_job: Any) -> None:
            """Do nothing."""

        manager.entrypoint("bench")(nothing)

        running = asyncio.create_task(
            manager.run(batch_size=_BATCH, mode=QueueExecutionMode.drain, log_aggregation_interval=timedelta(0))
        )
        await drained(is_filled)
        await running

    await serve_drains(fill, drain, facts)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
