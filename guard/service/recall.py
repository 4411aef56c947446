"""Recall: what this process or another has seen of effects, so that the database need not be asked.

A commit need not read back what was leased to its attempt here. A begin is answered from the record: only what is
final is recalled, and only for calls that no gate stands before and whose slot has one instance; so the database would
say the same. Without an accelerator this process' own records are all there is.
"""

import itertools
from collections.abc import Sequence
from typing import Final

from guard.core.effects import AttemptToken, Effect, Fence, Instant, Key, TenantId
from guard.core.retention import kept_for
from guard.core.situation import Event
from guard.ports.accelerator import Accelerator
from guard.service.leased import Leased
from guard.service.naming import NamedCall
from guard.service.outcomes import Replayed
from guard.service.records import Record, Records, may_be_kept
from guard.service.ruling import rule

_MOST_RANKS: Final = 4
"""Instances of a slot that are looked for one by one; the database looks for all at once."""


class _Later:
    """The record is of other arguments than the call; the next instance of the slot is meant."""


_LATER: Final = _Later()


class Recall:
    """The records of this process, and those of all replicas."""

    def __init__(self, records: Records, accelerator: Accelerator | None = None) -> None:
        self._records = records
        self._leased = Leased()
        self._accelerator = accelerator
        self.is_shared: Final = accelerator is not None

    def own(self, call: NamedCall) -> Replayed | None:
        """Answer from what this process has seen; None where only others can say."""
        if not call.may_recall:
            return None
        for rank in itertools.count(1):
            record = self._records.get(call.key(rank))
            answer = None if record is None else _answer(call, record)
            if not isinstance(answer, _Later):
                return answer
        return None

    async def of_others(self, call: NamedCall) -> Replayed | None:
        """Answer from what any replica has seen; None where only the database can say."""
        if self._accelerator is None or not call.may_recall or call.held.looks_up:
            return None
        kept = kept_for(call.held.tool.declaration, has_run=False)
        for rank in range(1, _MOST_RANKS + 1):
            key = call.key(rank)
            record = self._records.get(key)
            if record is None:
                effect = await self._accelerator.recall(call.tenant, key, kept)
                if effect is None or not may_be_kept(effect):
                    return None
                self._records.keep(effect)
                record = self._records.get(key)
            answer = None if record is None else _answer(call, record)
            if not isinstance(answer, _Later):
                return answer
        return None

    def leased(self, key: Key, token: AttemptToken, fence: Fence) -> Effect | None:
        """Return the effect as it was leased to this attempt, where this process has done that lately."""
        return self._leased.take(key, token, fence)

    def keep(self, effect: Effect) -> None:
        """Keep what was read of an effect in this process, if it may be kept."""
        self._records.keep(effect)

    def written(self, effect: Effect) -> None:
        """Keep what was written of an effect, if it may be kept, in this process and for all replicas."""
        if effect.life.state == "executing":
            self._leased.keep(effect)
            return
        self._records.keep(effect)
        if self._accelerator is not None and may_be_kept(effect):
            self._accelerator.keep(effect)

    def forget(self, tenant: TenantId, keys: Sequence[Key]) -> None:
        """Keep these effects no longer."""
        self._records.forget(keys)
        self._leased.forget(keys)
        if self._accelerator is not None:
            self._accelerator.forget(tenant, keys)


def _answer(call: NamedCall, record: Record) -> Replayed | _Later | None:
    """Answer a call from a record; None where the record is no answer to it."""
    effect = record.effect
    if call.is_to_the_letter(effect):
        is_shared = call.is_of_another_run(effect)
        return Replayed(effect=effect, drift=(), record=None if is_shared else record, is_shared=is_shared)
    event = Event(name="begin", token=AttemptToken(call.request.attempt), lease=call.rules.lease)
    ruling = rule(call, effect, event, effect.life.ended_at or Instant(0))
    if ruling is None:
        return _LATER
    return ruling.outcome if isinstance(ruling.outcome, Replayed) and ruling.planned is None else None
