"""The gate of approvals: a call that a person must approve is asked for once, and passes with how that stands.

What a decision does to the effect is written by whoever decides; where that was lost, by the next call that comes
here. An approval is bound to the effect, to the arguments and to the tool's version: what runs under it is what was
approved. It is spent by the effect, and covers its attempts until it is final.
"""

from typing import Final, cast

import msgspec

from guard.core.admission import NextGeneration, admit, is_repeat
from guard.core.approvals import Approval, Question, is_needed, strictest, summary_of
from guard.core.arguments import Reading, arguments_of
from guard.core.effects import AttemptToken, Effect, Key, seconds
from guard.core.keys import slot
from guard.core.redaction import restored
from guard.core.situation import Event
from guard.ports.approvals import ApprovalStore, Standing, Within
from guard.service.amend import look
from guard.service.endings import end, ending_of
from guard.service.gates import Instance
from guard.service.intake import Intake
from guard.service.naming import NamedCall, NeededApproval
from guard.service.outcomes import BeginOutcome
from guard.service.runs import Runs
from twiceshy_contract.names import KeyRule
from twiceshy_contract.policies import ApprovalRule
from twiceshy_contract.refusals import JsonValue

_FARTHEST_BACK: Final = 20
"""How many earlier instances of a slot are looked at for one that succeeded; beyond, a person is asked anyway."""


class _Need(msgspec.Struct, frozen=True, kw_only=True):
    """The rule by which a person is asked, and why."""

    rule: ApprovalRule
    evidence: dict[str, object]


class ApprovalGate:
    """Asks persons."""

    def __init__(self, store: ApprovalStore, runs: Runs, intake: Intake) -> None:
        self._store = store
        self._runs = runs
        self._intake = intake

    async def __call__(self, found: Instance) -> NamedCall | BeginOutcome:
        """Let the call pass with how its approval stands, or answer it. Raises StoreUnavailable."""
        if found.effect is None or not _is_to_the_letter(found.call, found.effect):
            found = await self._as_edited(found)
        call, effect = found.call, found.effect
        if effect is not None and effect.life.state != "pending":
            return call
        need = await self._need(found)
        if need is None:
            return call
        latest = await self._store.latest(call.tenant, call.key(call.start))
        if latest is None:
            if await self._is_run_over(call):
                return call  # nothing begins in it any more: nobody need be asked
            denied = await self._denied_before(call)
            if denied is not None:
                return await self._ended(call, denied)
            latest = await self._ask(call, need, 1)
        elif self._must_ask_again(found, latest):
            latest = await self._ask(call, need, latest.approval.question.round + 1)
        if latest.approval.state_at(latest.at) in ("denied", "cancelled"):
            return await self._ended(call, latest.approval)
        return msgspec.structs.replace(call, approval=_needed(call, latest))

    async def _is_run_over(self, call: NamedCall) -> bool:
        run = None if call.request.run is None else await self._runs.get(call.tenant, call.request.run)
        return run is not None and run.ended_at is not None

    def _must_ask_again(self, found: Instance, latest: Standing) -> bool:
        """Say whether the last question does not cover the call: it has run out, or was about another call.

        Where the effect is there, other arguments of the same identity are what was approved in other words: what
        was approved runs.
        """
        call, question = found.call, latest.approval.question
        state = latest.approval.state_at(latest.at)
        if state == "expired":
            return call.request.reopen
        is_other = found.effect is None and question.digest != call.reading.arguments_digest
        return state in ("open", "approved") and (is_other or question.tool_version != call.named_by.tool.version)

    async def _need(self, found: Instance) -> _Need | None:
        """Return the rule by which a person must be asked, pinned or of today; None where none must."""
        call = found.call
        arguments = cast("JsonValue", call.request.arguments)
        declared = (known.tool.declaration.approval for known in (call.named_by, call.held))
        rules = [rule for rule in declared if rule is not None and (call.needs_approval or is_needed(rule, arguments))]
        repeated = await self._repeated(call) if call.rules.repeat == "ask" and call.start > 1 else None
        if not rules and repeated is None and not call.needs_approval:
            return None
        because = "fork" if call.needs_approval else "rule"
        why: dict[str, object] = {"because": "repeat" if repeated is not None else because}
        if repeated is not None:
            why["repeats"] = repeated.hex()
        if rules and rules[0].when is not None:
            why["when"] = rules[0].when
        why["class"] = call.rules.effect_class
        if call.request.worker is not None:
            why["worker"] = call.request.worker
        return _Need(rule=strictest(rules), evidence=why)

    async def _repeated(self, call: NamedCall) -> Key | None:
        """Return the nearest earlier instance that succeeded, which the call would repeat; None where none did."""
        nearest = call.start - 1
        for rank in range(nearest, max(0, nearest - _FARTHEST_BACK), -1):
            seen = await self._intake.do(call.lane, look(call.key(rank)))
            if seen.effect is not None and seen.effect.life.state == "succeeded":
                return call.key(rank) if is_repeat(seen.effect.life.ended_at, call.rules, seen.at) else None
        return call.key(nearest) if nearest > _FARTHEST_BACK else None

    async def _ask(self, call: NamedCall, need: _Need, number: int) -> Standing:
        """Ask, once for a key and a number."""
        request, rule = call.request, need.rule
        known: dict[str, JsonValue] = {
            "tool": request.tool,
            "arguments": cast("JsonValue", call.stored_arguments),
            "run": request.run,
            "step": request.step,
            "key": call.key(call.start).hex(),
        }
        question = Question(
            key=call.key(call.start),
            round=number,
            tool=request.tool,
            tool_version=call.named_by.tool.version,
            run=request.run,
            digest=call.reading.arguments_digest,
            arguments=msgspec.json.encode(call.stored_arguments),
            summary=summary_of(rule.summary, known),
            evidence=msgspec.json.encode(need.evidence),
            requester=request.requester or request.worker,
            quorum=rule.quorum,
            four_eyes=rule.four_eyes,
            deadline=None if rule.deadline_seconds is None else seconds(rule.deadline_seconds),
        )
        return await self._store.ask(call.tenant, question)

    async def _denied_before(self, call: NamedCall) -> Approval | None:
        """Return the denial of the same arguments under another key of the run."""
        request = call.request
        if request.run is None:
            return None
        return await self._store.denied(call.tenant, request.run, request.tool, call.reading.arguments_digest)

    async def _ended(self, call: NamedCall, approval: Approval) -> NamedCall | BeginOutcome:
        ending = ending_of(approval)
        return call if ending is None else await self._intake.do(call.lane, end(call, ending))

    async def _as_edited(self, found: Instance) -> Instance:
        """Return the instance whose approver put this call's arguments in the place of what was asked for."""
        call = found.call
        within = Within(None if call.is_tenant_wide else call.request.run)
        edited = await self._store.edited(call.tenant, within, call.request.tool, call.reading.arguments_digest)
        if edited is None:
            return found
        key = edited.question.key
        seen = await self._intake.do(call.lane, look(key))
        effect = seen.effect
        if effect is None or not _is_meant(found, effect):
            return found
        meant = _as_begun(call, effect)
        event = Event(name="begin", token=AttemptToken(call.request.attempt), lease=call.rules.lease)
        admission = admit(meant.as_read_now(effect), meant.compared, event, meant.rules_for(effect), seen.at)
        if meant.key(meant.start) != key or isinstance(admission, NextGeneration):
            return found
        return Instance(call=meant, effect=effect, at=seen.at)


def _is_to_the_letter(call: NamedCall, effect: Effect) -> bool:
    return call.as_read_now(effect).intent.arguments_digest == call.reading.arguments_digest


def _is_meant(found: Instance, effect: Effect) -> bool:
    """Say whether a call may mean an effect that was edited to its arguments.

    By its name it does; by its arguments alone it does where those are its name, and it is no deliberate repeat.
    """
    call, intent = found.call, effect.intent
    if found.effect is not None:
        return found.effect.intent.key == intent.key
    return call.rule == "once" and intent.rule == "once" and call.request.occurrence == intent.occurrence


def _as_begun(call: NamedCall, effect: Effect) -> NamedCall:
    """Return the call as the one that the effect was begun with."""
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


def _needed(call: NamedCall, latest: Standing) -> NeededApproval:
    approval = latest.approval
    question = approval.question
    edited = None if approval.edit is None else approval.edit.arguments
    if edited is None and question.digest != call.reading.arguments_digest:
        edited = question.arguments  # what was approved, not what the call says now
    return NeededApproval(
        id=approval.id,
        key=question.key,
        standing="approved" if approval.decided == "approved" else "open",
        summary=question.summary,
        quorum=question.quorum,
        expires_at=approval.expires_at,
        edited=edited if approval.decided == "approved" else None,
    )
