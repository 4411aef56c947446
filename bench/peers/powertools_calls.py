"""Powertools for AWS Lambda: an idempotent function with an empty body. Runs in an environment of its own.

`python -m bench.peers.powertools_calls HOST PORT` of a Redis or Valkey. Its persistence on Redis has no async form, so
each caller is a thread, which its connection pool gives a connection of its own.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Final
from uuid import uuid4

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer

from bench.turns import serve

_CALLERS_AT_MOST: Final = 256
_REMAINING_MILLISECONDS: Final = 60_000
_ASKED: Final = ("appendonly", "appendfsync")


class _Context:
    """What Lambda tells of an invocation. Without it Powertools warns, and a crash blocks the key until it expires."""

    def get_remaining_time_in_millis(self) -> int:
        """Return what an invocation of a minute has left."""
        return _REMAINING_MILLISECONDS


async def main(host: str, port: int) -> None:
    """Take turns; every call has an order of its own."""
    store: Any = CachePersistenceLayer(host=host, port=port, ssl=False)
    config: Any = IdempotencyConfig()
    config.register_lambda_context(_Context())
    process = uuid4().hex

    def body(order: dict[str, Any]) -> int:
        number: int = order["number"]
        return number

    empty: Any = idempotent_function(body, data_keyword_argument="order", persistence_store=store, config=config)
    facts = {name: str(store.client.config_get(name)[name]) for name in _ASKED}
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(_CALLERS_AT_MOST) as threads:

        def call(number: int) -> Any:
            order = {"process": process, "number": number}
            return loop.run_in_executor(threads, lambda: empty(order=order))

        await serve(lambda _: nullcontext(call), facts)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
