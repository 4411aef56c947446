"""How effects look on a terminal."""

import json
from collections.abc import Sequence

from twiceshy._commands.tables import Cell, moment, print_facts, print_line, print_table, state_of
from twiceshy_contract.effects import AttemptView, EffectSummary, EffectView, EvidenceView, Outcome
from twiceshy_contract.probes import ProbeView


def print_effects(effects: Sequence[EffectSummary], *, is_cut: bool) -> None:
    """Print a listing, keys whole so that they can be copied."""
    if not effects:
        print_line("No effects.")
        return
    print_table(
        ("key", "state", "tool", "run", "step", "began"),
        (
            (effect.key, _state(effect), effect.tool, effect.run, effect.step, moment(effect.began_at))
            for effect in effects
        ),
    )
    if is_cut:
        print_line("There are more: use --limit, --all, --state, --tool or --run.")


def print_effect(effect: EffectView) -> None:
    """Print everything about one effect."""
    print_facts(_facts(effect))
    _print_attempts(effect.attempts)
    if effect.messages:
        rows = ((str(message),) for message in effect.messages)
        print_table(("message",), rows, title="Staged (`twiceshy outbox show` tells what became of each)")
    if effect.evidence:
        _print_evidence(effect.evidence)


def _facts(effect: EffectView) -> list[tuple[str, Cell]]:
    return [
        ("key", effect.key),
        ("state", _state(effect)),
        ("tool", f"{effect.tool} (version {effect.tool_version}, fence {effect.fence})"),
        ("run", effect.run),
        ("step", effect.step),
        ("caller's step", effect.caller_step),
        ("business key", effect.business_key),
        ("occurrence", effect.occurrence if effect.occurrence > 1 else None),
        ("generation", effect.generation if effect.generation > 1 else None),
        ("worker", effect.worker),
        ("began", effect.began_at),
        ("ended", effect.ended_at),
        ("record expired", effect.expired_at),
        ("lease until", effect.lease_expires_at),
        ("not before", effect.retry_at),
        ("as of", effect.as_of),
        ("ask the provider after", effect.settles_at),
        ("downstream key", effect.downstream_key),
        *_probe(effect.probe),
        ("resolution", effect.resolution),
        ("arguments", None if effect.expired_at else json.dumps(effect.arguments, ensure_ascii=False)),
        *_outcome(effect.outcome),
    ]


def _probe(probe: ProbeView | None) -> list[tuple[str, Cell]]:
    if probe is None:
        return []
    return [
        ("probe", f"asked {probe.tries} times, next at {moment(probe.next_at)}"),
        ("probe said", probe.said),
    ]


def _outcome(outcome: Outcome | None) -> list[tuple[str, Cell]]:
    if outcome is None:
        return []
    if outcome.failure is not None:
        return [("error", f"{outcome.failure.type}: {outcome.failure.message}")]
    return [("result", json.dumps(outcome.result, ensure_ascii=False))]


def _print_attempts(attempts: Sequence[AttemptView]) -> None:
    rows = (
        (
            attempt.fence, moment(attempt.granted_at), moment(attempt.deadline), attempt.report,
            moment(attempt.reported_at), "yes" if attempt.settled else "no",
        )
        for attempt in attempts
    )  # fmt: skip
    print_table(("fence", "granted", "deadline", "report", "reported", "settled"), rows, title="Attempts")


def _print_evidence(evidence: Sequence[EvidenceView]) -> None:
    rows = (
        (
            moment(piece.at), None if piece.attempt is None else str(piece.attempt), piece.kind,
            json.dumps(piece.body, ensure_ascii=False),
        )
        for piece in evidence
    )  # fmt: skip
    print_table(("at", "attempt", "kind", "body"), rows, title="Evidence")


def _state(effect: EffectSummary) -> Cell:
    return state_of(effect.state, " (closed)" if effect.closed else " (expired)" if effect.expired_at else "")
