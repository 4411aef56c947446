"""What a result means: for its message, and for what is heard of its destination. Pure; randomness is given.

What is unknown is never called failed: it is sent again under the same identity where the receiver can tell, or where
the destination says so, and else it waits for a person. No two messages that fail together come back together.
"""

from typing import Final, Literal, assert_never

import msgspec

from guard.core.effects import Duration, seconds
from guard.ports.relay import Again, Done, Settlement, Stands
from outbox_relay.sinks.base import Delivered, Permanent, Result, Retryable, Unknown
from twiceshy_contract.destinations import Destination

PAUSES: Final = (5.0, 30.0, 120.0, 600.0, 3600.0, 21_600.0, 86_400.0)
"""The longest pause before each next try, in seconds; the last one stays."""
LONGEST: Final = 86_400.0
_SPREAD: Final = 0.25
"""By how much of itself a wish of the receiver is stretched at the most."""
_SPREAD_SECONDS: Final = 5.0
"""By how many seconds it is stretched at the least, where chance will have it: 20 messages are told one time."""
_HELD_SECONDS: Final = 5.0
_NOTE_LENGTH: Final = 1000
_STOPPED: Final = "the relay stopped before an answer came"
WAIT: Final = seconds(5)
"""How long a message waits whose effect may be taken back."""

Outcome = Literal["delivered", "duplicate", "retryable", "permanent", "unknown"]
"""What a try came to, as it is counted; `duplicate`: the receiver had it already."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a sink has tried: its row, its tries of this epoch with this one, and whether it has a lane.

    `repeatable` says whether it may be sent again when nobody knows what became of it.
    """

    id: int
    number: int
    in_lane: bool
    repeatable: bool


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a message, how its try is counted, and what its destination is heard to do.

    `is_repeated`: it is sent again although it may have arrived.
    """

    settlement: Settlement
    outcome: Outcome
    good: int = 0
    bad: int = 0
    unreachable: int = 0
    held_for: Duration | None = None
    is_gone: bool = False
    note: str | None = None
    is_repeated: bool = False


def judge(result: Result, tried: Tried, settings: Destination, jitter: float) -> Judged:
    """Say what a result means. 0 ≤ `jitter` < 1 is chance."""
    match result:
        case Delivered(receipt=receipt, is_duplicate=is_duplicate):
            done = Done(id=tried.id, over="delivered", receipt=printable(receipt))
            return Judged(settlement=done, outcome="duplicate" if is_duplicate else "delivered", good=1)
        case Retryable():
            return _refused_for_now(result, tried, settings, jitter)
        case Permanent(why=why, is_gone=is_gone):
            note = printable(why)
            stands = _stands(tried, settings, "dead", note, "permanent")
            return Judged(settlement=stands, outcome="permanent", good=1, is_gone=is_gone, note=note)
        case Unknown(why=why):
            return _in_doubt(printable(why), tried, settings, jitter)
    assert_never(result)


def stopped(tried: Tried, settings: Destination) -> Judged:
    """Say what becomes of a message whose relay stops before an answer came: of its destination nothing was heard.

    Where it may be sent again no try is spent on it.
    """
    settlement: Settlement = Again(id=tried.id, delay=Duration(0), note=_STOPPED)
    if not tried.repeatable:
        settlement = _stands(tried, settings, "unknown", _STOPPED, "unknown")
    return Judged(settlement=settlement, outcome="unknown", note=_STOPPED, is_repeated=tried.repeatable)


def pause(number: int, jitter: float, retry_after: float | None = None) -> float:
    """Return how many seconds pass before the next try, after `number` tries.

    Chance chooses from the whole pause; a wish of the receiver is met or overdone, and never by all to the same second.
    """
    own = PAUSES[min(number, len(PAUSES)) - 1] * jitter
    return own if retry_after is None else max(own, _stretched(retry_after, jitter))


def printable(text: str) -> str:
    """Return a text that every database takes: of a bounded length, without what is no character."""
    short = text if len(text) <= _NOTE_LENGTH else f"{text[: _NOTE_LENGTH - 1]}…"
    return short.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def _stretched(retry_after: float, jitter: float) -> float:
    wish = min(max(retry_after, 0.0), LONGEST / (1 + _SPREAD))
    return wish + max(wish * _SPREAD, _SPREAD_SECONDS) * jitter


def _refused_for_now(result: Retryable, tried: Tried, settings: Destination, jitter: float) -> Judged:
    """Try again later, unless it was tried too often. A destination that throttles is held, and is not ill for it."""
    note = printable(result.why)
    held = None
    if result.is_throttled:
        held = seconds(_stretched(_HELD_SECONDS if result.retry_after is None else result.retry_after, jitter))
    settlement: Settlement
    if tried.number >= settings.attempts:
        settlement = _stands(tried, settings, "dead", f"tried {_times(tried.number)}, last: {note}", "retryable")
    else:
        delay = seconds(pause(tried.number, jitter, result.retry_after))
        settlement = Again(id=tried.id, delay=delay, note=note, tried="retryable")
    return Judged(
        settlement=settlement,
        outcome="retryable",
        bad=0 if result.is_throttled or result.is_unreachable else 1,
        unreachable=1 if result.is_unreachable else 0,
        held_for=held,
        note=note,
    )


def _in_doubt(note: str, tried: Tried, settings: Destination, jitter: float) -> Judged:
    """Send it again where that may be; one that was tried too often is still not known to be lost."""
    if tried.repeatable and tried.number < settings.attempts:
        again = Again(id=tried.id, delay=seconds(pause(tried.number, jitter)), note=note, tried="unknown")
        return Judged(settlement=again, outcome="unknown", bad=1, note=note, is_repeated=True)
    said = f"tried {_times(tried.number)}, last: {note}" if tried.repeatable else note
    return Judged(settlement=_stands(tried, settings, "unknown", said, "unknown"), outcome="unknown", bad=1, note=note)


def _stands(
    tried: Tried,
    settings: Destination,
    state: Literal["dead", "unknown"],
    note: str,
    result: Literal["retryable", "permanent", "unknown"],
) -> Stands:
    blocks = tried.in_lane and settings.lanes == "block"
    return Stands(id=tried.id, state=state, note=note, tried=result, blocks=blocks)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
