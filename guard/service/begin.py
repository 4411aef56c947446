"""Begin: may this call run? At most one attempt at a time ever hears yes."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar, assert_never

import msgspec

from guard.core.effects import AttemptToken, Duration, Effect, Instant, TenantId
from guard.core.situation import Event
from guard.ports.steps import Found, Insert, Look, Overruled, Step, StepResult, Written
from guard.service.gates import Gates, Over
from guard.service.intake import Intake
from guard.service.measures import Measures
from guard.service.naming import NamedCall, Naming
from guard.service.outcomes import (
    Awaiting,
    BeginOutcome,
    Granted,
    MessagesStaged,
    Refused,
    RenderAnew,
    Replayed,
    StageOutcome,
    Stubbed,
)
from guard.service.recall import Recall
from guard.service.ruling import Ruling, as_written, barred, lease_of, rule, rule_on_new
from guard.service.waiting import GLANCE_SECONDS, Waiters
from twiceshy_contract.effects import BeginRequest


class Overtaken(msgspec.Struct, frozen=True):
    """A person has spoken meanwhile: the gates must look again."""


OutcomeT = TypeVar("OutcomeT", bound=BeginOutcome | StageOutcome)
Write = Callable[[NamedCall], Awaitable[OutcomeT | Over | Overtaken]]
"""What is asked of the store for a call that has passed all gates."""


class Begin:
    """The use case with its waiting, and the way to the store that it shares with staging."""

    def __init__(
        self, naming: Naming, gates: Gates, intake: Intake, waiters: Waiters, recall: Recall, measures: Measures
    ) -> None:
        self._naming = naming
        self._gates = gates
        self._intake = intake
        self._waiters = waiters
        self._recall = recall
        self._measures = measures

    async def __call__(self, tenant: TenantId, request: BeginRequest) -> BeginOutcome:
        """Answer a begin; with `wait_seconds`, hold it while another attempt executes.

        Raises Refusal for what cannot be understood, StoreUnavailable when the outcome is unknown.
        """
        return await self.along(tenant, request, self._begin)

    async def along(self, tenant: TenantId, request: BeginRequest, write: Write[OutcomeT]) -> OutcomeT | BeginOutcome:
        """Name a call, lead it through the gates to where it is written, and wait where it may. Raises those."""
        call = await self._naming.name(tenant, request)
        if isinstance(call, Refused):
            return call
        replayed = self._recall.own(call)
        if replayed is None and self._recall.is_shared:
            replayed = await self._recall.of_others(call)
        outcome: OutcomeT | BeginOutcome
        outcome = await self._through_gates(call, write) if replayed is None else replayed
        if isinstance(outcome, Refused) and outcome.code == "in-progress":
            self._measures.contended(call.named_by.tool, outcome.effect)
            if request.wait_seconds:
                outcome = await self._wait(call.from_instance_of(outcome.effect), outcome, request.wait_seconds)
        self._measures.begun(call.named_by.tool, _kind(outcome))
        return outcome

    async def _through_gates(self, call: NamedCall, write: Write[OutcomeT]) -> OutcomeT | BeginOutcome:
        while True:
            passed = call if call.is_plain else await self._gates(call)
            if not isinstance(passed, NamedCall):
                return passed
            outcome: OutcomeT | BeginOutcome | Over | Overtaken = await write(passed)
            if isinstance(outcome, Over):
                if not outcome.has_slot:
                    self._recall.forget(call.tenant, (call.key(outcome.rank),))
                call = await self._gates.newer(call, outcome)
                if outcome.outcome is None or call.start != outcome.rank + 1:
                    continue
                outcome = outcome.outcome
            if isinstance(outcome, Overtaken):
                continue
            if isinstance(outcome, Replayed):
                self._recall.keep(outcome.effect)
            return outcome

    async def _begin(self, passed: NamedCall) -> BeginOutcome | Over | Overtaken:
        outcome = await self._intake.admit(passed.lane, begin(passed), passed.tenant)
        is_done = passed.is_plain and passed.request.epoch is None
        return outcome if is_done or not isinstance(outcome, Granted) else await self._gates.confirmed(passed, outcome)

    async def _wait(self, call: NamedCall, outcome: Refused, wait: float) -> BeginOutcome:
        """Wait for the effect's lease to end in any way; answer what it came to. A wake never grants.

        Every waiter looks once, after it can be told; later only one of them, now and then, for them all.
        """
        clock = asyncio.get_running_loop().time
        until, must_look = clock() + wait, True
        latest: BeginOutcome = outcome
        while isinstance(latest, Refused) and latest.code == "in-progress" and latest.effect and clock() < until:
            if self._waiters.is_closed:
                break
            key = latest.effect.intent.key
            with self._waiters.waiting(key, begins=True) as told:
                replayed = self._recall.own(call)
                if replayed is not None:
                    return replayed
                if must_look or self._waiters.may_look(key, clock()):
                    latest = await self._look(call)
                if isinstance(latest, Refused) and latest.code == "in-progress":
                    left = latest.retry_after or 0.0
                    is_told = await sleep_until_told(told, min(until - clock(), _glance(call, left)))
                    must_look = is_told or left < GLANCE_SECONDS
        return latest

    async def _look(self, call: NamedCall) -> BeginOutcome:
        """Look into the database; where another process has ended the lease, all that wait here may hear of it."""
        seen = await self._intake.admit(call.lane, watch(call), call.tenant)
        if isinstance(seen, Replayed):
            self._recall.keep(seen.effect)
            self._waiters.seen(seen.effect)
        elif isinstance(seen, Refused) and seen.effect is not None:
            self._waiters.seen(seen.effect)
        return seen


def _glance(call: NamedCall, left: float) -> float:
    """Return after how long to look again: at the lease's end, or after a moment that differs from call to call."""
    return left if left < GLANCE_SECONDS else GLANCE_SECONDS * (1 + call.request.attempt.int % 997 / 1994)


def _kind(outcome: BeginOutcome | StageOutcome) -> str:  # noqa: PLR0911 - one word for each outcome
    match outcome:
        case Granted():
            return "execute"
        case MessagesStaged():
            return "staged"
        case RenderAnew():
            return "render"
        case Replayed():
            return "replay"
        case Stubbed():
            return "stub"
        case Awaiting():
            return "await_approval"
        case Refused():
            return outcome.code
    assert_never(outcome)


async def sleep_until_told(told: asyncio.Future[bool], timeout: float) -> bool:
    """Sleep until the future is told, or for so many seconds; say which."""
    alarm = told.get_loop().call_later(max(timeout, 0.01), _ring, told)
    try:
        return await told
    finally:
        alarm.cancel()


def _ring(told: asyncio.Future[bool]) -> None:
    if not told.done():
        told.set_result(False)


def begin(call: NamedCall) -> Generator[Step, StepResult, BeginOutcome | Over | Overtaken]:
    """Assume that the effect is new; where it is not, rule on what is there and set the ruling by version."""
    request, rank = call.request, call.start
    token, lease = AttemptToken(request.attempt), lease_of(call)
    event = Event(name="begin", token=token, lease=lease, reopen=request.reopen)
    found = yield _first(call, rank, token, lease)
    while True:
        if isinstance(found, Written):
            return Granted(effect=found.effect, token=token, at=found.at, lease=lease, is_new=True)
        if isinstance(found, Overruled):
            return Overtaken()
        if not isinstance(found, Found):
            return barred(call, found)
        effect, at = found.effect, found.at
        ruling = rule_on_new(call, event, at) if effect is None else meant(call, rank, effect, event, at)
        if isinstance(ruling, Over):
            if call.named_by.looks_up or ruling.has_slot or not call.is_plain:
                return ruling
            rank += 1
            found = yield _first(call, rank, token, lease)
        elif ruling.planned is None:
            return ruling.outcome
        else:
            found = yield ruling.planned
            if isinstance(found, Written):
                return as_written(ruling.outcome, found)


def meant(call: NamedCall, rank: int, effect: Effect, event: Event, at: Instant) -> Ruling | Over:
    """Rule on the instance of a rank, or say that a later one is meant, or may be."""
    ruling = rule(call, effect, event, at)
    if ruling is None:
        return Over(rank=rank, has_slot=effect.intent.slot is not None)
    if call.may_hide_newer(effect):
        return Over(rank=rank - 1, has_slot=True, outcome=ruling.outcome)
    return ruling


def _first(call: NamedCall, rank: int, token: AttemptToken, lease: Duration) -> Insert | Look:
    """Return the first step about an instance: make it, or, where it may not simply be made, look."""
    if call.approval is not None:
        return Look(key=call.key(rank))
    return Insert(
        intent=call.intent(rank),
        token=token,
        lease=lease,
        alone=call.needs_alone,
        hold=call.hold,
        consent=call.consent,
    )


def watch(call: NamedCall) -> Generator[Step, StepResult, BeginOutcome]:
    """Look what a begin would hear now, without ever granting."""
    event = Event(name="begin", lease=call.rules.lease)
    rank = call.start
    while True:
        found = yield Look(key=call.key(rank))
        if not isinstance(found, Found) or found.effect is None:
            return Refused(code="retry-later", detail="The effect is gone; begin again.", retry_after=0.0)
        ruling = rule(call, found.effect, event, found.at)
        if ruling is None and (call.named_by.looks_up or found.effect.intent.slot is not None):
            return Refused(
                code="retry-later", detail="The effect is over; begin again.", effect=found.effect, retry_after=0.0
            )
        if ruling is None:
            rank += 1
        elif isinstance(ruling.outcome, Granted):
            return Refused(
                code="retry-later",
                detail="The attempt that held the lease has ended without applying the effect; begin again.",
                effect=found.effect,
                retry_after=0.0,
            )
        else:
            return ruling.outcome
