"""From where a claim looks: behind what this process has claimed before.

What was delivered leaves dead entries in the indexes, and while some transaction holds an old snapshot nobody may clear
them: a claim that began at the oldest would walk over all of them each time. So a claim of messages without a lane
begins at the last one that was claimed, and a claim of lanes goes straight to where those it knows were.

What shows up elsewhere is found by looking everywhere: a message that was committed late, or was locked when the claim
came by; a lane that is not known. That takes a twentieth of the time at the most while there is other work, and is
done within five seconds, however long it takes. Where nothing is in the way it is done in every turn.
"""

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from guard.core.effects import SECOND
from guard.ports.relay import Ask, Claimed

Mark = tuple[int, int]
"""When a message was due, and its id: many are due at one moment."""
_FROM_THE_BEGINNING: Final[Mark] = (0, 0)
_SHARE: Final = 20
_LONGEST_SECONDS: Final = 5.0
_MOST_LANES: Final = 1000
"""Lanes of a destination that are known at the most."""
_SURELY_SECONDS: Final = 0.1
"""A walk that wastes more than this was not merely interrupted."""
_LANE_MICROSECONDS: Final = 30
_WALK_MICROSECONDS: Final = 1000
"""What it costs to walk, and to look at each lane, with nothing in the way; what is above was spent on dead entries."""


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """How far a claim has walked along the lanes of a destination: the last one, how many, and how long it took."""

    destination: int
    last: str | None
    seen: int
    microseconds: int


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Whence a turn looks, for each of its asks; and, where lanes are not walked along, those that are known."""

    marks: list[Mark]
    cursors: list[str]
    walks: list[bool]
    known: list[tuple[int, str, int]]
    lanes_first: bool
    is_sweep: bool
    began: float


class _Place:
    """What is known of one destination; `lanes` are in the order in which they are to have their turns.

    `wasted` is what the last walk spent in seconds on dead entries; a single slow one may have had another reason.
    """

    __slots__ = ("cursor", "lanes", "mark", "walk_at", "wasted")

    def __init__(self) -> None:
        self.mark = _FROM_THE_BEGINNING
        self.cursor = ""
        self.walk_at = 0.0
        self.wasted = 0.0
        self.lanes: OrderedDict[str, int] = OrderedDict()

    def know(self, lane: str, first: int) -> None:
        self.lanes[lane] = first
        if len(self.lanes) > _MOST_LANES:
            self.lanes.popitem(last=False)


class Marks:
    """The marks of one store."""

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}
        self._sweep_at = 0.0
        self._lanes_first = False

    def begin(self, asks: Sequence[Ask]) -> Look:
        """Return whence to look. Lanes come first in every other turn, so that neither starves the other."""
        self._lanes_first = not self._lanes_first
        now = time.monotonic()
        is_sweep = now >= self._sweep_at
        places = [self._places.setdefault(ask.destination, _Place()) for ask in asks]
        walks = [now >= place.walk_at for place in places]
        known = [
            (ask.destination, lane, mark)
            for ask, place, walk in zip(asks, places, walks, strict=True)
            if not walk
            for lane, mark in _next(place, 2 * ask.slots)
        ]
        return Look(
            marks=[_FROM_THE_BEGINNING if is_sweep else place.mark for place in places],
            cursors=[place.cursor for place in places],
            walks=walks,
            known=known,
            lanes_first=self._lanes_first,
            is_sweep=is_sweep,
            began=now,
        )

    def forget(self, destination: int, lane: str) -> None:
        """Note that nothing is left of a lane where it was."""
        self._places[destination].lanes.pop(lane, None)

    def leave(self, destination: int, lane: str, first: int) -> None:
        """Note where a lane begins of which nothing could be claimed: an old message may have come back to it."""
        self._places[destination].know(lane, first)

    def end(
        self, look: Look, free: Iterable[tuple[int, Mark]], claimed: Iterable[Claimed], walks: Iterable[Walk]
    ) -> None:
        """Note what came of a look: the last of `free` that was claimed, by destination, and which lanes there are."""
        now = time.monotonic()
        if look.is_sweep:
            self._sweep_at = now + min(_LONGEST_SECONDS, (now - look.began) * (_SHARE - 1))
        for destination, mark in free:
            self._places[destination].mark = mark
        for one in claimed:
            if one.lane is not None and one.is_first:
                self._places[one.destination].know(one.lane, one.id)
        for walk in walks:
            place = self._places[walk.destination]
            place.cursor = walk.last or ""
            before, place.wasted = place.wasted, _wasted(walk)
            sure = place.wasted if place.wasted > _SURELY_SECONDS else min(before, place.wasted)
            place.walk_at = now + min(_LONGEST_SECONDS, sure * (_SHARE - 1))


def _wasted(walk: Walk) -> float:
    return max(0, walk.microseconds - _WALK_MICROSECONDS - _LANE_MICROSECONDS * walk.seen) / SECOND


def _next(place: _Place, count: int) -> list[tuple[str, int]]:
    """Return the lanes whose turn it is; they are the last to have another."""
    chosen = [lane for lane, _ in zip(place.lanes, range(count), strict=False)]
    for lane in chosen:
        place.lanes.move_to_end(lane)
    return [(lane, place.lanes[lane]) for lane in chosen]
