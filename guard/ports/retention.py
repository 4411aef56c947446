"""What the service needs of a database to let go of records that were kept long enough.

Of a final effect that has expired a tombstone stays: its key, tool, state, digests, times and latest attempt. Gone are
its arguments, outcome, worker, resolution, earlier attempts and evidence, and what persons were shown of it. Of a run
that has expired goes what was counted of it, its log, and what it was given as a fork; of holds goes all. What logs
hold by content stays, for other logs may hold it too.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from guard.core.effects import Duration, Instant, Key, RunId, TenantId


class Oldest(msgspec.Struct, frozen=True, kw_only=True):
    """When the oldest final effect of a tool ended that has no run and is kept, at the database's time `at`."""

    tenant: TenantId
    tool: str
    ended_at: Instant
    at: Instant


class DueRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended and is to be looked at, and the tools of its effects that are kept."""

    id: RunId
    tenant: TenantId
    tools: Sequence[str]


class RetentionStore(Protocol):
    """Records that are kept for a time."""

    async def oldest_alone(self, after: Oldest | None) -> Oldest | None:
        """Return the oldest effect without a run of the next tool, or the first one; None: there is none."""

    async def expire_alone(self, tenant: TenantId, tool: str, kept: Duration, limit: int) -> list[Key]:
        """Turn final effects of a tool that have no run and ended so long ago into tombstones, oldest first."""

    async def forget_holds(self, kept: Duration, limit: int) -> int:
        """Delete up to so many holds that ended so long ago, and as many whose booked time did; return how many went.

        A hold that was given up is kept as long as its effect is not final: success would claim the time again.
        """

    async def due_runs(self, limit: int) -> list[DueRun]:
        """Return runs that are to be looked at by now, longest due first."""

    async def expire_of_run(
        self, run: RunId, kept: Mapping[str, Duration], look_again: Duration, limit: int
    ) -> list[Key]:
        """Turn final effects of a run, of the tools that are kept no longer after its end, into tombstones.

        Those of a saga that goes on are kept. Unless there may be more than the limit, the run is to be looked at when
        its next tool's time is up, or after `look_again`; one that keeps nothing has expired itself. Its log, and what
        a fork was given, are kept as long as a run's effects; once the run has expired nobody reads them any more.
        """

    async def empty(self, run: RunId, limit: int) -> bool:
        """Delete what an expired run has besides its effects, up to so many rows of a kind; say whether it has more.

        Where it does not, the run is never looked at again. Of a run that has not expired nothing is deleted.
        """
