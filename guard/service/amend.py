"""Change an effect that exists: look, rule, compare and set, and rule again where it moved meanwhile."""

from collections.abc import Callable, Generator
from typing import Protocol, assert_never

import msgspec

from guard.core.effects import LATE_SUCCESS, OTHER_RESULT, Effect, Evidence, Instant, Key, TenantId
from guard.core.lease import Rules
from guard.core.lifecycle import Decision, decide, may_be_second
from guard.core.outbox import Staging
from guard.core.situation import Event
from guard.logs import logger, request_id
from guard.ports.steps import Found, HoldGone, Look, Overruled, Replace, RunClosed, Sibling, Step, StepResult, Written
from guard.service.intake import Intake
from guard.service.outcomes import Refused, ReportOutcome, Settled
from guard.service.registry import Registry
from guard.service.verdicts import expired, refusal

_log = logger("guard.amend")

Change = Callable[[Effect, Decision, Instant], Effect]
"""What the event does to the effect besides its life: its outcome, its resolution."""


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """An event for an effect, what else it writes, and what is kept as evidence should it contradict the record.

    `is_done` says that the effect shows the amendment already: it was made, and the answer was lost.
    `contradicts` says that the same was reported before, but with another outcome. `staging` goes with the effect where
    it has succeeded, whoever says so: once; `told` is called where it was written.
    """

    key: Key
    event: Event
    change: Change | None = None
    evidence: bytes | None = None
    is_done: Callable[[Effect], bool] | None = None
    contradicts: Callable[[Effect], bool] | None = None
    staging: Staging | None = None
    told: Callable[[], None] | None = None


class Amended(msgspec.Struct, frozen=True):
    """The answer, and whether evidence was written that an operator should see."""

    outcome: ReportOutcome
    is_alarming: bool = False


class TakenOver(msgspec.Struct, frozen=True):
    """Meanwhile the effect was begun anew under another version of its tool, so that other rules are its own."""

    found: Found
    effect: Effect


class Alarms(Protocol):
    """Tells operators of evidence."""

    async def tell(self, key: Key) -> None:
        """Flag the evidence of an effect. Raises nothing."""


class Amend:
    """The use case that commit, fail, renew, release and resolve share."""

    def __init__(self, registry: Registry, intake: Intake, alarms: Alarms) -> None:
        self._registry = registry
        self._intake = intake
        self._alarms = alarms

    async def __call__(self, tenant: TenantId, amendment: Amendment, found: Found | None = None) -> ReportOutcome:
        """Amend an effect, beginning with what was found of it. Raises StoreUnavailable, the outcome unknown."""
        if found is None:
            found = await self._intake.do(amendment.key, look(amendment.key), tenant)
        if found.effect is None or found.effect.intent.tenant != tenant:
            return not_found(amendment.key)
        amended = await self._amended(amendment, found, found.effect)
        if amended.is_alarming:
            await self._alarms.tell(amendment.key)
        return amended.outcome

    async def _amended(self, amendment: Amendment, found: Found, effect: Effect) -> Amended:
        """Amend it by the rules that it obeys; where another version of its tool took it over meanwhile, by those."""
        while True:
            rules = await self._registry.rules_for(effect)
            version = effect.intent.tool_version
            amended = await self._intake.do(
                amendment.key, amend(amendment, found, rules, version), effect.intent.tenant
            )
            if isinstance(amended, Amended):
                return amended
            found, effect = amended.found, amended.effect


def look(key: Key) -> Generator[Step, StepResult, Found]:
    """Read one effect."""
    result = yield Look(key=key)
    return result if isinstance(result, Found) else Found(effect=None, at=result.at)


def amend(
    amendment: Amendment, first: Found, rules: Rules, version: int
) -> Generator[Step, StepResult, Amended | TakenOver]:
    """Rule on the effect that was found; write by version; where it moved, rule on what it is now.

    The rules are those of an effect of this version of its tool.
    """
    asked_by = request_id.get()  # this begins in the request; the lane that goes on with it serves many
    found: StepResult = first
    is_alarming = False
    while True:
        match found:
            case Written(effect=effect, at=at):
                return Amended(Settled(effect=effect, at=at), is_alarming=is_alarming)
            case RunClosed() | Sibling() | HoldGone() | Overruled():
                return Amended(not_found(amendment.key))
            case Found(effect=effect, at=at):
                if effect is None:
                    return Amended(not_found(amendment.key))
                if amendment.is_done is not None and amendment.is_done(effect):
                    return Amended(Settled(effect=effect, at=at))
                if effect.intent.tool_version != version:
                    return TakenOver(found, effect)
                decision = _decide(amendment, effect, rules, at)
                kind = _kind(amendment, effect, decision, rules)
                planned = _planned(amendment, effect, decision, at, kind)
                if planned is not None:
                    found = yield planned
                    _tell(amendment, planned, found)
                    is_alarming = isinstance(found, Written) and _alarmed(amendment, decision, kind, asked_by)
                if planned is None or (isinstance(found, Written) and not _is_taken(decision)):
                    return Amended(_answer(decision, effect, rules, at), is_alarming=is_alarming)
            case _:
                assert_never(found)


def _tell(amendment: Amendment, planned: Replace, result: StepResult) -> None:
    if isinstance(result, Written) and planned.staging is not None and amendment.told is not None:
        amendment.told()


def _decide(amendment: Amendment, effect: Effect, rules: Rules, at: Instant) -> Decision:
    decision = decide(effect.life, amendment.event, rules, at)
    if decision.verdict == "repeated" and not _agrees(amendment, effect):
        return msgspec.structs.replace(decision, verdict="contradicted", alert=True)
    if decision.verdict == "contradicted" and _confirms(amendment, effect, rules):
        return msgspec.structs.replace(decision, life=effect.life, verdict="repeated", alert=False)
    return decision


def _confirms(amendment: Amendment, effect: Effect, rules: Rules) -> bool:
    """Say whether a success that was no second execution has the very result that is on record."""
    if amendment.contradicts is None or not _is_no_second(amendment, effect, rules):
        return False
    return not amendment.contradicts(effect)


def _is_no_second(amendment: Amendment, effect: Effect, rules: Rules) -> bool:
    """Say whether what is reported is a success beside the one on record, and yet no second execution."""
    event, life = amendment.event, effect.life
    is_beside = event.name == "success" and life.state == "succeeded"
    return is_beside and event.token is not None and not may_be_second(life, rules, event.token)


def _agrees(amendment: Amendment, effect: Effect) -> bool:
    """Say whether what is reported is on record; what was, and has expired, is taken to agree."""
    return effect.expired_at is not None or amendment.contradicts is None or not amendment.contradicts(effect)


def _alarmed(amendment: Amendment, decision: Decision, kind: str, asked_by: str | None) -> bool:
    """Log what should alarm, and say whether it should."""
    if decision.alert:
        _log.warning(_alarm(kind), request_id=asked_by, **_told(amendment, decision))
    return decision.alert


def _alarm(kind: str) -> str:
    return "executed_twice_perhaps" if kind in ("success", LATE_SUCCESS) else "record_contradicted"


def _told(amendment: Amendment, decision: Decision) -> dict[str, object]:
    event = amendment.event
    return {
        "key": amendment.key.hex(),
        "said": event.name,
        "verdict": decision.verdict,
        "attempt": str(event.token),
        "fence": event.fence,
    }


def _planned(amendment: Amendment, effect: Effect, decision: Decision, at: Instant, kind: str) -> Replace | None:
    after = msgspec.structs.replace(effect, life=decision.life)
    if decision.verdict == "done" and amendment.change is not None:
        after = amendment.change(after, decision, at)
    evidence = _evidence(amendment, decision, at, kind)
    staging = _staging(amendment, after, decision)
    if after == effect and not evidence and staging is None:
        return None
    return Replace(seen=effect.version, effect=after, evidence=evidence, staging=staging)


def _staging(amendment: Amendment, after: Effect, decision: Decision) -> Staging | None:
    """Return what goes with an effect that has succeeded; how late it comes is told by the lease of its attempt."""
    is_told = decision.verdict in ("done", "repeated", "contradicted")
    if amendment.staging is None or not is_told or after.life.state != "succeeded" or after.expired_at is not None:
        return None
    token = amendment.event.token
    attempt = None if token is None else after.life.attempt(token)
    return msgspec.structs.replace(amendment.staging, ended_at=None if attempt is None else attempt.deadline)


def _evidence(amendment: Amendment, decision: Decision, at: Instant, kind: str) -> tuple[Evidence, ...]:
    """Return what is kept beside the record: what contradicts it, and a success that may be one of two."""
    if amendment.evidence is None or not (decision.verdict == "contradicted" or decision.alert):
        return ()
    return (Evidence(at=at, token=amendment.event.token, kind=kind, body=amendment.evidence),)


def _kind(amendment: Amendment, effect: Effect, decision: Decision, rules: Rules) -> str:
    """Say which kind of evidence it would be."""
    if decision.verdict != "contradicted":
        return LATE_SUCCESS
    return OTHER_RESULT if _is_no_second(amendment, effect, rules) else amendment.event.name


def _is_taken(decision: Decision) -> bool:
    return decision.verdict in ("done", "repeated")


def _answer(decision: Decision, effect: Effect, rules: Rules, at: Instant) -> ReportOutcome:
    after = msgspec.structs.replace(effect, life=decision.life)
    if _is_taken(decision):
        return Settled(effect=after, at=at)
    if effect.expired_at is not None and decision.verdict in ("lease_lost", "not_possible"):
        return expired(effect)
    return refusal(decision.verdict, after, rules, at)


def not_found(key: Key) -> Refused:
    """Say that no effect has the key."""
    return Refused(code="not-found", detail=f"No effect has the key {key.hex()}.")
