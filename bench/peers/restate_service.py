"""Restate's side in Python: a service with one `ctx.run`, on hypercorn as its documents show.

`python -m bench.peers.restate_service PORT`, in the environment of Restate's SDK.
"""

import asyncio
import sys
from typing import Any, Final

import hypercorn.asyncio
import hypercorn.config
import restate

bench: Final[Any] = restate.Service("Bench")


async def _empty(number: int) -> int:
    return number


async def call(context: Any, number: int) -> int:
    """Run an empty tool once."""
    result: int = await context.run_typed("empty", _empty, number=number)
    return result


if __name__ == "__main__":
    bench.handler()(call)
    served = hypercorn.config.Config()
    served.bind = [f"127.0.0.1:{sys.argv[1]}"]
    asyncio.run(hypercorn.asyncio.serve(restate.app(services=[bench]), served))
