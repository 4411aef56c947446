"""Resolve: a person or a probe that has asked the provider settles doubt, and may stage what the effect would have."""

import msgspec

from guard.core.effects import Effect, Fence, Instant, Key, TenantId, instant
from guard.core.lifecycle import Decision
from guard.core.outbox import Staging
from guard.core.situation import Event, EventName
from guard.logs import logger
from guard.ports.outbox import OutboxStore
from guard.ports.probes import ProbeStore
from guard.ports.store import StatementFailed, StoreUnavailable
from guard.service.amend import Amend, Amendment, look
from guard.service.finish import check_result
from guard.service.intake import Intake
from guard.service.outcomes import Refused, ReportOutcome, Settled
from guard.service.staging import Source, Stagings, check_messages
from twiceshy_contract.effects import Opaque, Outcome, ResolveRequest
from twiceshy_contract.refusals import Refusal

_EVENTS: dict[str, EventName] = {"applied": "found_applied", "not_applied": "found_not_applied", "closed": "closed"}

_log = logger("guard.resolve")


class Resolve:
    """The word of someone who knows. Said twice with the same fence, it is taken once."""

    def __init__(
        self, amend: Amend, probes: ProbeStore, intake: Intake, stagings: Stagings, outbox: OutboxStore
    ) -> None:
        self._amend = amend
        self._probes = probes
        self._intake = intake
        self._stagings = stagings
        self._outbox = outbox

    async def __call__(self, tenant: TenantId, key: Key, request: ResolveRequest) -> ReportOutcome:
        """Settle an effect. Raises Refusal for a result that is not tagged JSON, StoreUnavailable."""
        if request.result is not msgspec.UNSET:
            check_result(request.result)
            if request.as_ != "applied":
                raise Refusal("only an effect that was applied has a result", ("result",))
        staging = await self._staging(tenant, key, request) if request.outbox else None
        if isinstance(staging, Refused):
            return staging
        outcome = msgspec.json.encode(Outcome(result=_result(request)))
        resolution = f"{request.as_} (fence {request.fence}): {request.reason}"
        is_applied = request.as_ == "applied"

        def change(effect: Effect, decision: Decision, _at: Instant) -> Effect:
            changed = msgspec.structs.replace(effect, resolution=resolution)
            is_success = decision.life.state == "succeeded"
            return msgspec.structs.replace(changed, outcome=outcome) if is_success else changed

        def is_done(effect: Effect) -> bool:
            is_same = effect.resolution == resolution and effect.life.fence == request.fence
            is_undone = request.as_ == "closed" and not effect.life.closed
            return is_same and not is_undone and (not is_applied or effect.outcome == outcome)

        asked_at = None if request.as_of is None else instant(request.as_of)
        event = Event(name=_EVENTS[request.as_], fence=Fence(request.fence), asked_at=asked_at)
        amendment = Amendment(key=key, event=event, change=change, evidence=outcome, is_done=is_done, staging=staging)
        if staging is not None:
            count = len(staging.rows)
            amendment = msgspec.structs.replace(amendment, told=lambda: self._stagings.tell(count))
        answer = await self._amend(tenant, amendment)
        if isinstance(answer, Settled) and request.as_ != "closed":
            await self._forget_questions(key)
        return answer

    async def _staging(self, tenant: TenantId, key: Key, request: ResolveRequest) -> Staging | Refused | None:
        """Render what the effect is to stage. Who resolves is there to correct it, so that a misfit is refused.

        Refused as well where the effect had succeeded before, without staging anything: nothing would be written. None
        where it has staged.
        """
        if request.as_ != "applied":
            raise Refusal("only an effect that was applied stages messages", ("outbox",))
        check_messages(request.outbox, "outbox")
        await self._stagings.check(tenant, request.outbox, "outbox")
        effect = (await self._intake.do(key, look(key), tenant)).effect
        if effect is not None and effect.life.state == "succeeded":
            if await self._outbox.of_effect(tenant, key):
                return None
            if effect.intent.tenant == tenant:
                detail = f"Effect {key.hex()} had succeeded before, and staged nothing; it stages nothing any more."
                return Refused(code="not-possible", detail=detail, effect=effect)
        return await self._stagings.with_report(Source(tenant=tenant, key=key), request.outbox)

    async def _forget_questions(self, key: Key) -> None:
        """Let a later doubt be asked about at once; that may fail, for then it is asked about after a pause."""
        try:
            await self._probes.forget(key)
        except (StoreUnavailable, StatementFailed) as error:
            _log.warning("questions_kept", key=key.hex(), reason=str(error))


def _result(request: ResolveRequest) -> object:
    """Return the result that is recorded: the one that was given, else one that says that nobody gave one."""
    if request.result is not msgspec.UNSET:
        return request.result
    reason = "it was settled as applied and nobody gave its result"
    return {"$opaque": msgspec.to_builtins(Opaque(type="unknown", size=None, sha256=None, reason=reason))}
