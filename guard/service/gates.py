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
from guard.service.outcomes import BeginOutcome


class Over(msgspec.Struct, frozen=True):
    """The instance of this rank is over for the call: a later one is meant."""

    rank: int


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


class Gates:
    """All gates, in their order."""

    def __init__(
        self, store: EffectStore, intake: Intake, early: Sequence[EarlyGate] = (), gates: Sequence[Gate] = ()
    ) -> None:
        self._store: Final = store
        self._intake: Final = intake
        self._early: Final = early
        self._gates: Final = gates

    async def __call__(self, call: NamedCall) -> NamedCall | BeginOutcome:
        """Let the call pass all gates. Raises StoreUnavailable."""
        for early in self._early:
            passed = await early(call)
            if not isinstance(passed, NamedCall):
                return passed
            call = passed
        found = await self.instance(call)
        for gate in self._gates:
            passed = await gate(found)
            if not isinstance(passed, NamedCall):
                return passed
            is_same = passed.start == found.call.start
            found = msgspec.structs.replace(found, call=passed) if is_same else await self.instance(passed)
        return found.call

    async def instance(self, call: NamedCall) -> Instance:
        """Find the instance of its slot that a call would name now. Raises StoreUnavailable."""
        while True:
            found = await self._intake.do(call.lane, find(call))
            if not isinstance(found, Over):
                return found
            call = await self.newer(call, found.rank)

    async def newer(self, call: NamedCall, rank: int) -> NamedCall:
        """Return the call from a later instance on: its attempt's own, else the newest, else the next one.

        Raises StoreUnavailable.
        """
        if not call.named_by.looks_up:
            return msgspec.structs.replace(call, start=rank + 1)
        token = AttemptToken(call.request.attempt)
        newest = await self._store.newest(call.slot, call.request.occurrence, token)
        start = newest.own if newest.own is not None else max(newest.rank, rank + 1)
        return msgspec.structs.replace(call, start=start)


def find(call: NamedCall) -> Generator[Step, StepResult, Instance | Over]:
    """Look at the instance from which the call starts."""
    event = Event(name="begin", token=AttemptToken(call.request.attempt), lease=call.rules.lease)
    found = yield Look(key=call.key(call.start))
    effect = found.effect if isinstance(found, Found) else None
    if effect is None:
        return Instance(call=call, effect=None, at=found.at)
    admission = admit(call.as_read_now(effect), call.compared, event, call.rules_for(effect), found.at)
    if isinstance(admission, NextGeneration):
        return Over(call.start)
    return Instance(call=call, effect=effect, at=found.at)
