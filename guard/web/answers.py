"""Effects as answers: from what the service says to the wire structs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypedDict, assert_never

import msgspec

from guard.core import lease as leases
from guard.core.arguments import arguments_of
from guard.core.effects import SECOND, Attempt, Effect, Evidence, Instant
from guard.core.keys import downstream_key
from guard.core.tools import Tool
from guard.ports.probes import ProbeState
from guard.service.outcomes import (
    Awaiting,
    BeginOutcome,
    Granted,
    Refused,
    Replayed,
    ReportOutcome,
    Settled,
    Stubbed,
)
from guard.service.use_cases import Shown
from guard.web import problems
from guard.web.answer import Answer, json_answer
from guard.web.instants import rfc3339, rfc3339_or_none, seconds_between
from guard.web.wire import wire_key
from twiceshy_contract.effects import (
    AttemptView,
    AwaitAnswer,
    Drift,
    EffectAnswer,
    EffectSummary,
    EffectView,
    EvidenceView,
    ExecuteAnswer,
    Outcome,
    RepeatOf,
    ReplayAnswer,
    SharedFrom,
    StubAnswer,
)
from twiceshy_contract.names import KeyRule, PublicState
from twiceshy_contract.probes import ProbeView
from twiceshy_contract.tools import ToolView
from twiceshy_contract.wire import REPLAYED_HEADER, EffectKey

_REPLAYED: Final[Mapping[str, str]] = MappingProxyType({REPLAYED_HEADER: "true"})


class Common(TypedDict):
    """What every answer about one effect carries."""

    key: EffectKey
    state: PublicState
    tool: str
    tool_version: int
    run: str | None
    step: int | None
    occurrence: int
    generation: int
    fence: int


class _Line(TypedDict):
    """What a listing shows besides."""

    rule: KeyRule
    business_key: str | None
    began_at: str
    ended_at: str | None
    lease_expires_at: str | None
    worker: str | None
    closed: bool
    expired_at: str | None


def begun(outcome: BeginOutcome) -> Answer:
    """Answer a begin."""
    match outcome:
        case Granted():
            return execute(outcome)
        case Replayed():
            return replay(outcome)
        case Stubbed():
            return stub(outcome)
        case Awaiting():
            return await_approval(outcome)
        case Refused():
            return problems.refused(outcome)
    assert_never(outcome)


def reported(outcome: ReportOutcome) -> Answer:
    """Answer a report, a renewal, a release or a resolution."""
    match outcome:
        case Settled():
            return settled(outcome)
        case Refused():
            return problems.refused(outcome)
    assert_never(outcome)


def execute(granted: Granted) -> Answer:
    """Answer 201: the caller holds the lease."""
    effect = granted.effect
    attempt = _latest(effect)
    return json_answer(
        ExecuteAnswer(
            **common(effect),
            attempt=granted.token,
            arguments=granted.arguments,
            downstream_key=downstream_key(effect.intent.key, effect.life.epoch),
            lease_expires_at=rfc3339(attempt.deadline),
            lease_seconds=granted.lease / SECOND,
            lease_seconds_left=seconds_between(granted.at, attempt.deadline),
        ),
        status=201,
        said="execute",
    )


def replay(replayed: Replayed) -> Answer:
    """Answer 200 with the record, marked; one that was asked before is not written again."""
    record = replayed.record
    if record is None:
        return _replay(replayed)
    if record.answer is None:
        record.answer = _replay(replayed).body
    return Answer(200, record.answer, "replay", headers=_REPLAYED)


def _replay(replayed: Replayed) -> Answer:
    effect = replayed.effect
    return json_answer(
        ReplayAnswer(
            **common(effect),
            outcome=_outcome(effect) or Outcome(result=None),
            committed_at=rfc3339(effect.life.ended_at or Instant(0)),
            repeat_of=RepeatOf(run=effect.intent.run, step=effect.intent.step),
            drift=Drift(content=replayed.drift) if replayed.drift else None,
            shared=SharedFrom(run=effect.intent.run) if replayed.is_shared else None,
            said=_said(effect),
        ),
        said="replay",
        headers=_REPLAYED,
    )


def stub(stubbed: Stubbed) -> Answer:
    """Answer 200 with an outcome in the place of the tool's."""
    return json_answer(
        StubAnswer(
            tool=stubbed.tool,
            tool_version=stubbed.tool_version,
            run=stubbed.run,
            outcome=msgspec.json.decode(stubbed.outcome, type=Outcome),
            provenance=stubbed.provenance,
            rule=stubbed.rule,
            origin=None if stubbed.origin is None else wire_key(stubbed.origin),
            drift=Drift(content=stubbed.drift) if stubbed.drift else None,
        ),
        said="stub",
    )


def await_approval(awaiting: Awaiting) -> Answer:
    """Answer 202: a person must decide."""
    return json_answer(
        AwaitAnswer(
            **common(awaiting.effect),
            approval=awaiting.approval,
            summary=awaiting.summary,
            quorum=awaiting.quorum,
            expires_at=rfc3339_or_none(awaiting.expires_at),
        ),
        status=202,
        said="await_approval",
    )


def _said(effect: Effect) -> str:
    """Say to a model that what it asks for has happened."""
    intent, life = effect.intent, effect.life
    where = "" if intent.step is None else f" at step {intent.step}"
    whose = "" if intent.run is None else f" of run {intent.run}"
    done = "done" if life.state == "succeeded" else "refused"
    return f"{done}{where}{whose}, {rfc3339(life.ended_at or Instant(0))}"


def settled(answer: Settled) -> Answer:
    """Answer 200 with the effect as it stands."""
    effect, latest = answer.effect, answer.effect.life.latest
    holds = latest if effect.life.state == "executing" else None
    retry_at = effect.life.retry_at if effect.life.state == "pending" else None
    return json_answer(
        EffectAnswer(
            **common(effect),
            outcome=_outcome(effect),
            committed_at=rfc3339_or_none(effect.life.ended_at),
            lease_expires_at=rfc3339(holds.deadline) if holds else None,
            lease_seconds_left=seconds_between(answer.at, holds.deadline) if holds else None,
            retry_after_seconds=seconds_between(answer.at, retry_at) if retry_at else None,
        ),
        said=effect.life.state,
    )


def summary(effect: Effect) -> EffectSummary:
    """Return an effect as a line of a listing."""
    return EffectSummary(**common(effect), **_line(effect))


def view(shown: Shown) -> EffectView:
    """Return an effect with everything that is known of it."""
    effect = shown.effect
    life, intent = effect.life, effect.intent
    is_open = life.state in ("in_doubt", "pending")
    return EffectView(
        **common(effect),
        **_line(effect),
        as_of=rfc3339(shown.at),
        caller_step=intent.caller_step,
        arguments=arguments_of(intent.arguments),
        outcome=_outcome(effect),
        downstream_key=downstream_key(intent.key, life.epoch),
        retry_at=rfc3339_or_none(life.retry_at),
        settles_at=rfc3339_or_none(leases.settles_at(life, shown.rules)) if is_open else None,
        resolution=effect.resolution,
        attempts=tuple(_attempt(attempt) for attempt in life.attempts),
        evidence=tuple(_evidence(proof) for proof in shown.evidence),
        probe=None if shown.probe is None else _probe(shown.probe),
        messages=shown.messages,
    )


def tool_view(tool: Tool) -> ToolView:
    """Return one version of a tool."""
    return ToolView(
        name=tool.name,
        version=tool.version,
        digest=tool.digest.hex(),
        declared_at=rfc3339(tool.declared_at),
        declaration=tool.declaration,
    )


def common(effect: Effect) -> Common:
    """Return what every answer about one effect carries."""
    intent = effect.intent
    return {
        "key": wire_key(intent.key),
        "state": effect.life.state,
        "tool": intent.tool,
        "tool_version": intent.tool_version,
        "run": intent.run,
        "step": intent.step,
        "occurrence": intent.occurrence,
        "generation": intent.generation,
        "fence": effect.life.fence,
    }


def _line(effect: Effect) -> _Line:
    intent, life = effect.intent, effect.life
    latest = life.latest if life.state == "executing" else None
    return {
        "rule": intent.rule,
        "business_key": intent.business_key,
        "began_at": rfc3339(intent.began_at),
        "ended_at": rfc3339_or_none(life.ended_at),
        "lease_expires_at": rfc3339(latest.deadline) if latest else None,
        "worker": intent.worker,
        "closed": life.closed,
        "expired_at": rfc3339_or_none(effect.expired_at),
    }


def _latest(effect: Effect) -> Attempt:
    """Return the attempt that holds the lease of an effect which was just granted."""
    return effect.life.attempts[-1]


def _outcome(effect: Effect) -> Outcome | None:
    return None if effect.outcome is None else msgspec.json.decode(effect.outcome, type=Outcome)


def _attempt(attempt: Attempt) -> AttemptView:
    return AttemptView(
        fence=attempt.fence,
        granted_at=rfc3339(attempt.granted_at),
        deadline=rfc3339(attempt.deadline),
        report=attempt.report,
        reported_at=rfc3339_or_none(attempt.reported_at),
        settled=attempt.settled,
    )


def _probe(state: ProbeState) -> ProbeView:
    return ProbeView(tries=state.tries, next_at=rfc3339(state.next_at), said=state.said)


def _evidence(proof: Evidence) -> EvidenceView:
    return EvidenceView(
        at=rfc3339(proof.at), attempt=proof.token, kind=proof.kind, body=msgspec.json.decode(proof.body)
    )
