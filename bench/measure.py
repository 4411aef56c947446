"""Measure one comparison: ours and the peer in turn."""

from collections.abc import Callable, Sequence
from typing import Final

from bench.comparisons import Comparison
from bench.rows import Measured
from bench.sides import Sides
from bench.turns import Turn

WARM_UP_SECONDS: Final = 0.5


def measure(
    comparison: Comparison, sides: Sides, *, repeats: int, seconds: float, before_turn: Callable[[str], None]
) -> Measured:
    """Load both sides in turn; the first, short turn of each only warms it up and is not counted."""
    loads = {"ours": sides.ours} | ({} if sides.peer is None else {"peer": sides.peer})
    found: dict[str, list[Turn]] = {"ours": [], "peer": []}
    for name, take_turn in loads.items():
        before_turn(f"{comparison.name}: warming up, {name}")
        take_turn(WARM_UP_SECONDS)
    for repeat in range(repeats):
        for name, take_turn in loads.items():
            before_turn(f"{comparison.name}: {name}, repeat {repeat + 1}")
            found[name].append(take_turn(seconds))
    return Measured(
        name=comparison.name,
        what=comparison.what,
        unit=comparison.unit,
        better=comparison.better,
        peer_name=comparison.peer_name,
        target=comparison.target,
        ours=tuple(comparison.value(turn) for turn in found["ours"]),
        peer=tuple(comparison.value(turn) for turn in found["peer"]),
        ours_milliseconds=_joined(found["ours"]),
        peer_milliseconds=_joined(found["peer"]),
        facts=sides.facts,
    )


def turns(comparisons: Sequence[Comparison], repeats: int) -> int:
    """Return how many turns there are, those that warm up among them."""
    sides = sum(1 if comparison.peer_name is None else 2 for comparison in comparisons)
    return sides * (repeats + 1)


def _joined(turns: list[Turn]) -> tuple[float, ...]:
    return tuple(one for turn in turns for one in turn.milliseconds)
