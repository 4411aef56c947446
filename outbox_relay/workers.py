"""Workers: tasks that send one message after another, in the slots that all destinations share.

The next worker of a route comes when one has to wait. Where slots are too few the routes take turns, and some slots are
not given to routes that have one: what never answers must not take the last.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from outbox_relay.route import Flight, Route

Fly = Callable[[Flight, Route, asyncio.Task[None]], Awaitable[None]]
"""Sends what a flight has, in this task."""
_KEPT: Final = 8
"""One slot of so many is kept for routes that have none."""


class Workers:
    """The workers of one relay. `able` is how many destinations may be sent to."""

    def __init__(self, slots: int, fly: Fly, late: Callable[[Route, float], None]) -> None:
        """Send by `fly`; `late` gives back what a route has waiting too long."""
        self._slots = slots
        self._fly = fly
        self._late = late
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._starved: OrderedDict[Route, None] = OrderedDict()
        self._busy = 0
        self.able = 0

    def stand_ready(self, route: Route) -> None:
        """Let another worker come for what waits, if the route and the relay have a slot for it."""
        if not route.waiting or route.is_worker_coming or route.workers >= route.way.settings.concurrency:
            return
        kept = min(self._slots // _KEPT, max(0, self.able - self._busy)) if route.workers else 0
        if len(self._tasks) >= self._slots - kept:
            self._starved[route] = None
            return
        route.is_worker_coming = True
        self._busy += not route.workers
        route.workers += 1
        worker = asyncio.create_task(self._work(route))
        self._tasks.add(worker)
        worker.add_done_callback(self._gone)

    async def ended(self, seconds: float) -> None:
        """Wait until all have ended, for so long at the most."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def _gone(self, worker: asyncio.Task[None]) -> None:
        self._tasks.discard(worker)
        for _ in range(len(self._starved)):
            if len(self._tasks) >= self._slots:
                return
            self.stand_ready(self._starved.popitem(last=False)[0])

    async def _work(self, route: Route) -> None:
        """Send what waits at a route, one after another, until another route waits for a slot."""
        route.is_worker_coming = False
        worker = asyncio.current_task()
        assert worker is not None  # noqa: S101  a worker is a task
        try:
            while route.waiting:
                now = self._loop.time()
                if not route.waiting[0].is_fresh(now):
                    self._late(route, now)
                    continue
                flight = route.waiting.popleft()
                flight.worker = worker
                self.stand_ready(route)
                await self._fly(flight, route, worker)
                if self._starved:
                    break
        finally:
            route.workers -= 1
            self._busy -= not route.workers
            self.stand_ready(route)
