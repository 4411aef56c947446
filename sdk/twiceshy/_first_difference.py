"""A replay's timeline around the first call that is not as it was recorded."""

from collections.abc import Iterator, Sequence
from itertools import islice

from twiceshy._differences import Difference
from twiceshy._in_brief import brief, side_by_side
from twiceshy._recorded_calls import Call, RecordedCalls
from twiceshy._recording import Recording
from twiceshy._run_diff import Pair, run_diff
from twiceshy._timeline import card_of, text_of

AROUND = 6
"""How many calls are shown on either side of a difference."""
MOST = 30
"""How many calls are shown where nothing differs."""
MARGIN = "   "
MARK = ">> "
_INDENT = f"{MARGIN}       "


def marked_timeline(log: Recording, recording: Recording | None) -> str:
    """Show what a replay did; the first difference to the recording is marked, and only its surroundings are shown."""
    pairs = [] if recording is None else list(run_diff(recording, log))
    first = next((at for at, pair in enumerate(pairs) if pair.verdict != "equal"), None)
    if first is None:
        return "\n".join(_whole(log, "the same as the recording" if pairs else "what was recorded"))
    return "\n".join(_around(pairs, first))


def lines_of_difference(pair: Pair) -> Iterator[str]:
    """Say in lines what differs between two calls that stand beside each other."""
    for what, found in (("argument", pair.arguments), ("outcome", pair.outcome)):
        for difference in found:
            yield f"{what}{f' {difference.path}' if difference.path else ''}: {_sides(difference)}"


def _sides(difference: Difference) -> str:
    match difference.is_at:
        case "left":
            return f"{brief(difference.left)} was recorded, and is missing now"
        case "right":
            return f"{brief(difference.right)} is new"
        case "both":
            recorded, now = side_by_side(difference.left, difference.right)
            return f"{recorded} was recorded, now it is {now}"


def _whole(log: Recording, how: str) -> Iterator[str]:
    """Show the calls of a log from its first."""
    calls = RecordedCalls(log)
    yield f"All of run {log.run}, {how}:" if len(calls) else f"Nothing was called in run {log.run}."
    for call in islice(calls, MOST):
        yield from _card(call, MARGIN)
    if len(calls) > MOST:
        yield f"{_INDENT}… {len(calls) - MOST} more calls"


def _around(pairs: Sequence[Pair], first: int) -> Iterator[str]:
    begin, end = max(first - AROUND, 0), min(first + AROUND + 1, len(pairs))
    run = next(call.recording.run for call in (pairs[first].left, pairs[first].right) if call is not None)
    yield f"What was called in run {run}, with the first difference to the recording marked {MARK.strip()}:"
    if begin:
        yield f"{_INDENT}… {begin} calls before, the same as recorded"
    for at in range(begin, end):
        yield from _shown(pairs[at], MARK if at == first else MARGIN)
    if end < len(pairs):
        yield f"{_INDENT}… {len(pairs) - end} more calls"


def _shown(pair: Pair, margin: str) -> Iterator[str]:
    if pair.right is None:
        sentence = "" if pair.left is None else card_of(pair.left).sentence
        seq = 0 if pair.left is None else pair.left.intent.seq
        yield f"{margin}    -  missing here{_moved(pair)}; recorded at {seq}: {sentence}"
        return
    yield from _card(pair.right, margin)
    if pair.left is None:
        yield f"{_INDENT}not in the recording here{_moved(pair)}"
    yield from (f"{_INDENT}{line}" for line in lines_of_difference(pair))


def _moved(pair: Pair) -> str:
    if pair.moved is None:
        return ""
    return f" (it is made at {pair.moved})" if pair.right is None else f" (it was recorded at {pair.moved})"


def _card(call: Call, margin: str) -> Iterator[str]:
    yield text_of(card_of(call), margin)
