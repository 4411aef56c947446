"""Turns: callers that call as fast as they are answered, for some seconds, in this process or in one of their own.

Every side is loaded by this one loop: the generator of HTTP, the SDK, and the peers in environments of their own.
So nothing is imported here but the standard library.
"""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Final, TypeAlias

Call: TypeAlias = Callable[[int], Awaitable[object]]
"""Makes the call of a number; no number comes twice."""
OpenCaller: TypeAlias = Callable[[int], AbstractAsyncContextManager[Call]]
"""Sets the n-th caller up: its connection, its run."""

_STUCK_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one turn found: how many calls were answered in how many seconds, and how many milliseconds each took."""

    calls: int
    seconds: float
    milliseconds: tuple[float, ...]

    @property
    def per_second(self) -> float:
        """The calls answered in each second."""
        return self.calls / self.seconds


class Callers:
    """Callers of one side. Their calls are numbered through all turns."""

    def __init__(self, open_caller: OpenCaller) -> None:
        self._open_caller = open_caller
        self._numbers = itertools.count()

    async def turn(self, callers: int, seconds: float) -> Turn:
        """Let some callers call for some seconds. A call that has begun is waited for and counted."""
        milliseconds: list[float] = []
        async with AsyncExitStack() as stack:
            calls = [await stack.enter_async_context(self._open_caller(index)) for index in range(callers)]
            started = time.perf_counter()
            async with asyncio.timeout(seconds + _STUCK_SECONDS), asyncio.TaskGroup() as group:
                for call in calls:
                    group.create_task(self._repeat(call, started + seconds, milliseconds))
            ended = time.perf_counter()
        return Turn(calls=len(milliseconds), seconds=ended - started, milliseconds=tuple(milliseconds))

    async def _repeat(self, call: Call, until: float, milliseconds: list[float]) -> None:
        before = time.perf_counter()
        while before < until:
            await call(next(self._numbers))
            after = time.perf_counter()
            milliseconds.append((after - before) * 1000)
            before = after


async def serve(open_caller: OpenCaller, facts: Mapping[str, str]) -> None:
    """Take turns as a process: one line of JSON in, `{callers, seconds}`, one line out, until the input ends.

    The first line out is `facts`: what the side says of its own durability.
    """
    callers = Callers(open_caller)
    _say(facts)
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        _say(asdict(await callers.turn(asked["callers"], asked["seconds"])))


def _say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()
