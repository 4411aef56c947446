"""The gate of approvals: a call that a person must approve is asked for once, and passes with how that stands.

What a decision does to the effect is written by whoever decides; where that was lost, by the next call that comes
here. An approval is bound to the effect, to the arguments and to the tool's version: what runs under it is what was
approved. It is spent by the effect, and covers its attempts until it is final.
"""

from typing import Final, cast

import msgspec

from guard.core.admission import is_repeat
from guard.core.approvals import Approval, Question, is_needed, is_stricter, strictest, summary_of
from guard.core.arguments import arguments_of
from guard.core.effects import NEVER_GRANTED, Effect, Key, seconds
from guard.ports.approvals import ApprovalStore, Standing
from guard.ports.store import EffectStore
from guard.service.amend import look
from guard.service.bell import Bell
from guard.service.edits import meant_by
from guard.service.endings import end, ending_of
from guard.service.gates import Instance
from guard.service.intake import Intake
from guard.service.naming import NamedCall, NeededApproval
from guard.service.outcomes import BeginOutcome
from guard.service.runs import Runs
from twiceshy_contract.canonical import canonical
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

    def __init__(self, store: ApprovalStore, effects: EffectStore, runs: Runs, intake: Intake, bell: Bell) -> None:
        self._store = store
        self._effects = effects
        self._runs = runs
        self._intake = intake
        self._bell = bell

    async def __call__(self, found: Instance) -> NamedCall | BeginOutcome:
        """Let the call pass with how its approval stands, or answer it. Raises StoreUnavailable."""
        found = await self._as_edited(found)
        call, effect = found.call, found.effect
        is_pending = effect is None or effect.life.state == "pending"
        need = await self._need(found) if is_pending else None
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
        elif latest.approval.decided == "cancelled" and await self._is_run_over(call):
            return call
        elif self._must_ask_again(found, latest, need.rule):
            latest = await self._ask(call, need, latest.approval.question.round + 1)
        if latest.approval.state_at(latest.at) in ("denied", "cancelled"):
            return await self._ended(call, latest.approval)
        return msgspec.structs.replace(call, approval=_needed(call, latest))

    async def _is_run_over(self, call: NamedCall) -> bool:
        run = None if call.request.run is None else await self._runs.get(call.tenant, call.request.run)
        return run is not None and run.ended_at is not None

    def _must_ask_again(self, found: Instance, latest: Standing, rule: ApprovalRule) -> bool:
        """Say whether the last question does not cover the call.

        It has run out, was approved and taken back, was about another call, or waits for less than the rule wants now.

        Where the effect is there, other arguments of the same identity are what was approved in other words: what
        was approved runs.
        """
        call, question = found.call, latest.approval.question
        state = latest.approval.state_at(latest.at)
        if state == "expired":
            return call.request.reopen
        if latest.approval.is_withdrawn or (state == "open" and is_stricter(rule, question)):
            return True
        is_other = found.effect is None and question.digest != call.reading.arguments_digest
        return state in ("open", "approved") and (is_other or question.tool_version != call.named_by.tool.version)

    async def _need(self, found: Instance) -> _Need | None:
        """Return the rule by which a person must be asked, pinned or of today; None where none must."""
        call = found.call
        arguments = cast("JsonValue", call.request.arguments)
        declared = (*(known.tool.declaration.approval for known in (call.named_by, call.held)), *call.also_asked)
        rules = [rule for rule in declared if rule is not None and (call.needs_approval or is_needed(rule, arguments))]
        repeated = await self._repeated(found) if call.rules.repeat == "ask" else None
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

    async def _repeated(self, found: Instance) -> Key | None:
        """Return an instance of any occurrence that was or may be applied, which the call would repeat."""
        call = found.call
        rival = await self._effects.rival(call.slot, call.key(call.start))
        if rival is not None:
            is_done = rival.succeeded_at is not None
            return None if is_done and not is_repeat(rival.succeeded_at, call.rules, found.at) else rival.key
        return await self._repeated_unlisted(call)

    async def _repeated_unlisted(self, call: NamedCall) -> Key | None:
        """Return the nearest earlier instance that succeeded of those whose slot was not kept: it was no such tool."""
        nearest = call.start - 1
        for rank in range(nearest, max(0, nearest - _FARTHEST_BACK), -1):
            seen = await self._intake.do(call.lane, look(call.key(rank)), call.tenant)
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
        asked = await self._store.ask(call.tenant, question)
        self._bell.ring()
        return asked

    async def _denied_before(self, call: NamedCall) -> Approval | None:
        """Return the denial of the same arguments under another key of the run."""
        request = call.request
        if request.run is None:
            return None
        return await self._store.denied(call.tenant, request.run, request.tool, call.reading.arguments_digest)

    async def _ended(self, call: NamedCall, approval: Approval) -> NamedCall | BeginOutcome:
        ending = ending_of(approval)
        return call if ending is None else await self._intake.do(call.lane, end(call, ending), call.tenant)

    async def _as_edited(self, found: Instance) -> Instance:
        """Return the instance whose approver put this call's arguments in the place of what was asked for.

        Else the call's own, with how many such edits are over: the lease is granted only if no other comes meanwhile.
        """
        call, key = found.call, found.call.key(found.call.start)
        has_begun = found.effect is not None and found.effect.life.fence > NEVER_GRANTED
        if found.effect is not None and has_begun and _is_to_the_letter(call, found.effect):
            return found
        edits = await self._store.edited(call.tenant, key, call.reading.arguments_digest)
        for edited in edits:
            if edited.question.key == key or not has_begun:
                meant = await meant_by(self._intake, call, edited)
                if meant is not None:
                    return meant
        if has_begun:
            return found
        over = sum(edited.edit_key == key for edited in edits)
        return msgspec.structs.replace(found, call=msgspec.structs.replace(call, edits=over))


def _is_to_the_letter(call: NamedCall, effect: Effect) -> bool:
    return call.as_read_now(effect).intent.arguments_digest == call.reading.arguments_digest


def _needed(call: NamedCall, latest: Standing) -> NeededApproval:
    approval = latest.approval
    question = approval.question
    approved = question.arguments if approval.edit is None else approval.edit.arguments
    is_as_written = canonical(arguments_of(approved)) == canonical(call.stored_arguments)
    return NeededApproval(
        id=approval.id,
        key=question.key,
        standing="approved" if approval.decided == "approved" else "open",
        summary=question.summary,
        quorum=question.quorum,
        expires_at=approval.expires_at,
        edited=approved if approval.decided == "approved" and not is_as_written else None,
    )
