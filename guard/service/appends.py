"""Group commit for logs: while one transaction of appends is in flight, arriving ones queue; the next takes them all.

Large ones go alone, so that a begin which brings a few events does not wait for megabytes.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from guard.logs import logger
from guard.ports.events import Append, AppendResult, EventStore
from guard.ports.store import StatementFailed

MOST_APPENDS: Final = 64
MOST_BYTES: Final = 512 * 2**10
"""Of one transaction that is shared."""
_LARGE_BYTES: Final = 64 * 2**10
_LARGE_AT_ONCE: Final = 2

_log = logger("guard.appends")


class _Waiting(msgspec.Struct):
    """An append, its size, and who waits for what it came to."""

    append: Append
    size: int
    result: asyncio.Future[AppendResult]


class Appends:
    """The appends of one process."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._queue: deque[_Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)

    async def do(self, append: Append) -> AppendResult:
        """Append. Raises StoreUnavailable, StatementFailed."""
        size = append.size
        if size > _LARGE_BYTES:
            async with self._large:
                (result,) = await self._store.append([append])
            return result
        waiting = _Waiting(append, size, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        if self._writing is None:
            self._writing = asyncio.create_task(self._run())
        return await waiting.result

    async def close(self) -> None:
        """Let what was asked for be written."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._queue:
                await self._apply(self._batch())
        finally:
            self._writing = None

    def _batch(self) -> list[_Waiting]:
        batch = [self._queue.popleft()]
        size = batch[0].size
        while self._queue and len(batch) < MOST_APPENDS and size + self._queue[0].size <= MOST_BYTES:
            batch.append(self._queue.popleft())
            size += batch[-1].size
        return batch

    async def _apply(self, batch: Sequence[_Waiting]) -> None:
        try:
            results = await self._store.append([each.append for each in batch])
        except StatementFailed as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                await self._apply(batch[:middle])
                await self._apply(batch[middle:])
                return
            _log.exception("append_failed")
            _fail(batch, error)
        except Exception as error:  # noqa: BLE001  it belongs to whoever waits, and the next batch must go on
            _fail(batch, error)
        else:
            for each, result in zip(batch, results, strict=True):
                if not each.result.done():
                    each.result.set_result(result)


def _fail(batch: Sequence[_Waiting], error: Exception) -> None:
    for each in batch:
        if not each.result.done():
            each.result.set_exception(error)
