"""Commit and fail: what an attempt says became of its effect."""

from collections.abc import Generator
from typing import cast

import msgspec

from guard.core.effects import AttemptToken, Effect, Fence, Instant, Key, TenantId, seconds
from guard.core.lifecycle import Decision
from guard.core.outbox import Staging
from guard.core.situation import Event
from guard.logs import logger
from guard.ports.outbox import OutboxStore
from guard.ports.steps import Finish, Found, HoldGone, Overruled, RunClosed, Sibling, Step, StepResult, Written
from guard.service.amend import Amend, Amendment, not_found
from guard.service.intake import Intake
from guard.service.jitter import Jitter
from guard.service.outcomes import Refused, ReportOutcome, Settled
from guard.service.recall import Recall
from guard.service.staging import Source, Stagings, check_messages
from twiceshy_contract.canonical import canonical, canonical_of_json
from twiceshy_contract.effects import CommitRequest, FailRequest, Opaque, Outcome
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.wire import convert

_log = logger("guard.finish")


class Commit:
    """An attempt says that its tool has run: success, from whichever attempt, is final. What it stages goes with it."""

    def __init__(self, amend: Amend, intake: Intake, recall: Recall, stagings: Stagings, outbox: OutboxStore) -> None:
        self._amend = amend
        self._intake = intake
        self._recall = recall
        self._stagings = stagings
        self._outbox = outbox

    async def __call__(self, tenant: TenantId, key: Key, request: CommitRequest) -> ReportOutcome:
        """Record a result. Raises Refusal for a result that is not tagged JSON, StoreUnavailable."""
        check_result(request.result)
        staging = await self._staging(tenant, key, request) if request.outbox else None
        outcome = msgspec.json.encode(Outcome(result=request.result, result_type=request.result_type))
        token, fence = AttemptToken(request.attempt), Fence(request.fence)
        known = self._recall.leased(key, token, fence)
        step = Finish(key=key, token=token, fence=fence, outcome=outcome, staging=staging, known=known)
        first = await self._intake.do(key, _finish(step), tenant)
        if isinstance(first, Settled | Refused):
            return first if staging is None else self._told(key, staging, first, is_new=isinstance(first, Settled))
        amendment = Amendment(
            key=key,
            event=Event(name="success", token=token, fence=fence),
            change=lambda effect, _decision, _at: msgspec.structs.replace(effect, outcome=outcome),
            evidence=outcome,
            contradicts=lambda effect: not _is_same(effect.outcome, request.result),
        )
        if staging is None or await self._has_staged(tenant, first):
            return await self._amend(tenant, amendment, first)
        count = len(staging.rows)
        amendment = msgspec.structs.replace(amendment, staging=staging, told=lambda: self._stagings.tell(count))
        return self._told(key, staging, await self._amend(tenant, amendment, first))

    async def _staging(self, tenant: TenantId, key: Key, request: CommitRequest) -> Staging:
        """Render what the effect stages. Raises Refusal for what no destination could take, StoreUnavailable."""
        check_messages(request.outbox, "outbox")
        source = Source(tenant=tenant, key=key)
        return await self._stagings.with_report(source, request.outbox, AttemptToken(request.attempt))

    async def _has_staged(self, tenant: TenantId, found: Found) -> bool:
        """Say whether an effect that has succeeded has staged before, so that nothing need be written."""
        effect = found.effect
        is_over = effect is not None and effect.life.state == "succeeded"
        return is_over and effect is not None and bool(await self._outbox.of_effect(tenant, effect.intent.key))

    def _told(self, key: Key, staging: Staging, outcome: ReportOutcome, *, is_new: bool = False) -> ReportOutcome:
        """Let it be heard what is staged now; what contradicts the record stages nothing, and that is logged."""
        effect = outcome.effect
        if is_new:
            self._stagings.tell(len(staging.rows))
        elif effect is None or effect.life.state != "succeeded":
            why = outcome.code if isinstance(outcome, Refused) else "not succeeded"
            _log.warning("messages_not_staged", key=key.hex(), messages=len(staging.rows), why=why)
        return outcome


def _finish(step: Finish) -> Generator[Step, StepResult, Settled | Found | Refused]:
    """Assume that the attempt holds the lease still; where it does not, say what is there."""
    result = yield step
    match result:
        case Written(effect=effect, at=at):
            return Settled(effect=effect, at=at)
        case Found():
            return result
        case RunClosed() | Sibling() | HoldGone() | Overruled():
            return not_found(step.key)


def _is_same(recorded: bytes | None, result: object) -> bool:
    """Say whether a result is the one on record, whatever its spelling."""
    if recorded is None:
        return False
    held = msgspec.json.decode(recorded, type=Outcome).result
    is_plain = not any(isinstance(value, dict) and "$opaque" in value for value in (held, result))
    return canonical(held) == canonical(result) if is_plain else held == result


def check_result(result: object) -> None:
    """Refuse a result that is not tagged JSON. Raises Refusal with the place in the request."""
    try:
        if isinstance(result, dict) and len(result) == 1 and "$opaque" in result:
            convert(result["$opaque"], Opaque)
        else:
            canonical_of_json(cast("JsonValue", result))
    except Refusal as refusal:
        raise refusal.under("result") from refusal


class Fail:
    """An attempt says that its tool has not run to its end."""

    def __init__(self, amend: Amend, jitter: Jitter) -> None:
        self._amend = amend
        self._jitter = jitter

    async def __call__(self, tenant: TenantId, key: Key, request: FailRequest) -> ReportOutcome:
        """Record a failure. Raises Refusal for error data that is not tagged JSON, StoreUnavailable."""
        try:
            canonical(request.error.data)
        except Refusal as refusal:
            raise refusal.under("error", "data") from refusal
        recorded = msgspec.json.encode(Outcome(error=request.error))

        def change(effect: Effect, decision: Decision, _at: Instant) -> Effect:
            return msgspec.structs.replace(effect, outcome=recorded) if decision.life.state == "failed" else effect

        event = Event(
            name=request.kind,
            token=AttemptToken(request.attempt),
            fence=Fence(request.fence),
            retry_after=None if request.retry_after is None else seconds(request.retry_after),
            jitter=self._jitter(),
        )
        return await self._amend(tenant, Amendment(key=key, event=event, change=change))
