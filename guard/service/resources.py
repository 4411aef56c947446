"""The gate of tools that claim a resource: a call places a hold for its effect before it may begin.

The hold is bound to the effect's key, so that a call that comes again finds it, and lapses should the begin never
come: only an effect that is there, and waits for a person, keeps it longer. The begin's grant demands that it is held
still.
"""

from typing import Final, cast
from uuid import UUID, uuid4

import msgspec

from guard.core.arguments import arguments_of
from guard.core.effects import Effect
from guard.core.holds import GRACE, Wish
from guard.core.resources import span_of
from guard.ports.holds import Occupied, Placed
from guard.service.gates import Instance
from guard.service.holds import Holds, occupied
from guard.service.naming import NamedCall
from guard.service.outcomes import BeginOutcome, Refused
from twiceshy_contract.policies import ResourceRule
from twiceshy_contract.refusals import JsonValue

_NO_HOLD: Final = UUID(int=0)


class ClaimResource:
    """Places the hold of a call's effect, or says who has the resource."""

    def __init__(self, holds: Holds) -> None:
        self._holds = holds

    async def __call__(self, found: Instance) -> NamedCall | BeginOutcome:
        """Let the call pass with its hold. Raises Refusal for arguments that name no interval, StoreUnavailable."""
        call, effect = found.call, found.effect
        rule = call.held.tool.declaration.resource or call.named_by.tool.declaration.resource
        if rule is None or (effect is not None and effect.is_final):
            return call
        wish = _wish(call, rule, effect)
        placed = await self._holds.claim(wish)
        if isinstance(placed, Placed):
            return msgspec.structs.replace(call, hold=placed.hold.id)
        if _is_own(call, placed):
            return call
        if effect is not None and effect.life.state in ("executing", "in_doubt"):
            return msgspec.structs.replace(call, hold=_NO_HOLD)  # it hears how the effect stands; no lease is granted
        return _refused(wish, placed, call)


def _wish(call: NamedCall, rule: ResourceRule, effect: Effect | None) -> Wish:
    request = call.request
    key = call.key(call.start) if effect is None else effect.intent.key
    known: dict[str, JsonValue] = {
        "arguments": cast("JsonValue", _arguments(call, effect)),
        "key": key.hex(),
        "run": request.run,
        "tool": request.tool,
    }
    span = span_of(rule, known)
    return Wish(
        id=uuid4(),
        tenant=call.tenant,
        resource=span.resource,
        start=span.start,
        end=span.end,
        priority=request.priority,
        holder=request.worker or request.run or request.business_key or request.tool,
        run=request.run,
        key=key,
        lasts=GRACE,
    )


def _arguments(call: NamedCall, effect: Effect | None) -> dict[str, object]:
    """Return the arguments that will be run: those that an approver put in the place of the caller's count."""
    edited = None if effect is None else effect.edited
    if call.approval is not None and call.approval.standing == "approved":
        edited = call.approval.edited  # an edit before it may have been taken back
    return call.stored_arguments if edited is None else arguments_of(edited)


def _is_own(call: NamedCall, found: Occupied) -> bool:
    """Say whether the time is booked by an earlier instance of the same intent, which may be repeated harmlessly."""
    by = found.by
    is_same = by.slot is not None and by.slot == call.slot
    return is_same and by.hold.state == "committed" and call.rules.effect_class == "idempotent"


def _refused(wish: Wish, found: Occupied, call: NamedCall) -> Refused:
    refusal = occupied(wish, found)
    if found.lost is None:
        return msgspec.structs.replace(refusal, detail=f"Tool {call.request.tool!r} was not begun: {refusal.detail}")
    return msgspec.structs.replace(
        refusal,
        code="hold-lost",
        detail=f"Tool {call.request.tool!r} was not begun: its hold was taken over. {refusal.detail}",
        retry_after=None,
    )
