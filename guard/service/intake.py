"""Group commit: while one batch of a lane is in flight, arriving work queues; the next batch takes it all.

A use case is a generator of steps: it yields what it assumes of one effect, is sent what the store found, and
in the end returns its outcome. The intake gathers the next step of everything that waits into one batch, so a
lone call goes at once and a thousand calls share one transaction. There is no timer.
"""

import asyncio
import time
import zlib
from collections.abc import Callable, Generator
from typing import TypeVar, cast

from guard.core.effects import TenantId
from guard.logs import logger
from guard.ports.steps import Step, StepResult, Written
from guard.ports.store import EffectStore, StatementFailed, StoreUnavailable
from guard.service.measures import Measures
from guard.service.queues import MAX_BATCH, Overloaded, Queues

T = TypeVar("T")
TenantT = TypeVar("TenantT", TenantId, TenantId | None)
Work = Generator[Step, StepResult, T]

_log = logger("guard.intake")


class _Job:
    """One use case under way: its generator, its next step, and who waits for its outcome."""

    __slots__ = ("_work", "outcome", "step", "waits_since")

    def __init__(self, work: Work[object], first: Step, outcome: asyncio.Future[object]) -> None:
        self._work = work
        self.outcome = outcome
        self.step = first
        self.waits_since = time.perf_counter()

    def advance(self, result: StepResult) -> bool:
        """Hand over what the store found; say whether another step follows."""
        try:
            self.step = self._work.send(result)
        except StopIteration as stop:
            if not self.outcome.done():
                self.outcome.set_result(stop.value)
            return False
        except Exception as error:  # noqa: BLE001  whoever waits must hear of it, and the lane must live on
            self.fail(error)
            return False
        return True

    def fail(self, error: Exception) -> None:
        """End the use case with an error."""
        self._work.close()
        if not self.outcome.done():
            self.outcome.set_exception(error)


class _Lane:
    """One queue with at most one batch in flight."""

    def __init__(self, number: int, store: EffectStore, written: Callable[[Written], None], measures: Measures) -> None:
        self._number = number
        self._store = store
        self._written = written
        self._measures = measures
        self.queues: Queues[_Job] = Queues()
        self._arrived = asyncio.Event()

    def put(self, tenant: TenantId | None, job: _Job) -> None:
        self.queues.report(tenant, job)
        self._arrived.set()

    def put_start(self, tenant: TenantId, job: _Job) -> None:
        self.queues.start(tenant, job)
        self._arrived.set()

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            await self.run_once()

    async def run_once(self) -> None:
        """Take what waits, apply it as one batch, and queue what goes on before what came meanwhile."""
        batch = self.queues.take(MAX_BATCH)
        self.queues.begun()
        try:
            unfinished = await self._apply(batch)
        finally:
            self.queues.done()
        self.queues.go_on(unfinished)
        if not len(self.queues):
            self._arrived.clear()

    async def _apply(self, batch: list[_Job]) -> list[_Job]:
        started = time.perf_counter()
        try:
            results = await self._apply_again_if_lost([job.step for job in batch])
            self._measures.applied(len(batch), started - batch[0].waits_since, time.perf_counter() - started)
        except StatementFailed as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                return await self._apply(batch[:middle]) + await self._apply(batch[middle:])
            _log.exception("statement_failed", step=type(batch[0].step).__name__)
            batch[0].fail(error)
            return []
        except Exception as error:  # noqa: BLE001  a lane that dies would leave every later caller waiting
            for job in batch:
                job.fail(error)
            return []
        unfinished = [job for job, result in zip(batch, results, strict=True) if job.advance(result)]
        written = [result for result in results if isinstance(result, Written)]
        for result in written:  # who wrote is answered before who waits for it
            self._written(result)
        self._measures.written(result.effect.life.state for result in written)
        return unfinished

    async def _apply_again_if_lost(self, steps: list[Step]) -> list[StepResult]:
        """Send the same batch once more when its reply was lost: every step is safe to repeat."""
        try:
            return await self._store.apply(self._number, steps)
        except StoreUnavailable:
            return await self._store.apply(self._number, steps)


class Intake:
    """The lanes of one process."""

    def __init__(self, store: EffectStore, written: Callable[[Written], None], measures: Measures) -> None:
        self._measures = measures
        self._lanes = [_Lane(number, store, written, measures) for number in range(store.lanes)]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Let the lanes take work."""
        self._tasks = [asyncio.create_task(lane.run()) for lane in self._lanes]

    async def close(self) -> None:
        """Stop the lanes; what is in flight is finished or lost as a whole."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def waiting(self) -> int:
        """How many steps wait for a lane."""
        return sum(len(lane.queues) for lane in self._lanes)

    @property
    def retry_after(self) -> float:
        """After how many seconds it is of use to ask again for what was put off."""
        return max(lane.queues.retry_after for lane in self._lanes)

    async def do(self, name: bytes, work: Work[T], tenant: TenantId | None = None) -> T:
        """Run a use case in the lane of a name (a run or a key), for a tenant, or for the service itself.

        Raises Overloaded, StoreUnavailable, StatementFailed.
        """
        return cast("T", await self._asked(work, self._lane(name).put, tenant))

    async def admit(self, name: bytes, work: Work[T], tenant: TenantId) -> T:
        """Run a use case that begins something; where too much waits it is put off. Raises the same."""
        return cast("T", await self._asked(work, self._lane(name).put_start, tenant))

    def _lane(self, name: bytes) -> _Lane:
        return self._lanes[zlib.crc32(name) % len(self._lanes)]

    def _asked(self, work: Work[T], put: Callable[[TenantT, _Job], None], tenant: TenantT) -> "asyncio.Future[object]":
        """Begin a use case: it has an outcome, or waits with its first step."""
        outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        try:
            put(tenant, _Job(work, next(work), outcome))
        except StopIteration as stop:
            outcome.set_result(stop.value)
        except Overloaded as error:
            work.close()
            self._measures.put_off("queue")
            outcome.set_exception(error)
        return outcome
