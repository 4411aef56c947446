"""What waits for a lane: bounded, fair between tenants, and what ends an effect before what begins one.

Each tenant has a turn in each batch, so that a flood of one costs another no more than its place. Reports have room of
their own: overload may put off what has not begun, but must not turn what was executed into doubt.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from guard.core.effects import TenantId
from guard.ports.store import StoreUnavailable

T = TypeVar("T")

MAX_BATCH: Final = 512
"""Steps that one transaction takes at the most."""
MOST_STARTS: Final = 4_096
"""Begins of one tenant that wait for a lane."""
MOST_WAITING: Final = 16_384
"""All begins that wait for a lane; and all reports."""
STALE_SECONDS: Final = 5.0
"""How long what begins something would wait at the most; what would wait longer is put off at once."""
_LONGEST_RETRY: Final = 5.0
"""Shorter than the patience of a client, which is to ask again within it."""
_SHORTEST_RETRY: Final = 1.0


class Overloaded(StoreUnavailable):
    """More waits than can be done soon; nothing happened to what was asked. Ask again after `retry_after` seconds."""

    def __init__(self, text: str, retry_after: float) -> None:
        super().__init__(text)
        self.retry_after: Final = retry_after


class _Waiting(Generic[T]):
    """What waits of one tenant."""

    __slots__ = ("reports", "starts")

    def __init__(self) -> None:
        self.reports: deque[T] = deque()
        self.starts: deque[T] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self.reports and not self.starts


class Queues(Generic[T]):
    """The queues of one lane, one a tenant; None is the service itself."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._going: deque[T] = deque()
        self._waiting: OrderedDict[TenantId | None, _Waiting[T]] = OrderedDict()
        self._starts = 0
        self._reports = 0
        self._busy_since: float | None = None
        self._took = 0.0

    def __len__(self) -> int:
        return len(self._going) + self._starts + self._reports

    def report(self, tenant: TenantId | None, item: T) -> None:
        """Let wait what ends something, or only looks. Raises Overloaded."""
        if self._reports >= MOST_WAITING:
            raise self._overloaded()
        self._of(tenant).reports.append(item)
        self._reports += 1

    def start(self, tenant: TenantId, item: T) -> None:
        """Let wait what begins something. Raises Overloaded."""
        waiting = self._of(tenant)
        if len(waiting.starts) >= MOST_STARTS or self._starts >= MOST_WAITING or self._seconds_ahead() > STALE_SECONDS:
            raise self._overloaded()
        waiting.starts.append(item)
        self._starts += 1

    def go_on(self, items: Iterable[T]) -> None:
        """Let wait, before all others, what has begun to be done."""
        self._going.extendleft(reversed(list(items)))

    def take(self, limit: int) -> list[T]:
        """Take what is next: what goes on, then an equal part of each tenant; who had no turn is first in the next."""
        batch: list[T] = []
        _move(self._going, batch, limit)
        if len(self._waiting) == 1:
            for waiting in self._waiting.values():  # the plain case; it stays, to be used for what comes next
                self._take(waiting, batch, limit - len(batch))
            return batch
        while len(batch) < limit and self._waiting:
            share = max(1, (limit - len(batch)) // len(self._waiting))
            for tenant in list(self._waiting):
                waiting = self._waiting.pop(tenant)
                self._take(waiting, batch, min(share, limit - len(batch)))
                if not waiting.is_empty:
                    self._waiting[tenant] = waiting
                if len(batch) == limit:
                    break
        return batch

    def _take(self, waiting: _Waiting[T], batch: list[T], limit: int) -> None:
        """Take so many of a tenant, reports first."""
        reports = _move(waiting.reports, batch, limit)
        self._reports -= reports
        self._starts -= _move(waiting.starts, batch, limit - reports)

    def begun(self) -> None:
        """Note that a transaction is under way."""
        self._busy_since = self._clock()

    def done(self) -> None:
        """Note that the transaction is over: as long as it took, the next ones will take."""
        if self._busy_since is not None:
            self._took = self._clock() - self._busy_since
            self._busy_since = None

    @property
    def retry_after(self) -> float:
        """After how many seconds it is of use to ask again."""
        return min(max(self._seconds_ahead() + self._took, _SHORTEST_RETRY), _LONGEST_RETRY)

    def _seconds_ahead(self) -> float:
        """Return how long the transaction under way has taken, and the full ones that wait will take."""
        if self._busy_since is None:
            return 0.0
        return self._clock() - self._busy_since + (self._starts + self._reports) // MAX_BATCH * self._took

    def _of(self, tenant: TenantId | None) -> _Waiting[T]:
        waiting = self._waiting.get(tenant)
        if waiting is None:
            waiting = self._waiting[tenant] = _Waiting()
        return waiting

    def _overloaded(self) -> Overloaded:
        return Overloaded(f"{len(self):,} requests wait for the database already.", self.retry_after)


def _move(queue: deque[T], batch: list[T], limit: int) -> int:
    """Move so many from a queue to a batch; return how many."""
    count = len(queue)
    if count <= limit:
        if count:
            batch.extend(queue)
            queue.clear()
        return count
    batch.extend(queue.popleft() for _ in range(limit))
    return limit
