"""Begin: may this call run? At most one attempt at a time ever hears yes."""

import asyncio
import itertools
from collections.abc import Generator
from typing import assert_never

import msgspec

from guard.core.admission import NextGeneration, OtherArguments, OtherTool, admit, has_drifted
from guard.core.arguments import arguments_of
from guard.core.effects import AttemptToken, Duration, Effect, Instant, Intent, TenantId, seconds
from guard.core.lifecycle import Decision
from guard.core.situation import Event
from guard.ports.steps import Found, Insert, Look, Replace, RunClosed, Step, StepResult, Written
from guard.service.intake import Intake
from guard.service.measures import Measures
from guard.service.naming import NamedCall, Naming
from guard.service.outcomes import BeginOutcome, Granted, Refused, Replayed
from guard.service.records import Records
from guard.service.verdicts import refusal
from guard.service.waiting import GLANCE_SECONDS, Waiters
from twiceshy_contract.effects import BeginRequest


class Begin:
    """The use case with its waiting."""

    def __init__(self, naming: Naming, intake: Intake, waiters: Waiters, records: Records, measures: Measures) -> None:
        self._naming = naming
        self._intake = intake
        self._waiters = waiters
        self._records = records
        self._measures = measures

    async def __call__(self, tenant: TenantId, request: BeginRequest) -> BeginOutcome:
        """Answer a begin; with `wait_seconds`, hold it while another attempt executes.

        Raises Refusal for what cannot be understood, StoreUnavailable when the outcome is unknown.
        """
        call = await self._naming.name(tenant, request)
        if isinstance(call, Refused):
            return call
        replayed = self._replayed(call)
        outcome = await self._begun(call) if replayed is None else replayed
        if isinstance(outcome, Refused) and outcome.code == "in-progress":
            self._measures.contended(call.named_by.tool)
            if request.wait_seconds:
                outcome = await self._wait(call, outcome, request.wait_seconds)
        self._measures.begun(call.named_by.tool, _kind(outcome))
        return outcome

    async def _begun(self, call: NamedCall) -> BeginOutcome:
        outcome = await self._intake.do(call.lane, begin(call))
        if isinstance(outcome, Replayed):
            self._records.keep(outcome.effect)
        return outcome

    def _replayed(self, call: NamedCall) -> Replayed | None:
        """Answer from what this process has seen; None where only the database can say."""
        event = None
        for rank in itertools.count(1):
            record = self._records.get(call.key(rank))
            if record is None:
                return None
            effect = record.effect
            if call.is_to_the_letter(effect):
                return Replayed(effect=effect, drift=(), record=record)
            event = event or Event(name="begin", token=AttemptToken(call.request.attempt), lease=call.rules.lease)
            ruling = rule(call, effect, event, effect.life.ended_at or Instant(0))
            if ruling is not None:
                return ruling.outcome if isinstance(ruling.outcome, Replayed) and ruling.planned is None else None
        return None

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
            with self._waiters.waiting(key) as told:
                replayed = self._replayed(call)
                if replayed is not None:
                    return replayed
                if must_look or self._waiters.may_look(key, clock()):
                    latest = await self._look(call)
                if isinstance(latest, Refused) and latest.code == "in-progress":
                    left = latest.retry_after or 0.0
                    is_told = await _sleep_until_told(told, min(until - clock(), _glance(call, left)))
                    must_look = is_told or left < GLANCE_SECONDS
        return latest

    async def _look(self, call: NamedCall) -> BeginOutcome:
        """Look into the database; where another process has ended the lease, all that wait here may hear of it."""
        seen = await self._intake.do(call.lane, watch(call))
        if isinstance(seen, Replayed):
            self._records.keep(seen.effect)
            self._waiters.tell(seen.effect)
        elif isinstance(seen, Refused) and seen.effect is not None:
            self._waiters.tell(seen.effect)
        return seen


def _glance(call: NamedCall, left: float) -> float:
    """Return after how long to look again: at the lease's end, or after a moment that differs from call to call."""
    return left if left < GLANCE_SECONDS else GLANCE_SECONDS * (1 + call.request.attempt.int % 997 / 1994)


def _kind(outcome: BeginOutcome) -> str:
    match outcome:
        case Granted():
            return "execute"
        case Replayed():
            return "replay"
        case Refused():
            return outcome.code
    assert_never(outcome)


async def _sleep_until_told(told: asyncio.Future[bool], timeout: float) -> bool:
    alarm = told.get_loop().call_later(max(timeout, 0.01), _ring, told)
    try:
        return await told
    finally:
        alarm.cancel()


def _ring(told: asyncio.Future[bool]) -> None:
    if not told.done():
        told.set_result(False)


def begin(call: NamedCall) -> Generator[Step, StepResult, BeginOutcome]:
    """Assume that the effect is new; where it is not, rule on what is there and set the ruling by version."""
    request, rank = call.request, 1
    token = AttemptToken(request.attempt)
    lease = _lease(call)
    event = Event(name="begin", token=token, lease=lease, reopen=request.reopen)
    found = yield Insert(intent=call.intent(rank), token=token, lease=lease)
    while True:
        match found:
            case Written(effect=effect, at=at):
                return Granted(effect=effect, token=token, at=at, lease=lease, is_recorded=False)
            case RunClosed():
                return _run_finished(call)
            case Found(effect=effect, at=at):
                ruling = None if effect is None else rule(call, effect, event, at)
                if effect is not None and ruling is None:
                    rank += 1
                if ruling is None:
                    found = yield Insert(intent=call.intent(rank), token=token, lease=lease)
                elif ruling.planned is None:
                    return ruling.outcome
                else:
                    found = yield ruling.planned
                    if isinstance(found, Written):
                        return _as_written(ruling.outcome, found)
            case _:
                assert_never(found)


def watch(call: NamedCall) -> Generator[Step, StepResult, BeginOutcome]:
    """Look what a begin would hear now, without ever granting."""
    event = Event(name="begin", lease=call.rules.lease)
    rank = 1
    while True:
        found = yield Look(key=call.key(rank))
        if not isinstance(found, Found) or found.effect is None:
            return Refused(code="retry-later", detail="The effect is gone; begin again.", retry_after=0.0)
        ruling = rule(call, found.effect, event, found.at)
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


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What a begin hears of an effect that exists, and the write that must hold first (None: nothing to write)."""

    outcome: BeginOutcome
    planned: Replace | None = None


def rule(call: NamedCall, effect: Effect, event: Event, now: Instant) -> Ruling | None:
    """Rule on a begin whose key names an effect. None: its arguments belong to the slot's next generation."""
    admission = admit(call.as_read_now(effect), call.compared, event, call.rules_for(effect), now)
    match admission:
        case NextGeneration():
            return None
        case OtherTool():
            return Ruling(outcome=_other_tool(call, effect))
        case OtherArguments():
            return Ruling(outcome=_other_arguments(call, effect))
        case Decision():
            return _carry_out(call, effect, admission, event, now)
    assert_never(admission)


def _carry_out(call: NamedCall, effect: Effect, decision: Decision, event: Event, now: Instant) -> Ruling:
    rules = call.rules
    after = msgspec.structs.replace(effect, life=decision.life)
    outcome: BeginOutcome
    if decision.verdict == "granted":
        is_recorded = bool(decision.life.unresolved(besides=event.token)) or _is_regranted(decision, effect, call)
        if not is_recorded:
            after = msgspec.structs.replace(after, intent=_with_arguments(effect.intent, call))
        token = AttemptToken(call.request.attempt)
        outcome = Granted(effect=after, token=token, at=now, lease=_lease(call), is_recorded=is_recorded)
    elif decision.verdict == "replay":
        outcome = Replayed(effect=effect, drift=_drift(call, effect))
    else:
        outcome = refusal(decision.verdict, after, rules, now)
    if after == effect:
        return Ruling(outcome=outcome)
    is_new_try = decision.life.fence > effect.life.fence
    open_run = call.run_id if is_new_try else None
    return Ruling(outcome=outcome, planned=Replace(seen=effect.version, effect=after, open_run=open_run))


def _lease(call: NamedCall) -> Duration:
    asked = call.request.lease_seconds
    return call.rules.lease if asked is None else seconds(asked)


def _is_regranted(decision: Decision, effect: Effect, call: NamedCall) -> bool:
    """Say whether the attempt's own lease came back while the record holds other content than it sends now."""
    is_regrant = decision.row is not None and decision.row.act == "regrant"
    return is_regrant and has_drifted(call.as_read_now(effect), call.compared)


def _with_arguments(intent: Intent, call: NamedCall) -> Intent:
    """Take over what the new attempt will run; nothing of the old was applied."""
    fresh = call.intent(rank=1)
    return msgspec.structs.replace(
        intent,
        arguments=fresh.arguments,
        identity_digest=fresh.identity_digest,
        arguments_digest=fresh.arguments_digest,
        tool_version=fresh.tool_version,
        worker=fresh.worker,
    )


def _drift(call: NamedCall, effect: Effect) -> tuple[str, ...]:
    if not has_drifted(call.as_read_now(effect), call.compared):
        return ()
    return call.named_by.reader.differing_content(arguments_of(effect.intent.arguments), call.request.arguments)


def _as_written(outcome: BeginOutcome, written: Written) -> BeginOutcome:
    match outcome:
        case Granted():
            return msgspec.structs.replace(outcome, effect=written.effect, at=written.at)
        case Replayed() | Refused():
            return msgspec.structs.replace(outcome, effect=written.effect)
    assert_never(outcome)


def _run_finished(call: NamedCall) -> Refused:
    return Refused(
        code="run-finished",
        detail=f"Run {call.request.run!r} is finished; tool {call.request.tool!r} was not begun.",
    )


def _other_tool(call: NamedCall, effect: Effect) -> Refused:
    return Refused(
        code="key-used-by-another-tool",
        detail=f"Business key {call.request.business_key!r} belongs to tool {effect.intent.tool!r}; "
        f"tool {call.request.tool!r} was not begun.",
        effect=effect,
    )


def _other_arguments(call: NamedCall, effect: Effect) -> Refused:
    recorded = arguments_of(effect.intent.arguments)
    differing = call.named_by.reader.differing_identity(recorded, call.request.arguments)
    paths = tuple(f"/arguments{path}" for path in differing)
    named_by = "step" if call.rule == "step" else "business key"
    return Refused(
        code="arguments-changed",
        detail=f"This {named_by} of tool {effect.intent.tool!r} was begun with other arguments; they differ at "
        f"{', '.join(paths)}.",
        effect=effect,
        paths=paths,
    )
