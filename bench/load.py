"""The one load generator for both sides: keep-alive connections that call as fast as they are answered.

A guarded call is begin, an empty tool, commit: two requests. Both sides get the same bytes but for the path, and
the generator does the same work for both.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import msgspec
import uvloop

from bench.connection import Connection, connected
from bench.failure import BadAnswer
from bench.turns import Call, Callers, OpenCaller, Turn

CONNECTIONS: Final = 32
SETTLED_KEYS: Final = 64


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two that are compared: where it serves, and the paths of begin and commit."""

    port: int
    begin: str
    commit: str


class Grant(msgspec.Struct, frozen=True):
    """What the generator needs of the answer to begin."""

    decision: str
    key: str
    fence: int


class Generator:
    """Loads one side, in this process, over 32 connections or another number."""

    def __init__(self, open_caller: OpenCaller, connections: int = CONNECTIONS) -> None:
        self._callers = Callers(open_caller)
        self._connections = connections

    def turn(self, seconds: float) -> Turn:
        """Load the side for some seconds. Raises BadAnswer."""
        return run(self._callers.turn(self._connections, seconds))


def run(work: Coroutine[Any, Any, Turn]) -> Turn:
    """Run on uvloop; of what failed together, raise the first BadAnswer."""
    try:
        return uvloop.run(work)
    except ExceptionGroup as errors:
        bad, _ = errors.split(BadAnswer)
        if bad is None:
            raise
        raise BadAnswer(f"{bad.exceptions[0]} ({len(bad.exceptions)} such answers)") from errors


def guarded(side: Side) -> OpenCaller:
    """Return callers that begin and commit, no two calls the same; each has a run of its own."""
    load = uuid4().hex[:12]

    async def call(connection: Connection, run_name: str, number: int) -> None:
        attempt, grant = await begin(connection, side, run_name, number, "execute")
        await commit(connection, side, attempt, grant, number)

    return over_connections(
        side.port, lambda connection, index: lambda number: call(connection, f"bench-{load}-{index}", number)
    )


def repeated(side: Side, decision: str) -> OpenCaller:
    """Return callers that begin settled keys again, over and over; `decision` is what the side answers."""
    load = uuid4().hex[:12]
    asyncio.run(_settle(side, load))
    return over_connections(
        side.port,
        lambda connection, _: lambda number: begin(connection, side, load, number % SETTLED_KEYS, decision),
    )


def posted(port: int, path: str) -> OpenCaller:
    """Return callers that post a number under an idempotency key of its own: Restate's ingress."""
    load = uuid4().hex
    return over_connections(
        port,
        lambda connection, _: lambda number: connection.post(path, number, {"idempotency-key": f"{load}-{number}"}),
    )


async def begin(connection: Connection, side: Side, run_name: str, number: int, decision: str) -> tuple[str, Grant]:
    """Begin; return the attempt and its grant. Raises BadAnswer for another decision."""
    attempt = str(uuid4())
    answer = _GRANT.decode(await connection.post(side.begin, begin_body(run_name, number, attempt)))
    if answer.decision != decision:
        raise BadAnswer(f"begin was answered with {answer.decision}, not with {decision}")
    return attempt, answer


async def commit(connection: Connection, side: Side, attempt: str, grant: Grant, number: int) -> None:
    """Commit what was granted. Raises BadAnswer."""
    said = {"attempt": attempt, "fence": grant.fence, "result": {"id": number}}
    await connection.post(side.commit.replace("{key}", grant.key), said)


def begin_body(run_name: str, number: int, attempt: str) -> dict[str, object]:
    """Return the call that is made: a calendar hold."""
    arguments = {
        "start_time": "2026-10-12T14:00:00Z",
        "duration_minutes": 30,
        "title": "Strategy Sync with Alex",
        "number": number,
    }
    return {"tool": "create_calendar_hold", "arguments": arguments, "run": run_name, "attempt": attempt}


_GRANT: Final = msgspec.json.Decoder(Grant)


async def _settle(side: Side, run_name: str) -> None:
    async with connected(side.port) as connection:
        for number in range(SETTLED_KEYS):
            attempt, grant = await begin(connection, side, run_name, number, "execute")
            await commit(connection, side, attempt, grant, number)


def over_connections(port: int, made: Callable[[Connection, int], Call]) -> OpenCaller:
    """Return callers over a connection each; `made` makes the n-th caller's call of its connection."""

    @asynccontextmanager
    async def open_caller(index: int) -> AsyncIterator[Call]:
        async with connected(port) as connection:
            yield made(connection, index)

    return open_caller
