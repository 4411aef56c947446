"""Resolve: a person or a probe that has asked the provider settles doubt."""

import msgspec

from guard.core.effects import Effect, Fence, Instant, Key, TenantId, instant
from guard.core.lifecycle import Decision
from guard.core.situation import Event, EventName
from guard.service.amend import Amend, Amendment, look
from guard.service.finish import check_result
from guard.service.intake import Intake
from guard.service.outcomes import ReportOutcome, Settled
from twiceshy_contract.effects import Outcome, ResolveRequest
from twiceshy_contract.refusals import Refusal

_EVENTS: dict[str, EventName] = {"applied": "found_applied", "not_applied": "found_not_applied", "closed": "closed"}


class Resolve:
    """The word of someone who knows. Said twice with the same fence, it is taken once."""

    def __init__(self, amend: Amend, intake: Intake) -> None:
        self._amend = amend
        self._intake = intake

    async def __call__(self, tenant: TenantId, key: Key, request: ResolveRequest) -> ReportOutcome:
        """Settle an effect. Raises Refusal for a result that is not tagged JSON, StoreUnavailable."""
        check_result(request.result)
        if request.result is not None and request.as_ != "applied":
            raise Refusal("only an effect that was applied has a result", ("result",))
        outcome = msgspec.json.encode(Outcome(result=request.result))
        resolution = f"{request.as_} (fence {request.fence}): {request.reason}"

        def change(effect: Effect, decision: Decision, _at: Instant) -> Effect:
            changed = msgspec.structs.replace(effect, resolution=resolution)
            is_applied = decision.life.state == "succeeded"
            return msgspec.structs.replace(changed, outcome=outcome) if is_applied else changed

        found = await self._intake.do(key, look(key))
        effect = found.effect
        if effect is not None and effect.resolution == resolution and effect.life.fence == request.fence:
            return Settled(effect=effect, at=found.at)
        asked_at = None if request.as_of is None else instant(request.as_of)
        event = Event(name=_EVENTS[request.as_], fence=Fence(request.fence), asked_at=asked_at)
        amendment = Amendment(key=key, event=event, change=change, evidence=outcome)
        return await self._amend(tenant, amendment, found)
