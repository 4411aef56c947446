"""faststream-outbox: a subscriber that does nothing, in its fastest measured setting.

Runs in an environment of its own: `python -m bench.peers.faststream_outbox_drain DATABASE_URL`.
"""

import asyncio
import logging
import sys
from typing import Any, Final

import sqlalchemy as sa
from faststream_outbox import OutboxBroker, make_outbox_table
from sqlalchemy.ext.asyncio import create_async_engine

from bench.draining import MESSAGE_BYTES, drained, serve_drains

_WORKERS: Final = 16
_BATCH: Final = 500
_AT_ONCE: Final = 1_000
_ASKED: Final = ("fsync", "synchronous_commit")


async def main(url: str) -> None:
    """Take turns."""
    logging.disable(logging.CRITICAL)
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"), pool_size=40)
    table = make_outbox_table(sa.MetaData(), "bench_outbox")
    async with engine.begin() as connection:
        await connection.run_sync(table.metadata.create_all)
        facts = {name: str((await connection.execute(sa.text(f"show {name}"))).scalar_one()) for name in _ASKED}
    body = "x" * MESSAGE_BYTES

    async def fill(messages: int) -> None:
        broker = OutboxBroker(engine, outbox_table=table)
        await broker.connect()
        for _ in range(0, messages, _AT_ONCE):
            async with engine.begin() as connection:
                await broker.publish_batch(*[body] * _AT_ONCE, queue="bench", session=connection)

    async def is_filled() -> bool:
        async with engine.connect() as connection:
            return bool((await connection.execute(sa.text("select exists (select from bench_outbox)"))).scalar_one())

    async def drain(_messages: int) -> None:
        broker: Any = OutboxBroker(engine, outbox_table=table)

        async def nothing(_body: str) -> None:
            """Do nothing."""

        broker.subscriber(
            "bench",
            max_workers=_WORKERS,
            fetch_batch_size=_BATCH,
            terminal_flush_batch_size=_BATCH,
            min_fetch_interval=0.01,
            max_fetch_interval=0.1,
        )(nothing)
        await broker.start()
        await drained(is_filled)
        asyncio.get_running_loop().create_task(broker.stop())

    await serve_drains(fill, drain, facts)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
