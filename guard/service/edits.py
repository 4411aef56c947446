"""Edits: the arguments that a person puts in the place of those that were asked for, and which effect they name.

Two effects never run the same arguments by an edit: it is refused where they are another effect's, and a call that
brings them later is answered with the effect that was edited.
"""

from typing import Final, cast
from uuid import uuid4

import msgspec

from guard.core.admission import NextGeneration, admit
from guard.core.approvals import Approval, Edit
from guard.core.arguments import Reading, arguments_of
from guard.core.effects import AttemptToken, Effect, TenantId
from guard.core.keys import slot
from guard.core.resources import span_of
from guard.core.situation import Event
from guard.ports.approvals import ApprovalStore
from guard.service.amend import look
from guard.service.gates import Gates, Instance
from guard.service.intake import Intake
from guard.service.naming import NamedCall, Naming
from guard.service.outcomes import Refused
from guard.service.registry import KnownTool
from twiceshy_contract.canonical import canonical, is_tag, normal_form
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.names import KeyRule
from twiceshy_contract.redaction import marks, restored
from twiceshy_contract.refusals import JsonValue, Refusal

_NOT_KNOWN: Final = (
    "some of its arguments are not stored, so nobody can say which effect other ones would name. Deny it, and let the "
    "agent ask anew."
)


class Edited(msgspec.Struct, frozen=True):
    """An edit that names no other effect; so many earlier ones that came to the same arguments are over."""

    edit: Edit
    earlier: int = 0


class Collision(msgspec.Struct, frozen=True):
    """The arguments are another effect's."""

    other: Effect


class Edits:
    """Understands the arguments that persons put in."""

    def __init__(self, store: ApprovalStore, naming: Naming, gates: Gates, intake: Intake) -> None:
        self._store = store
        self._naming = naming
        self._gates = gates
        self._intake = intake

    async def __call__(
        self, approval: Approval, effect: Effect | None, arguments: dict[str, object]
    ) -> Edited | Collision | Refused | None:
        """Understand an edit; None where it changes nothing. Raises Refusal for what cannot run, StoreUnavailable."""
        asked = arguments_of(approval.question.arguments)
        if _written(arguments) == canonical(asked):
            return None
        if marks(asked):
            return Refused(code="edit-refused", detail=f"{_named(approval)}: {_NOT_KNOWN}")
        _check_shape(asked, arguments)
        if effect is None:
            detail = f"{_named(approval)}: the call has not come to its effect yet. Try again when the agent has."
            return Refused(code="edit-refused", detail=detail)
        call = await self._named(approval.tenant, effect, arguments)
        if isinstance(call, Refused):
            return call
        _check_resource(call, arguments)
        edit = Edit(msgspec.json.encode(arguments), call.reading.arguments_digest)
        return Edited(edit) if effect.intent.rule != "once" else await self._elsewhere(call, effect, edit)

    async def _elsewhere(self, call: NamedCall, effect: Effect, edit: Edit) -> Edited | Collision:
        """Find the effect that a call with these arguments would be now."""
        found = await self._gates.instance(call)
        if found.effect is not None:
            is_own = found.effect.intent.key == effect.intent.key
            return Edited(edit) if is_own else Collision(found.effect)
        key = found.call.key(found.call.start)
        earlier = [one for one in await self._store.edited(call.tenant, key, edit.digest) if one.edit_key == key]
        for one in earlier:
            meant = await meant_by(self._intake, found.call, one)
            if meant is not None and meant.effect is not None and one.question.key != effect.intent.key:
                return Collision(meant.effect)
        return Edited(msgspec.structs.replace(edit, key=key), len(earlier))

    async def _named(self, tenant: TenantId, effect: Effect, arguments: dict[str, object]) -> NamedCall | Refused:
        """Name the call that the agent would make with these arguments."""
        intent = effect.intent
        request = BeginRequest(
            tool=intent.tool,
            arguments=arguments,
            run=intent.run,
            step=intent.caller_step,
            business_key=intent.business_key,
            occurrence=intent.occurrence,
            attempt=uuid4(),
        )
        return await self._naming.name(tenant, request)


async def meant_by(intake: Intake, call: NamedCall, edited: Approval) -> Instance | None:
    """Return the effect that was edited to a call's arguments, as an instance of its own; None where it is over."""
    key = edited.question.key
    seen = await intake.do(call.lane, look(key), call.tenant)
    if seen.effect is None:
        return None
    meant = as_begun(call, seen.effect)
    event = Event(name="begin", token=AttemptToken(call.request.attempt), lease=call.rules.lease)
    admission = admit(meant.as_read_now(seen.effect), meant.compared, event, meant.rules_for(seen.effect), seen.at)
    if meant.key(meant.start) != key or isinstance(admission, NextGeneration):
        return None
    return Instance(call=meant, effect=seen.effect, at=seen.at)


def as_begun(call: NamedCall, effect: Effect) -> NamedCall:
    """Return a call as the one that an effect was begun with."""
    intent = effect.intent
    rule: KeyRule = intent.rule
    values = {"once": intent.identity_digest, "step": (intent.caller_step or "").encode()}
    value = values.get(rule, (intent.business_key or "").encode())
    run_id = None if rule == "once" and call.named_by.is_tenant_wide else call.run_id
    return msgspec.structs.replace(
        call,
        rule=rule,
        slot=slot(call.tenant, run_id, intent.tool, rule, value),
        reading=Reading(
            identity=b"",
            content=b"",
            identity_digest=intent.identity_digest,
            arguments_digest=intent.arguments_digest,
        ),
        request=msgspec.structs.replace(
            call.request,
            arguments=restored(arguments_of(intent.arguments), call.request.arguments),
            step=intent.caller_step,
            business_key=intent.business_key,
            occurrence=intent.occurrence,
        ),
        start=intent.generation - intent.occurrence + 1,
    )


def _named(approval: Approval) -> str:
    return f"Approval {approval.id} of {approval.question.summary}"


def _written(arguments: dict[str, object]) -> bytes:
    try:
        return canonical(arguments)
    except Refusal as refusal:
        raise refusal.under("arguments") from refusal


def _check_shape(asked: dict[str, object], arguments: dict[str, object]) -> None:
    """Refuse arguments that the tool cannot take as it took those that were asked for."""
    for name in sorted(asked.keys() | arguments.keys()):
        if name not in arguments:
            raise Refusal("the call has this argument: an edit names all, those too that stay", ("arguments", name))
        if name not in asked:
            raise Refusal("the call has no such argument", ("arguments", name))
        was, now = _kind(asked[name]), _kind(arguments[name])
        if was != now and "null" not in (was, now):
            raise Refusal(f"this is {now}, and the call has {was} here", ("arguments", name))


def _kind(value: object) -> str:
    normal = normal_form(value)
    if isinstance(normal, dict):
        return str(*normal).replace("$int", "a number") if is_tag(normal) else "an object"
    if isinstance(normal, bool):
        return "a boolean"
    names = {str: "a text", list: "a list", type(None): "null"}
    return names.get(type(normal), "a number")


def _check_resource(call: NamedCall, arguments: dict[str, object]) -> None:
    known: dict[str, JsonValue] = {
        "arguments": cast("JsonValue", arguments),
        "key": call.key(call.start).hex(),
        "run": call.request.run,
        "tool": call.request.tool,
    }
    tools: tuple[KnownTool, ...] = (call.held, call.named_by)
    for rule in (tool.tool.declaration.resource for tool in tools):
        if rule is not None:
            span_of(rule, known)
