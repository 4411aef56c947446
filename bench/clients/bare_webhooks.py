"""Webhooks without a database: a bare aiohttp loop, 64 in flight. `python -m bench.clients.bare_webhooks URL`."""

import asyncio
import sys
from typing import Final

import aiohttp
import uvloop

from bench.draining import MESSAGE_BYTES, serve_drains

_IN_FLIGHT: Final = 64
_BODY: Final = b"x" * MESSAGE_BYTES


async def main(url: str) -> None:
    """Take turns."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=_IN_FLIGHT)) as session:

        async def fill(_messages: int) -> None:
            """Have nothing to fill."""

        async def drain(messages: int) -> None:
            left = iter(range(messages))

            async def post() -> None:
                for _ in left:
                    async with session.post(url, data=_BODY, headers={"Content-Type": "text/plain"}) as response:
                        await response.read()

            async with asyncio.TaskGroup() as group:
                for _ in range(_IN_FLIGHT):
                    group.create_task(post())

        await serve_drains(fill, drain, {})


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
