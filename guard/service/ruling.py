"""What a begin hears of an effect that is there: the pure rules put to a call, and the write that must hold first."""

from collections.abc import Callable
from typing import assert_never

import msgspec

from guard.core.admission import Expired, NextGeneration, OtherArguments, OtherTool, admit, has_drifted
from guard.core.arguments import arguments_of
from guard.core.effects import NEVER_GRANTED, AttemptToken, Duration, Effect, Instant, Intent, seconds
from guard.core.lifecycle import Decision, decide, touch
from guard.core.situation import Event
from guard.ports.steps import HoldGone, Overruled, Replace, RunClosed, Sibling, Written
from guard.service.naming import NamedCall
from guard.service.outcomes import Awaiting, BeginOutcome, Granted, Refused, Replayed, Stubbed
from guard.service.verdicts import expired, refusal
from twiceshy_contract.redaction import marks, missing, restored


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What a begin hears of an effect that exists, and the write that must hold first (None: nothing to write)."""

    outcome: BeginOutcome
    planned: Replace | None = None


def rule(call: NamedCall, effect: Effect, event: Event, now: Instant) -> Ruling | None:
    """Rule on a begin whose key names an effect. None: its arguments belong to the slot's next generation."""
    event = standing_event(call, event, now)
    admission = admit(call.as_read_now(effect), call.compared, event, call.rules_for(effect), now)
    match admission:
        case NextGeneration():
            return None
        case Expired():
            return Ruling(outcome=expired(effect))
        case OtherTool():
            return Ruling(outcome=_other_tool(call, effect))
        case OtherArguments():
            return Ruling(outcome=_other_arguments(call, effect))
        case Decision():
            return _carry_out(call, effect, admission, event, now)
    assert_never(admission)


def standing_event(call: NamedCall, event: Event, now: Instant) -> Event:
    """Return the event with how the approval that the call needs stands by now."""
    if call.approval is None:
        return event
    return msgspec.structs.replace(event, approval=call.approval.standing_at(now))


def rule_on_new(call: NamedCall, event: Event, now: Instant) -> Ruling:
    """Rule on a begin whose effect does not exist yet and may not simply be made."""
    event = standing_event(call, event, now)
    decision = decide(None, event, call.rules, now)
    return _carry_out(call, Effect(version=0, intent=call.intent(call.start), life=decision.life), decision, event, now)


def _carry_out(call: NamedCall, effect: Effect, decision: Decision, event: Event, now: Instant) -> Ruling:
    after = msgspec.structs.replace(effect, life=decision.life)
    outcome: BeginOutcome
    is_new_try = decision.life.fence > (effect.life.fence if effect.version else NEVER_GRANTED)
    if decision.verdict == "granted":
        is_recorded = bool(decision.life.unresolved(besides=event.token)) or _is_regranted(decision, effect, call)
        if not is_recorded:
            after = msgspec.structs.replace(after, intent=_with_arguments(effect.intent, call))
        if call.approval is not None and (call.approval.edited is not None or not is_recorded):
            after = msgspec.structs.replace(after, edited=call.approval.edited)
        arguments = _to_run(after, call, is_recorded=is_recorded)
        if isinstance(arguments, Refused):
            return Ruling(outcome=arguments)
        token = AttemptToken(call.request.attempt)
        lease = lease_of(call)
        outcome = Granted(effect=after, token=token, at=now, lease=lease, arguments=arguments, is_new=is_new_try)
    elif decision.verdict == "replay":
        outcome = Replayed(effect=effect, drift=_drift(call, effect), is_shared=call.is_of_another_run(effect))
    elif decision.verdict == "await_approval" and call.approval is not None:
        asked = call.approval
        outcome = Awaiting(
            effect=after,
            approval=asked.id,
            summary=asked.summary,
            quorum=asked.quorum,
            expires_at=asked.expires_at,
        )
    else:
        outcome = refusal(decision.verdict, after, call.rules, now)
        if call.is_of_another_run(effect):
            outcome = msgspec.structs.replace(outcome, detail=f"{outcome.detail} {_whose(effect)}")
    if after == effect and effect.version:
        return Ruling(outcome=outcome)
    must_be_open = is_new_try or not effect.version
    is_first_try = must_be_open and (not effect.version or effect.life.fence == NEVER_GRANTED)
    planned = Replace(
        seen=effect.version,
        effect=after,
        open_run=call.run_id if must_be_open else None,
        hold=call.hold if is_new_try else None,
        alone=is_first_try and call.needs_alone,
        consent=call.consent if is_new_try else None,
    )
    return Ruling(outcome=outcome, planned=planned)


def _whose(effect: Effect) -> str:
    return "It is of no run." if effect.intent.run is None else f"It is of run {effect.intent.run!r}."


def _to_run(effect: Effect, call: NamedCall, *, is_recorded: bool) -> dict[str, object] | Refused | None:
    """Return the arguments to run in the place of the caller's: those that were approved, or may have been sent.

    What was not stored of them is the caller's. Refused where the caller has nothing at such a place.
    """
    text = effect.intent.arguments if is_recorded else None
    if effect.edited is not None:
        text = effect.edited
    if text is None:
        return None
    recorded = arguments_of(text)
    paths = tuple(f"/arguments{path}" for path in missing(recorded, call.request.arguments))
    if not paths:
        return restored(recorded, call.request.arguments)
    return Refused(
        code="arguments-changed",
        detail=f"An earlier attempt of tool {effect.intent.tool!r} may have sent, so its arguments must be run again; "
        f"they are not stored at {', '.join(paths)}, and this call has nothing there.",
        effect=effect,
        paths=paths,
    )


def lease_of(call: NamedCall) -> Duration:
    """Return the lease that the call asks for, or the tool's."""
    asked = call.request.lease_seconds
    return call.rules.lease if asked is None else seconds(asked)


def _is_regranted(decision: Decision, effect: Effect, call: NamedCall) -> bool:
    """Say whether the attempt's own lease came back while the record holds other content than it sends now."""
    is_regrant = decision.row is not None and decision.row.act == "regrant"
    return is_regrant and has_drifted(call.as_read_now(effect), call.compared)


def _with_arguments(intent: Intent, call: NamedCall) -> Intent:
    """Take over what the new attempt will run; nothing of the old was applied."""
    fresh = call.intent(rank=1)
    return msgspec.structs.replace(
        intent,
        arguments=fresh.arguments,
        identity_digest=fresh.identity_digest,
        arguments_digest=fresh.arguments_digest,
        tool_version=fresh.tool_version,
        worker=fresh.worker,
    )


def _drift(call: NamedCall, effect: Effect) -> tuple[str, ...]:
    if not has_drifted(call.as_read_now(effect), call.compared):
        return ()
    return differing(call.named_by.reader.differing_content, effect, call)


def differing(
    compare: Callable[[dict[str, object], dict[str, object]], tuple[str, ...]], effect: Effect, call: NamedCall
) -> tuple[str, ...]:
    """Name the places where a call differs from the record; where nothing else does, what is redacted must."""
    recorded, current = arguments_of(effect.intent.arguments), call.request.arguments
    return compare(restored(recorded, current), current) or marks(recorded)


def as_written(outcome: BeginOutcome, written: Written) -> BeginOutcome:
    """Return the outcome with the effect as the store wrote it."""
    match outcome:
        case Granted():
            return msgspec.structs.replace(outcome, effect=written.effect, at=written.at)
        case Replayed() | Refused() | Awaiting():
            return msgspec.structs.replace(outcome, effect=written.effect)
        case Stubbed():
            return outcome
    assert_never(outcome)


def barred(call: NamedCall, found: RunClosed | Sibling | HoldGone | Overruled) -> Refused:
    """Say what keeps the store from making the effect, or from granting its lease."""
    match found:
        case RunClosed():
            return Refused(
                code="run-finished",
                detail=f"Run {call.request.run!r} is finished; tool {call.request.tool!r} was not begun.",
            )
        case Sibling(effect=sibling, at=at):
            judged = msgspec.structs.replace(sibling, life=touch(sibling.life, call.rules, at))
            return Refused(
                code="sibling-in-doubt",
                detail=f"Tool {call.request.tool!r} was not begun: its effect {sibling.intent.key.hex()} in this run, "
                "with other arguments, may or may not have happened, and nobody has declared which arguments name a "
                "call.",
                effect=judged,
            )
        case HoldGone():
            return Refused(
                code="hold-lost",
                detail=f"Tool {call.request.tool!r} was not begun: the hold of its resource was taken over by a higher "
                "priority, or has run out.",
            )
        case Overruled():
            return Refused(
                code="retry-later",
                detail=f"Tool {call.request.tool!r} was not begun: a person has spoken meanwhile. Begin again.",
                retry_after=0.0,
            )
    assert_never(found)


def _other_tool(call: NamedCall, effect: Effect) -> Refused:
    return Refused(
        code="key-used-by-another-tool",
        detail=f"Business key {call.request.business_key!r} belongs to tool {effect.intent.tool!r}; "
        f"tool {call.request.tool!r} was not begun.",
        effect=effect,
    )


def _other_arguments(call: NamedCall, effect: Effect) -> Refused:
    request = call.request
    named_by = f"Step {request.step!r}" if call.rule == "step" else f"Business key {request.business_key!r}"
    said = f"{named_by} of tool {effect.intent.tool!r} was begun with other arguments"
    if effect.expired_at is not None:
        return Refused(code="arguments-changed", detail=f"{said}, whose record has expired.", effect=effect)
    paths = tuple(f"/arguments{path}" for path in differing(call.named_by.reader.differing_identity, effect, call))
    return Refused(
        code="arguments-changed",
        detail=f"{said}; they differ at {', '.join(paths)}.",
        effect=effect,
        paths=paths,
    )
