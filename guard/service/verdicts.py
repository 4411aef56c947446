"""What a verdict of the state machine means to a caller: which problem, in which words."""

from typing import assert_never

from guard.core import lease as leases
from guard.core.effects import SECOND, Effect, Instant
from guard.core.lease import Rules
from guard.core.lifecycle import Verdict
from guard.service.outcomes import Refused


def refusal(verdict: Verdict, effect: Effect, rules: Rules, now: Instant) -> Refused:  # noqa: C901, PLR0911
    """Put a verdict that is not a success into words."""
    name = f"Effect {effect.intent.key.hex()[:16]}… of tool {effect.intent.tool!r}"
    latest = effect.life.latest
    match verdict:
        case "in_progress":
            left = _seconds(latest.deadline - now) if latest else 0.0
            holder = f" by {effect.intent.worker}" if effect.intent.worker else ""
            return Refused(
                code="in-progress",
                detail=f"{name} is being executed{holder} under fence {effect.life.fence}; "
                f"its lease ends in {left:g} s.",
                effect=effect,
                retry_after=min(left, 1.0),
            )
        case "retry_later":
            wait = _seconds((effect.life.retry_at or now) - now)
            return Refused(
                code="retry-later",
                detail=f"{name} was not applied; attempt {effect.life.tries} of {rules.attempts} failed. "
                f"It may be begun again in {wait:g} s.",
                effect=effect,
                retry_after=wait,
            )
        case "exhausted":
            return Refused(
                code="attempts-exhausted",
                detail=f"{name} was tried {effect.life.tries} times of {rules.attempts}, "
                "and no attempt said that it was applied.",
                effect=effect,
            )
        case "in_doubt":
            return Refused(
                code="outcome-in-doubt",
                detail=f"{name} may or may not have happened: attempt {effect.life.fence} ended without word. "
                f"Find out, then POST /v1/effects/{effect.intent.key.hex()}/resolve.",
                effect=effect,
            )
        case "await_approval":
            return Refused(
                code="not-possible", detail=f"{name} waits for an approval that is not known.", effect=effect
            )
        case "approval_expired":
            return Refused(
                code="approval-expired",
                detail=f"{name} was not approved before its deadline, and not denied either.",
                effect=effect,
            )
        case "lease_lost":
            return Refused(
                code="lease-lost",
                detail=f"The attempt does not hold the lease of {name[0].lower()}{name[1:]}, "
                f"which is {effect.life.state} under fence {effect.life.fence}.",
                effect=effect,
            )
        case "superseded" | "contradicted":
            return Refused(
                code="superseded",
                detail=f"{name} is {effect.life.state} already; this attempt can write nothing more."
                + (" What you report contradicts that and was kept as evidence." if verdict == "contradicted" else ""),
                effect=effect,
            )
        case "unsettled":
            at = leases.settles_at(effect.life, rules) or now
            return Refused(
                code="not-possible",
                detail=f"{name} cannot be settled as not applied yet: a request may still be on its way to the "
                f"provider. Ask the provider again in {_seconds(at - now):g} s, then settle.",
                effect=effect,
                retry_after=_seconds(at - now),
            )
        case "changed_since":
            return Refused(
                code="changed-since",
                detail=f"{name} has fence {effect.life.fence} and is {effect.life.state}; you looked at another fence.",
                effect=effect,
            )
        case "not_possible" | "granted" | "done" | "repeated" | "replay":
            return Refused(
                code="not-possible", detail=f"{name} is {effect.life.state}: this cannot be done to it.", effect=effect
            )
    assert_never(verdict)


def expired(effect: Effect) -> Refused:
    """Say that only a tombstone is left of an effect."""
    return Refused(
        code="expired",
        detail=f"Effect {effect.intent.key.hex()[:16]}… of tool {effect.intent.tool!r} is {effect.life.state}; its "
        "record was kept as long as its tool's retention says.",
        effect=effect,
    )


def _seconds(microseconds: int) -> float:
    return round(max(microseconds, 0) / SECOND, 3)


def nothing_to_release(tool: str) -> Refused:
    """Say that a fork's call is not let run, and so can hold no lease."""
    return Refused(
        code="not-possible", detail=f"The fork does not let this call of tool {tool!r} run: it can hold no lease."
    )


def only_reads(tool: str) -> Refused:
    """Say that a tool takes no lease."""
    return Refused(
        code="not-possible",
        detail=f"Tool {tool!r} is declared as `read`: it changes nothing and takes no lease. "
        "Run it without a begin, or declare it as `idempotent` or `side_effect`.",
    )
