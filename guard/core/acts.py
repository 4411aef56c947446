"""What a row of the table does to an effect's life. Each act returns the life anew; the row sets the state."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec.structs import replace

from guard.core import lease as leases
from guard.core.effects import NEVER_GRANTED, Attempt, Fence, Instant, Life
from guard.core.situation import REPORTS, Situation

Act = Literal[
    "grant",
    "regrant",
    "finish",
    "reject",
    "retry",
    "doubt",
    "note",
    "lapse",
    "unwind",
    "settle",
    "close",
    "end",
    "reopen",
    "nothing",
]

MAX_NEVER_GRANTED: Final = 64
"""Tokens that ended before they were granted a lease, which an effect remembers; then the oldest is forgotten."""


def _grant(s: Situation) -> Life:
    """Give the event's token the lease, under the next fence."""
    life = s.life
    fence = Fence(life.fence + 1)
    attempt = Attempt(token=s.token, fence=fence, granted_at=s.now, deadline=leases.deadline(s.now, s.lease))
    return replace(
        life,
        fence=fence,
        attempts=(*life.attempts, attempt),
        tries=1 if s.event.reopen else life.tries + 1,
        retry_at=None,
        closed=False,
        epoch_since=s.now if life.epoch_since is None else life.epoch_since,
    )


def _regrant(s: Situation) -> Life:
    """Move the deadline of the attempt's own lease; never back."""
    attempt = s.known_attempt
    later = Instant(max(attempt.deadline, leases.deadline(s.now, s.lease)))
    return replace(_with(s.life, replace(attempt, deadline=later)), closed=False, retry_at=None)


def _finish(s: Situation) -> Life:
    """Record success; word from outside settles the attempts that it speaks for."""
    life = _note(s) if s.event.token is not None else _settled(s.life)
    return replace(life, ended_at=s.now, closed=False, retry_at=None)


def _reject(s: Situation) -> Life:
    return replace(_note(s), ended_at=s.now, closed=False, retry_at=None)


def _retry(s: Situation) -> Life:
    """Nothing was applied: wait, no shorter than was asked for before, then try under a new downstream key."""
    retry_at = Instant(max(_retry_at(s), s.life.retry_at or 0))
    return replace(_note(s), retry_at=retry_at, epoch=s.life.epoch + 1, epoch_since=None, closed=False)


def _retry_at(s: Situation) -> Instant:
    """Return when to try again: after the time that was asked for, else after a backoff."""
    wait = s.event.retry_after
    return leases.retry_at(s.now, s.life.tries, s.rules, s.event.jitter) if wait is None else Instant(s.now + wait)


def _note(s: Situation) -> Life:
    """Write down what an attempt says of itself; a token that was never granted a lease is remembered as ended."""
    life, token = s.life, s.event.token
    if token is None:
        return life
    attempt = life.attempt(token)
    report = REPORTS.get(s.event.name, "none")
    if attempt is None:
        ended = Attempt(
            token=token,
            fence=NEVER_GRANTED,
            granted_at=s.now,
            deadline=s.now,
            report=report,
            reported_at=s.now,
        )
        never_granted = [a for a in life.attempts if a.fence == NEVER_GRANTED][: MAX_NEVER_GRANTED - 1]
        granted = [a for a in life.attempts if a.fence > NEVER_GRANTED]
        return replace(life, attempts=(ended, *never_granted, *granted))
    if report == "none" or (attempt.is_ended and report != "succeeded"):
        return life
    return _with(life, replace(attempt, report=report, reported_at=s.now))


def _lapse(s: Situation) -> Life:
    """An idempotent effect may simply be tried again: after a backoff when it said so, at once when it is silent."""
    life = _note(s)
    return life if s.event.name == "deadline" else replace(life, retry_at=_retry_at(s))


def _unwind(s: Situation) -> Life:
    """The lease was never used: it does not count as a try."""
    return replace(_note(s), tries=max(s.life.tries - 1, 0), retry_at=None, closed=False)


def _settle(s: Situation) -> Life:
    """It is settled that nothing was applied: the effect is open again, under a new downstream key."""
    return replace(_settled(s.life), tries=0, retry_at=None, epoch=s.life.epoch + 1, epoch_since=None, closed=False)


def _close(s: Situation) -> Life:
    return replace(s.life, closed=True)


def _end(s: Situation) -> Life:
    """Nothing was applied and nothing will be: someone has decided so."""
    return replace(s.life, ended_at=s.now, closed=False, retry_at=None)


def _reopen(s: Situation) -> Life:
    """Let the effect be tried as often again as at first."""
    return replace(s.life, tries=0, retry_at=None)


def _nothing(s: Situation) -> Life:
    return s.life


def _settled(life: Life) -> Life:
    return replace(life, attempts=tuple(replace(a, settled=a.settled or a.is_unresolved) for a in life.attempts))


def _with(life: Life, attempt: Attempt) -> Life:
    return replace(life, attempts=tuple(attempt if a.token == attempt.token else a for a in life.attempts))


ACTS: Final[Mapping[Act, Callable[[Situation], Life]]] = MappingProxyType(
    {
        "grant": _grant,
        "regrant": _regrant,
        "finish": _finish,
        "reject": _reject,
        "retry": _retry,
        "doubt": _note,
        "note": _note,
        "lapse": _lapse,
        "unwind": _unwind,
        "settle": _settle,
        "close": _close,
        "end": _end,
        "reopen": _reopen,
        "nothing": _nothing,
    }
)
