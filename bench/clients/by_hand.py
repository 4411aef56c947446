"""What a careful developer writes by hand: `python -m bench.clients.by_hand DSN`.

One transaction claims the key, the tool runs, another keeps the result. The pool is asyncpg's own default.
"""

import asyncio
import sys
from contextlib import nullcontext
from typing import Final
from uuid import uuid4

import asyncpg

from bench.failure import BadAnswer
from bench.turns import serve

_TABLE: Final = """
create table if not exists idempotency(
  key text primary key, claimed_at timestamptz not null default now(), finished_at timestamptz, result jsonb)
"""
_CLAIM: Final = "insert into idempotency(key) values ($1) on conflict do nothing returning key"
_FINISH: Final = "update idempotency set finished_at = now(), result = $2 where key = $1"


class ByHand:
    """The pair of transactions around an empty tool."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self._pool = pool
        self._process = uuid4().hex

    async def call(self, number: int) -> int:
        """Claim, run, keep."""
        key = f"{self._process}-{number}"
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(_CLAIM, key) is None:
                raise BadAnswer(f"{key} was claimed before")
        result = await _empty(number)
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_FINISH, key, str(result))
        return result


async def _empty(number: int) -> int:
    return number


async def main(dsn: str) -> None:
    """Make the table and take turns."""
    async with asyncpg.create_pool(dsn) as pool:
        await pool.execute(_TABLE)
        facts = {name: await pool.fetchval(f"show {name}") for name in ("fsync", "synchronous_commit")}
        by_hand = ByHand(pool)
        await serve(lambda _: nullcontext(by_hand.call), facts)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
