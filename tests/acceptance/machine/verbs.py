"""What the text says of each verb on an effect that exists: begin, reports, release, and what an operator does.

Each takes the oracle's effect through one event and returns the word that the service must answer with.
"""

from dataclasses import dataclass
from typing import Final, Literal

from tests.acceptance.machine.oracle import UNDECLARED, Attempt, Effect, Version, Word

ERROR: Final = {"type": "Declined", "message": "no funds"}
CANCELLED: Final = {"type": "Cancelled", "message": "asked"}
UNTOLD: Final = "a result that nobody gave"
"""Stands for the opaque result of an effect that was settled as applied without one."""

FailKind = Literal["not_applied", "rejected", "unknown"]
Settlement = Literal["applied", "not_applied", "closed"]
Reconsidered = Literal["cancel", "reopen"]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A begin under the version of its run. `delivers` names effects whose outcomes are known.

    What the service answered, the word `said` and the key that is `shown`, is looked at only where it chose: it draws
    a time, or shows one of several effects in doubt.
    """

    token: str
    arguments: dict[str, object]
    lease: int
    now: int
    version: Version = UNDECLARED
    reopen: bool = False
    delivers: frozenset[str] = frozenset()
    said: Word = ""
    shown: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an attempt says, under the fence that it names."""

    token: str
    fence: int
    now: int

    def speaker(self, effect: Effect) -> Attempt | None:
        """Return the attempt that says it, if there is one with this fence."""
        attempt = effect.attempts.get(self.token)
        return attempt if attempt is not None and attempt.fence == self.fence > 0 else None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an operator says after looking at a fence; `as_of` is the moment as of which the word holds."""

    settlement: Settlement
    fence: int
    result: object
    now: int
    as_of: int


def begin(effect: Effect, ask: Ask) -> Word:
    """Ask for the lease."""
    effect.touch(ask.now)
    if effect.is_final:
        return "replay"
    mine = effect.attempts.get(ask.token)
    if mine is not None:
        return _begin_again(effect, mine, ask)
    if effect.state == "executing":
        return "in-progress"
    return _begin_pending(effect, ask) if effect.state == "pending" else _begin_in_doubt(effect, ask)


def _begin_again(effect: Effect, mine: Attempt, ask: Ask) -> Word:
    """An attempt that asks again gets its own grant again while it has not ended and nobody took over."""
    if mine.is_ended or mine is not effect.latest:
        return "lease-lost"
    if not effect.renew_lease(mine, ask.lease, ask.now, ask.version):
        return "lease-lost"
    if not effect.unresolved(besides=mine) and effect.arguments == ask.arguments:
        effect.version = ask.version
    return "execute"


def _begin_pending(effect: Effect, ask: Ask) -> Word:
    """Whoever reopens waits for nothing. A raised class finds the doubt that was harmless before."""
    if effect.is_exhausted and not ask.reopen:
        return "attempts-exhausted"
    is_drawn = effect.retry_from <= ask.now < effect.retry_until and ask.said == "retry-later"
    if not ask.reopen and (ask.now < effect.retry_from or is_drawn):
        return "retry-later"
    if effect.unresolved() and not effect.may_run_beside(ask.lease, ask.now, ask.version):
        effect.state = "in_doubt"
        return "outcome-in-doubt"
    return _grant(effect, ask)


def _begin_in_doubt(effect: Effect, ask: Ask) -> Word:
    """Only what is harmless, or a provider that answers from its record, may be asked again."""
    has_tries = ask.reopen or not effect.is_exhausted
    if not effect.may_run_beside(ask.lease, ask.now, ask.version) or not has_tries:
        return "outcome-in-doubt"
    return _grant(effect, ask)


def _grant(effect: Effect, ask: Ask) -> Word:
    """Recorded arguments stay where an earlier attempt may have sent them."""
    if not effect.unresolved():
        effect.arguments, effect.version = ask.arguments, ask.version
    effect.tries = 0 if ask.reopen else effect.tries
    effect.grant(ask.token, ask.lease, ask.now)
    return "execute"


def commit(effect: Effect, report: Report, result: object) -> Word:
    """A success is proof, whoever brings it; one beside it is evidence, unless it confirms the record harmlessly."""
    effect.touch(report.now)
    speaker = report.speaker(effect)
    if speaker is None:
        return "lease-lost"
    outcome = {"result": result}
    if effect.is_final:
        is_no_other = effect.state == "succeeded" and not effect.may_happen_twice(speaker)
        if effect.outcome == outcome and (is_no_other or effect.committed_by == speaker.token):
            return "ok"
        effect.evidence.append(("other_result" if is_no_other else "success", outcome))
        return "superseded"
    if effect.may_have_happened_twice(speaker):
        effect.evidence.append(("late_success", None))
    speaker.report, speaker.reported_at = "succeeded", report.now
    effect.end("succeeded", outcome, speaker.token)
    return "ok"


def fail(effect: Effect, report: Report, kind: FailKind, retry_after: int | None = None) -> Word:
    """What an attempt says of itself counts for itself; the effect follows if no other attempt is unresolved."""
    effect.touch(report.now)
    speaker = report.speaker(effect)
    if speaker is None:
        return "lease-lost"
    if effect.is_final:
        return "ok" if effect.state == "failed" and speaker.report == kind == "rejected" else "superseded"
    if speaker.report == kind:
        return "ok"
    if speaker.is_ended:
        return "not-possible"
    speaker.report, speaker.reported_at = kind, report.now
    pause = effect.tool.pause(effect.tries)
    wait = (report.now, report.now + pause) if retry_after is None else (report.now + retry_after,) * 2
    match effect.state:
        case "executing" if speaker is effect.latest:
            _end_lease(effect, kind, wait)
        case "in_doubt" if not effect.unresolved():
            _settle_own(effect, kind, wait)
        case "pending" if not effect.unresolved():
            _settle_own(effect, kind, (max(wait[0], effect.retry_from), max(wait[1], effect.retry_until)))
    return "ok"


def _end_lease(effect: Effect, kind: FailKind, wait: tuple[int, int]) -> None:
    """The holder lets go: an idempotent tool's doubt is harmless, and so is one's word beside a silent attempt."""
    is_harmless = effect.class_ == "idempotent"
    if kind == "unknown" and is_harmless:
        effect.wait_until(*wait)
    elif kind == "unknown" or (effect.unresolved() and not is_harmless):
        effect.state = "in_doubt"
    elif kind == "not_applied" and effect.unresolved():
        effect.wait_until(*wait)
    else:
        _settle_own(effect, kind, wait)


def _settle_own(effect: Effect, kind: FailKind, wait: tuple[int, int]) -> None:
    if kind == "rejected":
        effect.end("failed", {"error": ERROR}, None)
    else:
        effect.clear(*wait)


def renew(effect: Effect, report: Report, lease: int) -> Word:
    """The latest attempt may go on while it has not ended and nobody took over."""
    effect.touch(report.now)
    speaker = report.speaker(effect)
    if speaker is None:
        return "lease-lost"
    if effect.is_final:
        return "superseded"
    if speaker is not effect.latest or speaker.is_ended:
        return "lease-lost"
    return "ok" if effect.renew_lease(speaker, lease, report.now) else "lease-lost"


def release(effect: Effect, token: str, now: int) -> Word:
    """The attempt never started: its token is ended, and a try that ends so does not count."""
    effect.touch(now)
    mine = effect.attempts.setdefault(token, Attempt(token=token))
    if mine.is_ended or (effect.is_final and mine.fence > 0):
        return "ok"
    mine.report, mine.reported_at = "released", now
    if mine.fence == 0 or effect.state == "pending":
        return "ok"
    if effect.state == "executing" and mine is not effect.latest:
        return "ok"
    if effect.unresolved():
        is_harmless = effect.class_ == "idempotent" and effect.state == "executing"
        effect.state = "pending" if is_harmless else "in_doubt"
    if effect.state == "pending" or not effect.unresolved():
        effect.tries = max(effect.tries - 1, 0)
        effect.is_closed = False
        effect.wait_until(now)
    return "ok"


def resolve(effect: Effect, verdict: Verdict) -> Word:
    """An operator settles doubt; said twice, it is taken once."""
    effect.touch(verdict.now)
    said = (verdict.settlement, verdict.fence, verdict.result if verdict.settlement == "applied" else None)
    is_undone = verdict.settlement == "closed" and not effect.is_closed
    if said == effect.resolution and verdict.fence == effect.fence and not is_undone:
        return "ok"
    if effect.is_final:
        return _resolve_final(effect, verdict)
    if effect.state == "executing" or (effect.state == "pending" and verdict.settlement == "closed"):
        return "not-possible"
    if verdict.fence != effect.fence:
        return "changed-since"
    word = _settle(effect, verdict)
    effect.resolution = said if word == "ok" else effect.resolution
    return word


def _resolve_final(effect: Effect, verdict: Verdict) -> Word:
    """What contradicts the record is kept; nothing changes it."""
    contradicted = {"succeeded": "not_applied", "failed": "applied"}[effect.state]
    if verdict.settlement != contradicted:
        return "not-possible"
    effect.evidence.append((f"found_{contradicted}", None))
    return "superseded"


def _settle(effect: Effect, verdict: Verdict) -> Word:
    if verdict.settlement == "closed":
        effect.is_closed = True
        return "ok"
    if verdict.settlement == "applied":
        if effect.state == "pending" and not effect.unresolved():
            return "not-possible"
        _settle_attempts(effect)
        effect.end("succeeded", {"result": verdict.result}, None)
        return "ok"
    settles_at = effect.settles_at()
    if settles_at is not None and min(verdict.now, verdict.as_of) < settles_at:
        return "not-possible"
    _settle_attempts(effect)
    effect.tries = 0
    effect.clear(verdict.now)
    return "ok"


def reconsider(effect: Effect, verb: Reconsidered, now: int) -> Word:
    """An operator ends what waits, or lets it be tried at once and as often as at first; doubt comes before."""
    effect.touch(now)
    if verb == "cancel" and effect.is_cancelled:
        return "ok"
    if effect.state != "pending" or (verb == "cancel" and effect.unresolved()):
        return "not-possible"
    effect.resolution = verb
    if verb == "cancel":
        effect.is_cancelled = True
        effect.end("failed", {"error": CANCELLED}, None)
    else:
        effect.tries = 0
        effect.wait_until(now)
    return "ok"


def _settle_attempts(effect: Effect) -> None:
    for attempt in effect.unresolved():
        attempt.is_settled = True
