"""The gates of forks: what a call in one hears in the place of a lease, and how many calls may really run.

No call of a fork comes to its begin but one that the policy lets run. What was given of the record is written down
with the answer, so that each effect of it is given for one call only, whatever process asks. Where the fork stops, a
pause is kept that a person may answer.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, assert_never

import msgspec

from guard.core.effects import AttemptToken, Effect, Instant, Key, RunId
from guard.core.pauses import PauseAnswer, answered
from guard.core.situation import Event
from guard.ports.forks import ForkStore
from guard.ports.pauses import PauseStore
from guard.service.fork_rulings import Forked, ForkRulings, Imagined, Judged, stop_of
from guard.service.gates import Instance
from guard.service.naming import NamedCall
from guard.service.outcomes import BeginOutcome, Refused, Stubbed
from guard.service.ruling import differing, rule
from guard.service.runs import Runs
from guard.service.verdicts import refusal
from twiceshy_contract.policy import PolicyRule

_NOTHING: Final = Imagined()
_REASONS: Final[Mapping[PolicyRule, str]] = MappingProxyType(
    {
        "arguments differ": "the record has other arguments at its place",
        "outcome unknown": "the record has no outcome of it",
        "needs approval": "a person must approve it, and none was asked",
        "approval denied": "a person has denied it",
        "simulator failed": "the record has no answer, and the template of its simulator fails on these arguments",
        "registry: recorded": "the registry lets it be answered from the record only, which has no answer",
        "registry: stub": "the registry lets it be answered by a simulator only, and it has none",
        "registry: suspend": "the registry stops every fork at this tool",
        "registry: deny": "the registry denies the tool to every fork",
        "reads: recorded": "the fork's reads are answered from the record only, which has no answer",
        "live calls used up": "the record has no answer, and as many calls as the fork allows were let run",
        "arguments not allowed": "the record has no answer, and the fork does not let it run with these arguments",
        "not registered": "the record has no answer, and of a tool that nobody declared the worst is assumed",
        "denied by a person": "a person was asked, and refuses it",
        "nothing may answer": "the record has no answer, it has no simulator, and the fork does not let it run",
    }
)


class ForkGate:
    """The early gate: it answers what may not run, and lets the rest pass with what it needs."""

    def __init__(self, store: ForkStore, pauses: PauseStore, runs: Runs, rulings: ForkRulings) -> None:
        self._store = store
        self._pauses = pauses
        self._runs = runs
        self._rulings = rulings

    async def __call__(self, call: NamedCall) -> NamedCall | BeginOutcome:
        """Let the call pass, or answer it. Raises StoreUnavailable."""
        name = call.request.run
        run = None if name is None or not call.is_forked else await self._runs.identify(call.tenant, name)
        if run is None or run.fork is None:
            return call
        call = _numbered(call)
        forked = await self._rulings.forked(run.id, run.fork)
        if call.request.delivered:
            await self._store.deliver(forked.id, [Key(bytes.fromhex(key)) for key in call.request.delivered])
        while True:
            judged = await self._rulings.judge(call, forked, _NOTHING)
            passed = await self._carried_out(call, forked, judged)
            if passed is not None:
                return passed

    async def _carried_out(  # noqa: PLR0911 - one answer for each decision
        self, call: NamedCall, forked: Forked, judged: Judged
    ) -> NamedCall | BeginOutcome | None:
        """Do what was ruled; None where another call was given the effect, or its record has expired, meanwhile."""
        ruled = judged.ruled
        match ruled.decision:
            case "recorded":
                origin = await self._given(call, forked, judged)
                if origin is None or origin.outcome is None:
                    return None
                return _recorded(call, origin, origin.outcome, ruled.rule)
            case "stub" if ruled.rule == "injected":
                return await self._injected(call, forked, judged)
            case "stub":
                return _stubbed(call, judged.simulated or b"{}", ruled.rule)
            case "live":
                return _let_pass(call, forked, judged)
            case "suspend" if ruled.rule == "needs approval":
                return _let_pass(call, forked, judged)
            case "suspend":
                await self._pauses.keep(stop_of(call, forked.id, judged.found.key, ruled.rule))
                return stopped(call, ruled.rule, forked, judged.found.key)
            case "deny":
                answer = None if judged.pause is None else judged.pause.answer
                return _denied(stopped(call, ruled.rule, forked), answer)
        assert_never(ruled.decision)

    async def _given(self, call: NamedCall, forked: Forked, judged: Judged) -> Effect | None:
        found = judged.found
        if found.given is not None or found.origin is None:
            return found.origin
        token = AttemptToken(call.request.attempt)
        given = await self._store.give(forked.id, found.key, found.origin.intent.key, token)
        return None if given is None else given.origin

    async def _injected(self, call: NamedCall, forked: Forked, judged: Judged) -> Stubbed | None:
        """Give a person's outcome; None where every call counts and another was given it meanwhile."""
        token = AttemptToken(call.request.attempt)
        first = await self._pauses.spend(forked.id, judged.found.key, token)
        answer = None if judged.pause is None else judged.pause.answer
        if answer is None or (first != token and call.rules.repeat != "replay"):
            return None
        return _injected(call, answer)


class LiveCalls:
    """The last gate of a fork's call: it counts those that really run, and lets none run unapproved that must be."""

    def __init__(self, store: ForkStore, pauses: PauseStore) -> None:
        self._store = store
        self._pauses = pauses

    async def __call__(self, found: Instance) -> NamedCall | BeginOutcome:
        """Let the call pass, or stop the fork at it. Raises StoreUnavailable."""
        call, effect = found.call, found.effect
        if not call.is_forked or call.run_id is None:
            return call
        is_own = effect is not None and effect.intent.run_id == call.run_id
        if effect is not None and (effect.is_final or (is_own and effect.life.state != "pending")):
            return call  # nothing is granted any more, or it was let run before
        standing = None if call.approval is None else call.approval.standing_at(found.at)
        if standing in ("open", "expired"):
            return call  # the begin says how it stands
        if call.needs_approval and standing != "approved":
            if effect is None or effect.life.state == "pending":
                return stopped(call, "needs approval")
            return _occupied(call, effect, found.at)
        return await self._counted(call, call.run_id)

    async def _counted(self, call: NamedCall, run: RunId) -> NamedCall | Stubbed | Refused:
        """Let the call run as one of those that the fork allows, or as the one that a person has allowed."""
        key, root, tool = call.key(call.start), call.counted_in or run, call.request.tool
        if call.allowed is None and await self._store.let_run(root, tool, key, call.most):
            return call
        rule: PolicyRule = "live calls used up" if call.allowed is None else "nothing may answer"
        stop = stop_of(call, run, key, rule)
        pause = await self._pauses.find(run, key)
        answer = None if pause is None else pause.answer
        word = answered(pause, stop)
        if answer is None or word == "nothing":
            await self._pauses.keep(stop)
            return stopped(call, rule, key=key)
        if word == "denied":
            return _denied(stopped(call, "denied by a person"), answer)
        await self._pauses.spend(run, key, AttemptToken(call.request.attempt))
        if word == "injected":
            return _injected(call, answer)
        await self._store.let_run(root, tool, key, None)
        return call


def _numbered(call: NamedCall) -> NamedCall:
    """Let a call that says which of its like it is mean that instance, where its tool would have it mean a later one.

    So a program that is run again meets what its calls were given before. Whether an intended repeat is approved is a
    question of the effects that are there, and stays one.
    """
    nth, rules = call.request.nth, call.rules
    is_repeating = rules.repeat == "allow" or (rules.repeat == "replay" and rules.effect_class == "idempotent")
    if nth is None or not is_repeating:
        return call
    return msgspec.structs.replace(
        call, start=nth, rules=msgspec.structs.replace(rules, repeat="replay", is_counted=True)
    )


def _occupied(call: NamedCall, effect: Effect, at: Instant) -> Refused:
    """Say that another run executes the effect, or has left it in doubt: nobody can approve it before that is over."""
    ruling = rule(call, effect, Event(name="begin", token=AttemptToken(call.request.attempt)), at)
    if ruling is not None and isinstance(ruling.outcome, Refused):
        return ruling.outcome
    return refusal("in_doubt", effect, call.rules, at)


def _let_pass(call: NamedCall, forked: Forked, judged: Judged) -> NamedCall | Refused:
    """Let a call run: one that only reads without a lease, any other through the gates that follow."""
    if judged.call.effect_class == "read":
        return Refused(
            code="not-possible",
            detail=f"Tool {call.request.tool!r} only reads, and the fork lets it run (rule: {judged.ruled.rule}). "
            "Run it without a begin: it takes no lease.",
        )
    has_yes = judged.call.answered == "allowed"
    return msgspec.structs.replace(
        call,
        rules=msgspec.structs.replace(call.rules, effect_class=judged.call.effect_class),
        also_asked=judged.also_asked,
        needs_approval=judged.call.effect_class == "side_effect" and not has_yes,
        most=None if judged.terms is None else judged.terms.calls,
        counted_in=forked.root,
        allowed=judged.found.key if has_yes else None,
        start=judged.found.rank if has_yes else call.start,
    )


def _recorded(call: NamedCall, origin: Effect, outcome: bytes, rule: str) -> Stubbed:
    stubbed = _stubbed(call, outcome, rule)
    drift: tuple[str, ...] = ()
    if origin.intent.arguments_digest != call.reading.arguments_digest:
        drift = differing(call.named_by.reader.differing_content, origin, call)
    return msgspec.structs.replace(stubbed, provenance="recorded", origin=origin.intent.key, drift=drift)


def _stubbed(call: NamedCall, outcome: bytes, rule: str) -> Stubbed:
    return Stubbed(
        tool=call.request.tool,
        tool_version=call.named_by.tool.version,
        run=call.request.run or "",
        outcome=outcome,
        provenance="simulator",
        rule=rule,
    )


def _injected(call: NamedCall, answer: PauseAnswer) -> Stubbed:
    stubbed = _stubbed(call, answer.outcome or b"{}", "injected")
    return msgspec.structs.replace(stubbed, provenance="injected")


def _denied(refused: Refused, answer: PauseAnswer | None) -> Refused:
    """Say that the call is refused for good, in the words of the person who said so, where it was one."""
    reason = answer.reason if answer is not None and answer.word == "deny" else None
    why = "" if reason is None else f" The reason: {reason.rstrip('.')}."
    return msgspec.structs.replace(refused, code="forbidden", detail=f"{refused.detail}{why}")


def stopped(call: NamedCall, rule: PolicyRule, forked: Forked | None = None, key: Key | None = None) -> Refused:
    """Say at which call the fork stops, and why; `key` is that of its pause, where a person can answer it."""
    whose = "" if forked is None else f" of run {forked.fork.parent!r}"
    return Refused(
        code="run-suspended",
        detail=f"Tool {call.request.tool!r} was not begun in fork {call.request.run!r}{whose}: {_REASONS[rule]} "
        f"(rule: {rule}).",
        pause=key,
    )
