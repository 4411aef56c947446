"""Alarms: every piece of evidence raises a flag, written beside the report that brought it and never in its way.

The evidence is written with the report, in one transaction. A flag that could not be raised then, because the process
ended or the database stopped answering, is raised later by whichever process looks for evidence without one.
"""

import asyncio
from typing import Final

from guard.core.effects import LATE_SUCCESS, OTHER_RESULT, Effect, Evidence, Key
from guard.core.flags import Flag
from guard.logs import logger
from guard.ports.flags import FlagStore
from guard.ports.store import EffectStore
from guard.service.amend import look
from guard.service.intake import Intake
from guard.service.rounds import each, for_ever

LOOK_SECONDS: Final = 60.0
_BATCH: Final = 100
_PATIENCE_SECONDS: Final = 1.0
"""How long a report's answer waits for its flag; the flag goes on without it."""

_log = logger("guard.alarms")


class Alarms:
    """Raises the flags that evidence calls for."""

    def __init__(self, effects: EffectStore, flags: FlagStore, intake: Intake) -> None:
        self._effects = effects
        self._flags = flags
        self._intake = intake
        self._raising: set[asyncio.Task[None]] = set()

    async def tell(self, key: Key) -> None:
        """Flag the evidence of an effect; a failure is left to the next look."""
        task = asyncio.create_task(self._tell(key))
        self._raising.add(task)
        task.add_done_callback(self._raising.discard)
        await asyncio.wait({task}, timeout=_PATIENCE_SECONDS)

    async def run(self) -> None:
        """Look for ever for evidence without a flag."""

        async def is_more() -> bool:
            return await self.run_once() == _BATCH

        await for_ever("alarms", is_more, LOOK_SECONDS)

    async def run_once(self) -> int:
        """Flag one batch of evidence that has no flag; return of how many effects."""
        return await each("alarms", await self._flags.unflagged(_BATCH), self._flag)

    async def _tell(self, key: Key) -> None:
        try:
            await self._flag(key)
        except Exception as error:  # noqa: BLE001  the report is written and is answered; a later look raises the flag
            _log.warning("flag_postponed", key=key.hex(), reason=f"{type(error).__name__}: {error}")

    async def _flag(self, key: Key) -> None:
        found = await self._intake.do(key, look(key))
        if found.effect is None:
            return
        evidence = await self._effects.evidence(key)
        flags = [flag_of(found.effect, number, proof) for number, proof in enumerate(evidence, start=1)]
        await self._flags.raise_all(found.effect.intent.tenant, flags)


def flag_of(effect: Effect, number: int, proof: Evidence) -> Flag:
    """Return the flag that a piece of evidence calls for; the pieces of an effect are counted from 1."""
    intent, state = effect.intent, effect.life.state
    is_double = proof.kind == LATE_SUCCESS or (proof.kind == "success" and state == "succeeded")
    who = "somebody who asked the provider" if proof.token is None else f"attempt {proof.token}"
    said = _SAID.get(proof.kind, proof.kind)
    meaning = "It may have been executed twice." if is_double else "The record may be wrong."
    return Flag(
        kind="double" if is_double else "contradiction",
        subject=f"{intent.key.hex()}/{number}",
        detail=f"The effect is {state}, and {who} {said}. {meaning}",
        run=intent.run,
        tool=intent.tool,
        key=intent.key,
    )


_SAID: Final = {
    LATE_SUCCESS: "reported its success after another had begun or it was settled that nothing was applied",
    OTHER_RESULT: "reported success with another result than the record shows",
    "success": "reported success, which the record does not show",
    "found_applied": "says that it was applied",
    "found_not_applied": "says that nothing was applied",
}
