"""The fence of begins that a run's writer makes: none is told of a lease once another has taken its log over.

The epoch stands in the run's row, and no step of a begin looks at it. So it is read once more behind the step that
granted the lease. A takeover before that is seen here; one after it found this writer with its lease.
"""

from typing import Final

from guard.core.runs import Run
from guard.ports.store import RunStore
from guard.service.intake import Intake
from guard.service.naming import NamedCall
from guard.service.outcomes import BeginOutcome, Granted, Refused
from guard.service.release import release


class Writers:
    """Looks once more at a grant, and takes it back where the caller is not its run's writer any more."""

    def __init__(self, store: RunStore, intake: Intake) -> None:
        self._store: Final = store
        self._intake: Final = intake

    async def still(self, call: NamedCall) -> NamedCall | BeginOutcome:
        """Let a call pass whose writer is its run's still, before what cannot be taken back. Raises StoreUnavailable.

        A takeover between this look and the write changes nothing: the newer writer has read the call in the log that
        it took over, for that was kept before, and asks under the same key: the record answers it.
        """
        request = call.request
        if request.epoch is None or request.run is None:
            return call
        run = await self._store.get(call.tenant, request.run)
        is_still = run is not None and run.epoch == request.epoch
        return call if is_still else taken_over(request.run, request.epoch, _epoch_of(run))

    async def confirm(self, call: NamedCall, granted: Granted) -> BeginOutcome:
        """Let a grant of a begin without an epoch stand, and one that was told before. Raises StoreUnavailable.

        Of that one the tool may be running, so that nothing may be said to have never started.
        """
        request = call.request
        if request.epoch is None or request.run is None or not granted.is_new:
            return granted
        run = await self._store.get(call.tenant, request.run)
        if run is not None and run.epoch == request.epoch:
            return granted
        await self._intake.do(call.lane, release(call), call.tenant)
        return taken_over(request.run, request.epoch, _epoch_of(run))


def taken_over(run: str, asked: int, epoch: int) -> Refused:
    """Say that a run's log has another writer than the one that asks; epoch 0: it never had one."""
    detail = f"Run {run!r} is recorded by its writer of epoch {epoch}, not by that of {asked}."
    if not epoch:
        detail = f"Run {run!r} was never opened with `record`."
    return Refused(code="run-taken-over", detail=detail)


def _epoch_of(run: Run | None) -> int:
    return 0 if run is None else run.epoch
