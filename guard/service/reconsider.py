"""Cancel and reopen: an operator ends an effect that waits, or lets one be tried again."""

from typing import Final

import msgspec

from guard.core.effects import Effect, Instant, Key, TenantId
from guard.core.lifecycle import Decision
from guard.core.situation import Event
from guard.service.amend import Amend, Amendment
from guard.service.outcomes import Refused, ReportOutcome, Settled
from guard.service.questions import Questions
from twiceshy_contract.effects import Outcome
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.reconsider import CancelRequest, ReopenRequest

CANCELLED: Final = "Cancelled"
"""The type of the error that a cancelled effect is answered with."""


class Cancel:
    """Nothing was applied, and nothing will be: calls are answered with the error `Cancelled` from now on."""

    def __init__(self, amend: Amend, questions: Questions) -> None:
        self._amend = amend
        self._questions = questions

    async def __call__(self, tenant: TenantId, key: Key, request: CancelRequest) -> ReportOutcome:
        """Cancel a pending effect. Said twice, it is taken once. Raises StoreUnavailable."""
        data = None if request.by is None else {"by": request.by}
        outcome = msgspec.json.encode(Outcome(error=ErrorOutcome(type=CANCELLED, message=request.reason, data=data)))
        whose = "" if request.by is None else f" by {request.by}"
        resolution = f"cancelled{whose}: {request.reason}"

        def change(effect: Effect, _decision: Decision, _at: Instant) -> Effect:
            return msgspec.structs.replace(effect, outcome=outcome, resolution=resolution)

        def is_done(effect: Effect) -> bool:
            return effect.life.state == "failed" and effect.resolution == resolution

        amendment = Amendment(key=key, event=Event(name="cancelled"), change=change, is_done=is_done)
        answer = await self._amend(tenant, amendment)
        if isinstance(answer, Settled):
            await self._questions.withdraw(tenant, key, request.by, request.reason)
        return _in_its_own_words(answer)


class Reopen:
    """The tries of an effect that waits are counted anew, and it waits no longer."""

    def __init__(self, amend: Amend, questions: Questions) -> None:
        self._amend = amend
        self._questions = questions

    async def __call__(self, tenant: TenantId, key: Key, request: ReopenRequest) -> ReportOutcome:
        """Reopen a pending effect; what nobody decided about it in time is asked anew. Raises StoreUnavailable."""
        resolution = f"reopened: {request.reason}"

        def change(effect: Effect, _decision: Decision, _at: Instant) -> Effect:
            return msgspec.structs.replace(effect, resolution=resolution)

        answer = await self._amend(tenant, Amendment(key=key, event=Event(name="reopened"), change=change))
        if isinstance(answer, Settled):
            await self._questions.renew(answer.effect)
        return answer


def _in_its_own_words(answer: ReportOutcome) -> ReportOutcome:
    """Say of an effect with a silent attempt that its doubt comes first."""
    if not isinstance(answer, Refused) or answer.effect is None or answer.effect.life.state != "pending":
        return answer
    key = answer.effect.intent.key.hex()
    return Refused(
        code="not-possible",
        detail=f"Effect {key[:16]}… of tool {answer.effect.intent.tool!r} cannot be cancelled yet: an attempt of it "
        f"ended without word. Find out, say so with POST /v1/effects/{key}/resolve, then cancel.",
        effect=answer.effect,
    )
