"""Drains: a queue is filled, which is not timed, and emptied by a consumer that does nothing, which is.

Ours and the peers take turns by this one loop, in processes and environments of their own, so nothing is imported
here but the standard library. A message has 300 bytes. A drain ends when the database says that the queue is empty:
what a consumer has only handled is not settled yet.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Final

from bench.turns import Turn

MESSAGE_BYTES: Final = 300
_POLL_SECONDS: Final = 0.02

Fill = Callable[[int], Awaitable[object]]
"""Puts so many messages into the queue."""
IsFilled = Callable[[], Awaitable[bool]]
"""Says whether the queue has a message still; it is asked so seldom and so briefly that it is no load."""


async def drained(is_filled: IsFilled) -> None:
    """Wait until the queue is empty."""
    while await is_filled():  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)  # the queue is another process's, and tells nobody


async def serve_drains(fill: Fill, drain: Callable[[int], Awaitable[object]], facts: Mapping[str, str]) -> None:
    """Take turns as a process: one line of JSON in, of which `callers` is how many messages, one line out."""
    _say(facts)
    while line := await asyncio.to_thread(sys.stdin.readline):
        messages = int(json.loads(line)["callers"])
        await fill(messages)
        started = time.perf_counter()
        await drain(messages)
        seconds = time.perf_counter() - started
        _say(asdict(Turn(calls=messages, seconds=seconds, milliseconds=(seconds * 1000 / messages,))))


def _say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()
