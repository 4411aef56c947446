"""Two runs side by side: which calls are the same, which changed, and which only one of them made.

Calls are aligned by scope, kind, name and arguments, in their order. Where they part, both are read ahead for a while
until they meet again; between, calls of one kind and name stand beside each other as changed. So one call more does
not make all that follows look different.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Final, Literal

import msgspec

from twiceshy._differences import Difference, differences
from twiceshy._recorded_calls import Call, Key, RecordedCalls
from twiceshy._recording import Recording
from twiceshy_contract.events import Delivery
from twiceshy_contract.outcomes import ErrorOutcome

WINDOW: Final = 200
"""How many calls are read ahead to find where two runs meet again."""
MOST_PLACES: Final = 20
"""How many differing places of one value are told."""
CHANCE: Final = ("time", "random", "uuid")
"""Kinds whose values differ between any two runs."""

Verdict = Literal["equal", "changed", "only_left", "only_right"]


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A call of one run beside that of the other. `arguments` and `outcome` are where they differ.

    `moved` says of a call that only one side has here that the other makes the same call elsewhere: its number there.
    """

    left: Call | None
    right: Call | None
    arguments: tuple[Difference, ...] = ()
    outcome: tuple[Difference, ...] = ()
    moved: int | None = None

    @property
    def verdict(self) -> Verdict:
        """What there is to say of the two."""
        if self.left is None:
            return "only_right"
        if self.right is None:
            return "only_left"
        return "changed" if self.arguments or self.outcome else "equal"


def run_diff(left: Recording, right: Recording, *, exact: bool = False) -> Iterator[Pair]:
    """Compare two runs call by call. `exact` compares what clocks and chance gave as well."""
    ours, theirs = RecordedCalls(left), RecordedCalls(right)
    places = list(_aligned(ours, theirs))
    moved = _moved(ours, theirs, [pair for pair in places if None in pair])
    for one, other in places:
        yield _compared(
            None if one is None else ours[one],
            None if other is None else theirs[other],
            exact=exact,
            moved=moved.get((one, other)),
        )


def first_difference(left: Recording, right: Recording) -> Pair | None:
    """Return the first calls of two runs that are not the same."""
    return next((pair for pair in run_diff(left, right) if pair.verdict != "equal"), None)


_Places = tuple[int | None, int | None]


def _aligned(left: RecordedCalls, right: RecordedCalls) -> Iterator[_Places]:
    """Pair the places of both sides; None stands where a side has nothing."""
    one = other = 0
    while one < len(left) and other < len(right):
        if left[one].key == right[other].key:
            yield one, other
            one, other = one + 1, other + 1
            continue
        ours = [call.key for call in _from(left, one)]
        theirs = [call.key for call in _from(right, other)]
        is_last = one + len(ours) == len(left) and other + len(theirs) == len(right)
        pairs = list(_within(ours, theirs, whole=is_last))
        yield from ((None if a is None else one + a, None if b is None else other + b) for a, b in pairs)
        one += sum(a is not None for a, _ in pairs)
        other += sum(b is not None for _, b in pairs)
    yield from ((at, None) for at in range(one, len(left)))
    yield from ((None, at) for at in range(other, len(right)))


def _from(calls: RecordedCalls, first: int) -> Iterator[Call]:
    return (calls[at] for at in range(first, min(first + WINDOW, len(calls))))


def _within(left: Sequence[Key], right: Sequence[Key], *, whole: bool) -> Iterator[_Places]:
    """Pair two stretches: up to the first place behind their middles where they meet, or the whole of them."""
    one = other = 0
    for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        yield from _gap(left, right, (one, block.a), (other, block.b))
        yield from ((block.a + at, block.b + at) for at in range(block.size))
        one, other = block.a + block.size, block.b + block.size
        if block.size and not whole and max(one, other) > WINDOW // 2:
            return


def _gap(
    left: Sequence[Key], right: Sequence[Key], ours: tuple[int, int], theirs: tuple[int, int]
) -> Iterator[_Places]:
    """Pair calls that are not the same: those of one scope, kind and name stand beside each other."""
    one, other = ours[0], theirs[0]
    names = [key[:3] for key in left[one : ours[1]]], [key[:3] for key in right[other : theirs[1]]]
    for block in SequenceMatcher(None, *names, autojunk=False).get_matching_blocks():
        yield from ((at, None) for at in range(one, ours[0] + block.a))
        yield from ((None, at) for at in range(other, theirs[0] + block.b))
        one, other = ours[0] + block.a, theirs[0] + block.b
        yield from ((one + at, other + at) for at in range(block.size))
        one, other = one + block.size, other + block.size


def _moved(left: RecordedCalls, right: RecordedCalls, apart: Sequence[_Places]) -> dict[_Places, int]:
    """Find the same call among what only the other side has elsewhere; what is given is the number there."""
    here: dict[Key, list[int]] = {}
    for one, other in apart:
        if one is None and other is not None:
            here.setdefault(right[other].key, []).append(other)
    found: dict[_Places, int] = {}
    for one, _ in apart:
        places = here.get(left[one].key) if one is not None else None
        if one is not None and places:
            other = places.pop(0)
            found[(one, None)] = right[other].intent.seq
            found[(None, other)] = left[one].intent.seq
    return found


def _compared(left: Call | None, right: Call | None, *, exact: bool, moved: int | None) -> Pair:
    if left is None or right is None:
        return Pair(left=left, right=right, moved=moved)
    arguments: tuple[Difference, ...] = ()
    if left.intent.digest != right.intent.digest:
        found = differences(left.arguments(), right.arguments())
        arguments = tuple(islice(found, MOST_PLACES)) or (Difference("", left.intent.digest, right.intent.digest),)
    is_chance = left.intent.kind in CHANCE and not exact
    return Pair(left=left, right=right, arguments=arguments, outcome=() if is_chance else _outcomes(left, right))


def _outcomes(left: Call, right: Call) -> tuple[Difference, ...]:
    """Compare how two calls ended: the kind of the outcome first, then what it holds."""
    one, other = left.delivery, right.delivery
    if one is None and other is None:
        return ()
    if one is None or other is None or one.outcome != other.outcome:
        return (Difference("", _kind(one), _kind(other)),)
    if one.outcome == "result":
        if one.value == other.value:
            return ()
        return tuple(islice(differences(left.value(), right.value()), MOST_PLACES))
    return () if _error(one) == _error(other) else (Difference("", _error(one), _error(other)),)


def _kind(delivery: Delivery | None) -> str:
    return "no outcome" if delivery is None else f"{delivery.outcome}{_of(delivery)}"


def _of(delivery: Delivery) -> str:
    error = _error(delivery)
    return f" ({error})" if error else ""


def _error(delivery: Delivery) -> str:
    error = delivery.error
    return f"{error.type}: {error.message}" if isinstance(error, ErrorOutcome) else ""
