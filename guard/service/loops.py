"""Loop limit: a run that begins one slot over and over does not see that it was done."""

from guard.core.effects import AttemptToken
from guard.core.flags import Flag
from guard.ports.loops import LoopStore
from guard.service.flags import Flags
from guard.service.gates import Instance
from guard.service.naming import NamedCall
from guard.service.outcomes import Refused


class Loops:
    """A gate that lets so many attempts of a run begin a slot, all its occurrences together, and no more.

    Only what is asked for anew counts: a new effect, or the answer of one that is over. Who tries again what was not
    applied, waits for what is executed or approved, or meets doubt, goes round in no circle. An attempt that asks again
    is not counted again, and one that was let pass is so again.
    """

    def __init__(self, store: LoopStore, flags: Flags) -> None:
        self._store = store
        self._flags = flags

    async def __call__(self, found: Instance) -> NamedCall | Refused:
        """Count the attempt; where there is no room for it, flag the run. Raises StoreUnavailable."""
        call = found.call
        limit = call.held.tool.declaration.loop_limit
        if limit is None or call.run_id is None or (found.effect is not None and not found.effect.is_final):
            return call
        if await self._store.admit(call.run_id, call.slot, AttemptToken(call.request.attempt), limit):
            return call
        tool, run = call.request.tool, call.request.run
        said = f"Run {run!r} began tool {tool!r} with one identity {limit} times, and tried again."
        flag = Flag(
            kind="loop",
            subject=f"{call.run_id}/{call.slot.hex()}",
            detail=said,
            run=run,
            tool=tool,
            key=call.key(call.start),
        )
        await self._flags.raise_flag(call.tenant, flag)
        return Refused(code="loop-limit", detail=f"{said} Its limit is {limit}.", effect=found.effect)
