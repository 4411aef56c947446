"""Guarded calls through the SDK: `python -m bench.clients.guarded URL`."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from bench.turns import Call, serve
from twiceshy import Guard


async def main(url: str) -> None:
    """Call an empty tool behind one guard; each caller has a run of its own."""
    async with Guard(url) as guard:
        process = uuid4().hex[:12]

        @guard.tool
        async def empty(number: int) -> int:
            return number

        @asynccontextmanager
        async def open_caller(index: int) -> AsyncIterator[Call]:
            async with guard.run(f"bench-{process}-{index}"):
                yield empty

        await serve(open_caller, {})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
