"""What a call passes before its begin, where more than the effect itself decides about it.

The early gates look at the call alone. Then the instance of the slot that the call would name is found, and the gates
look at that. Each returns the call, with what the begin must know, or what the caller hears in its place. What a gate
writes must be harmless should the begin never come.
"""

from collections.abc import Generator, Sequence
from typing import Final, Protocol

import msgspec

from guard.core.admission import NextGeneration, admit
from guard.core.effects import AttemptToken, Effect, Instant
from guard.core.situation import Event
from guard.ports.steps import Found, Look, Step, StepResult
from guard.ports.store import EffectStore
from guard.service.intake import Intake
from guard.service.naming import NamedCall
from guard.service.outcomes import BeginOutcome, Granted


class Over(msgspec.Struct, frozen=True, kw_only=True):
    """The instances up to this rank are over for the call: a later one is meant.

    `has_slot` says that the slot is kept with the instance that was looked at, so that the newest can be looked up.
    Where that instance is over only if there is a newer one, `outcome` is what it says itself.
    """

    rank: int
    has_slot: bool
    outcome: BeginOutcome | None = None


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """The instance of its slot that a call would name now, at the database's time `at`; None where there is none."""

    call: NamedCall
    effect: Effect | None
    at: Instant


class EarlyGate(Protocol):
    """A gate that looks at the call alone."""

    async def __call__(self, call: NamedCall) -> NamedCall | BeginOutcome:
        """Let the call pass, or answer it. Raises StoreUnavailable."""


class Gate(Protocol):
    """A gate that looks at the effect that the call would name."""

    async def __call__(self, found: Instance) -> NamedCall | BeginOutcome:
        """Let the call pass, or answer it. Raises StoreUnavailable."""


class Confirm(Protocol):
    """Looks once more at a call that was granted its lease, where the begin itself cannot see what may have changed."""

    async def __call__(self, call: NamedCall, granted: Granted) -> BeginOutcome:
        """Let the grant stand, or take it back and answer the call. Raises StoreUnavailable."""


class Gates:
    """All gates, in their order."""

    def __init__(
        self,
        store: EffectStore,
        intake: Intake,
        early: Sequence[EarlyGate] = (),
        gates: Sequence[Gate] = (),
        confirm: Sequence[Confirm] = (),
        last: Sequence[EarlyGate] = (),
    ) -> None:
        self._store: Final = store
        self._intake: Final = intake
        self._early: Final = early
        self._gates: Final = gates
        self._confirm: Final = confirm
        self._last: Final = last

    async def __call__(self, call: NamedCall) -> NamedCall | BeginOutcome:
        """Let the call pass all gates. Raises StoreUnavailable."""
        early = await self.early(call)
        if not isinstance(early, NamedCall):
            return early
        found = await self.instance(early)
        for gate in self._gates:
            passed = await gate(found)
            if not isinstance(passed, NamedCall):
                return passed
            is_same = (passed.start, passed.slot) == (found.call.start, found.call.slot)
            found = msgspec.structs.replace(found, call=passed) if is_same else await self.instance(passed)
        return found.call

    async def early(self, call: NamedCall) -> NamedCall | BeginOutcome:
        """Let the call pass the gates that look at it alone. Raises StoreUnavailable."""
        return await _pass(call, self._early)

    async def last(self, call: NamedCall) -> NamedCall | BeginOutcome:
        """Look once more at a call that passed, right before what no lease can take back. Raises StoreUnavailable."""
        return await _pass(call, self._last)

    async def confirmed(self, call: NamedCall, outcome: BeginOutcome) -> BeginOutcome:
        """Look once more at a call that passed the gates and was granted its lease. Raises StoreUnavailable."""
        for confirm in self._confirm:
            if not isinstance(outcome, Granted):
                break
            outcome = await confirm(call, outcome)
        return outcome

    async def instance(self, call: NamedCall) -> Instance:
        """Find the instance of its slot that a call would name now. Raises StoreUnavailable."""
        while True:
            found = await self._intake.do(call.lane, find(call), call.tenant)
            if not isinstance(found, Over):
                return found
            call = await self.newer(call, found)

    async def newer(self, call: NamedCall, over: Over) -> NamedCall:
        """Return the call from a later instance on.

        That is its attempt's own, else the one that failed with these arguments, else the newest, else the next one.
        Raises StoreUnavailable.
        """
        if not (call.named_by.looks_up or over.has_slot):
            return msgspec.structs.replace(call, start=over.rank + 1)
        if not over.has_slot:
            await self._store.keep_slot(call.key(over.rank), call.slot)
        token = AttemptToken(call.request.attempt)
        digest = call.reading.arguments_digest
        newest = await self._store.newest(call.slot, call.request.occurrence, token, digest)
        start = newest.own
        if start is None:
            is_refused = newest.refused is not None and newest.refused > over.rank
            start = newest.refused if is_refused else max(newest.rank, over.rank + 1)
        return msgspec.structs.replace(call, start=start, is_newest=True)


async def _pass(call: NamedCall, gates: Sequence[EarlyGate]) -> NamedCall | BeginOutcome:
    for gate in gates:
        passed = await gate(call)
        if not isinstance(passed, NamedCall):
            return passed
        call = passed
    return call


def find(call: NamedCall) -> Generator[Step, StepResult, Instance | Over]:
    """Look at the instance from which the call starts."""
    event = Event(name="begin", token=AttemptToken(call.request.attempt), lease=call.rules.lease)
    found = yield Look(key=call.key(call.start))
    effect = found.effect if isinstance(found, Found) else None
    if effect is None:
        return Instance(call=call, effect=None, at=found.at)
    admission = admit(call.as_read_now(effect), call.compared, event, call.rules_for(effect), found.at)
    if isinstance(admission, NextGeneration):
        return Over(rank=call.start, has_slot=effect.intent.slot is not None)
    if call.may_hide_newer(effect):
        return Over(rank=call.start - 1, has_slot=True)
    return Instance(call=call, effect=effect, at=found.at)
