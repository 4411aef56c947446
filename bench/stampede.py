"""A thousand begins of one key at once: one executes, all others wait for its outcome."""

import asyncio
import itertools
import time
from contextlib import AsyncExitStack
from typing import Final
from uuid import uuid4

import msgspec

from bench.connection import Connection, connected
from bench.failure import BadAnswer
from bench.load import Grant, Side, begin_body, run
from bench.turns import Turn

CALLERS: Final = 1_000
_WAIT_SECONDS: Final = 30
_TOOL_SECONDS: Final = 1.0
_GRANT: Final = msgspec.json.Decoder(Grant)


class Answered(msgspec.Struct, frozen=True):
    """One answer to begin, and when it came."""

    grant: Grant
    attempt: str
    at: float


class Stampede:
    """Begins of one new key at once, through one connection each; the one that executes takes a second.

    Of several replicas each has its share of the connections.
    """

    def __init__(self, *sides: Side) -> None:
        self._sides = sides

    def turn(self, _: float) -> Turn:
        """Return the milliseconds of each waiter from the commit's answer to its own. Raises BadAnswer."""
        return run(self._stampede())

    async def _stampede(self) -> Turn:
        started = time.perf_counter()
        async with AsyncExitStack() as stack:
            ports = [side.port for side in itertools.islice(itertools.cycle(self._sides), CALLERS)]
            connections = [await stack.enter_async_context(connected(port)) for port in ports]
            own = await stack.enter_async_context(connected(self._sides[0].port))
            executing = asyncio.get_running_loop().create_future()
            run_name = f"bench-{uuid4().hex[:12]}"
            async with asyncio.timeout(2 * _WAIT_SECONDS), asyncio.TaskGroup() as group:
                begins = [group.create_task(self._begin(each, run_name, executing)) for each in connections]
                committed_at = await self._commit(await executing, own)
            answers = [begun.result() for begun in begins]
        milliseconds = waits(answers, committed_at)
        return Turn(calls=len(answers), seconds=time.perf_counter() - started, milliseconds=milliseconds)

    async def _begin(self, connection: Connection, run_name: str, executing: "asyncio.Future[Answered]") -> Answered:
        attempt = str(uuid4())
        body = begin_body(run_name, 1, attempt) | {"wait_seconds": _WAIT_SECONDS}
        grant = _GRANT.decode(await connection.post(self._sides[0].begin, body))
        answered = Answered(grant, attempt, time.perf_counter())
        if grant.decision == "execute" and not executing.done():
            executing.set_result(answered)
        return answered

    async def _commit(self, answered: Answered, connection: Connection) -> float:
        """Let the tool take its time, commit, and return when the commit was answered."""
        await asyncio.sleep(_TOOL_SECONDS)
        grant = answered.grant
        commit = {"attempt": answered.attempt, "fence": grant.fence, "result": {"id": 1}}
        await connection.post(self._sides[0].commit.replace("{key}", grant.key), commit)
        return time.perf_counter()


def waits(answers: list[Answered], committed_at: float) -> tuple[float, ...]:
    """Return what each waiter waited after the commit, in milliseconds. Raises BadAnswer unless one executed."""
    executions = sum(answered.grant.decision == "execute" for answered in answers)
    replays = [answered.at for answered in answers if answered.grant.decision == "replay"]
    if executions != 1 or len(replays) != len(answers) - 1:
        raise BadAnswer(f"of {len(answers)} begins of one key {executions} executed and {len(replays)} were replayed")
    return tuple(max(0.0, at - committed_at) * 1000 for at in replays)
