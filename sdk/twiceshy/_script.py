"""What stands in front of a run's boundaries in a replay, and the order of the record that it keeps.

A call is matched by scope, kind, name and arguments, and the first of its like that was not taken yet is taken. A
delivery is due when every call that the record has before it was entered and every delivery before it was given:
that, and nothing else, makes ordinary concurrency the same again.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, Protocol, TypeAlias

import msgspec

from twiceshy._boundaries import Boundary, Outcome
from twiceshy._replay_errors import ReplayStopped
from twiceshy_contract.events import Delivery, Event, Intent

Key: TypeAlias = tuple[str, str, str, str]
"""Scope, kind, name and the digest of the arguments."""


class Record(Protocol):
    """A run's log that can be read."""

    @property
    def events(self) -> "Events":
        """The events in their order."""
        ...

    def value(self, delivery: Delivery) -> object:
        """Return a delivered value in tagged form."""
        ...


class Events(Protocol):
    """Events in their order."""

    def __len__(self) -> int: ...
    def __getitem__(self, at: int, /) -> Event: ...


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the place of a call.

    `outcome` is what it is served (None: it really runs), `instead` runs in its place, and `ends` says that the record
    never heard of its outcome: it is raised once all else of the record was given. `stops` is raised at once. `intent`
    is the recorded call; its delivery waits for its turn where there is an outcome, or where it `runs` nevertheless.
    An outcome that `is_new` to the call has no turn in the record. `origin` is the call of the parent's log that one of
    a fork stands for.
    """

    intent: Intent | None = None
    outcome: Outcome | None = None
    instead: Callable[[], Any] | None = None
    ends: BaseException | None = None
    stops: ReplayStopped | None = None
    runs: bool = False
    is_new: bool = False
    origin: int | None = None


class Script(Protocol):
    """What stands in front of a run's boundaries."""

    @property
    def continues(self) -> bool:
        """Whether the log is that of the record itself: what is served is not written down again."""
        ...

    def match(self, boundary: Boundary, digest: str) -> Matched | None:
        """Return what stands in the place of a call; None where it really runs. Raises where it may not."""
        ...

    @property
    def due(self) -> int | None:
        """The intent whose recorded delivery is next, where its turn has come."""
        ...

    def is_due(self, intent: int) -> bool:
        """Say whether the recorded delivery of an intent may be given: it is next, or has no place in the order."""
        ...

    def gave(self, intent: int) -> None:
        """Note that the recorded delivery of an intent was given. Raises where the replay stops at it."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether deliveries come in the order of the record as far as they are there, and wait for no other."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether nothing recorded is left that must come before what is not of the record."""
        ...

    @property
    def is_counterfactual(self) -> bool:
        """Whether what follows its end follows from what did not happen."""
        ...

    def refuse(self, error: Exception) -> ReplayStopped:
        """Return the error of what was given in the place of an outcome and does not fit; the code ends at it."""
        ...

    @property
    def refusal(self) -> Exception | None:
        """What was given in the place of an outcome, did not fit, and has ended the code."""
        ...

    def close(self) -> None:
        """Let go of the record: the code has left the run."""
        ...

    def is_early(self, boundary: Boundary, digest: str) -> bool:
        """Say whether a call is not of the record, and code may still be on its way to what must come before it."""
        ...

    def stalled(self, awaited: Collection[int], *, is_alone: bool) -> BaseException | None:
        """Hear that what is next has not come, while the code waits for these; return the error, or None to go on.

        Where the code that waits `is_alone`, nothing else can come any more.
        """
        ...


class Order:
    """The order of a record up to a cut, and the calls that were not taken yet, those after the cut among them."""

    def __init__(self, events: Events, until: int | None = None) -> None:
        """Read the order of all events, or of those whose numbers are below `until`."""
        self._events = events
        self._open: dict[Key, deque[int]] = defaultdict(deque)
        self._alike: dict[int, dict[tuple[str, ...], deque[int]]] = {}
        self._places: dict[int, int] = {}
        self._keys: dict[int, Key] = {}
        self._delivery_of: dict[int, int] = {}
        self._delivered_at: dict[int, int] = {}
        self._intents: deque[int] = deque()
        self._deliveries: deque[tuple[int, int]] = deque()
        self.passed: set[int] = set()
        """Calls that were not entered when the order was given up."""
        self._entered: set[int] = set()
        self._waiting: dict[int, int] = {}
        self._first_waiting: list[tuple[int, int]] = []
        self._given: set[int] = set()
        self.is_free = False
        for at in range(len(events)):
            self._read(events[at], at, until)

    def _read(self, event: Event, at: int, until: int | None) -> None:
        is_ordered = until is None or event.seq < until
        if isinstance(event, Intent):
            key = (event.scope, event.kind, event.name, event.digest)
            self._open[key].append(event.seq)
            self._places[event.seq] = at
            self._keys[event.seq] = key
            if is_ordered:
                self._intents.append(event.seq)
        else:
            self._delivery_of[event.intent] = at
            if event.outcome != "cancelled":
                self._delivered_at[event.intent] = event.seq
            if is_ordered:
                self._deliveries.append((event.seq, event.intent))

    def take(self, key: Key, below: int | None = None) -> int | None:
        """Return the number of the next recorded call of this kind, and take it; None where there is none left.

        With `below`, only one that comes before that event.
        """
        return self._first_of(self._open.get(key), below)

    def take_like(self, like: tuple[str, ...]) -> int | None:
        """Return the number of the next recorded call whose key begins like this, and take it."""
        return self._first_of(self._index(len(like)).get(like), None)

    def _index(self, length: int) -> dict[tuple[str, ...], deque[int]]:
        """Return the calls by the beginnings of their keys; it is made when it is first asked for."""
        index = self._alike.get(length)
        if index is None:
            index = self._alike[length] = defaultdict(deque)
            for intent, key in self._keys.items():
                index[key[:length]].append(intent)
        return index

    def _first_of(self, found: deque[int] | None, below: int | None) -> int | None:
        """Take the first of these that is left."""
        while found:
            if found[0] in self._keys:
                if below is not None and found[0] >= below:
                    return None
                del self._keys[found[0]]
                return found.popleft()
            found.popleft()
        return None

    def leave(self, taken: Iterable[int]) -> None:
        """Take these calls, and be free of the order."""
        for intent in taken:
            self._keys.pop(intent, None)
        self.free()

    def left(self) -> Iterator[tuple[int, Key]]:
        """Yield the recorded calls that were not taken, in their order."""
        return iter(self._keys.items())

    def left_like(self, like: tuple[str, ...]) -> Iterator[int]:
        """Yield the recorded calls whose key begins like this and that were not taken."""
        found = self._index(len(like)).get(like, deque())
        while found and found[0] not in self._keys:
            found.popleft()
        return (intent for intent in found if intent in self._keys)

    def has_left(self, key: Key, below: int | None = None) -> bool:
        """Say whether the record has such a call that was not taken, with `below` one before that event."""
        left = (intent for intent in self._open.get(key, ()) if intent in self._keys)
        return any(below is None or intent < below for intent in left)

    def has_key(self, key: Key) -> bool:
        """Say whether the record has such a call at all, taken or not."""
        return key in self._open

    def intent(self, seq: int) -> Intent:
        """Return a recorded call by its number."""
        event = self._events[self._places[seq]]
        if not isinstance(event, Intent):
            raise TypeError(f"event {seq} of the record is not what it was when it was first read")
        return event

    def seconds_before(self, intent: int) -> tuple[float, float]:
        """Return how long after the event before it a call was made, and how long after the first event."""
        place = self._places[intent]
        at = self._events[place].at
        pause, whole = at - self._events[max(place - 1, 0)].at, at - self._events[0].at
        return max(pause, 0) / 1_000_000, max(whole, 0) / 1_000_000

    def delivery_of(self, intent: int) -> Delivery | None:
        """Return the recorded delivery of a call."""
        place = self._delivery_of.get(intent)
        event = None if place is None else self._events[place]
        return event if isinstance(event, Delivery) else None

    def enter(self, intent: int, *, is_served: bool = True) -> None:
        """Note that a recorded call was entered. Where it `is_served`, its outcome now waits for its turn."""
        self._entered.add(intent)
        if is_served and intent in self._delivered_at:
            self._waiting[intent] = self._delivered_at[intent]
            heappush(self._first_waiting, (self._delivered_at[intent], intent))
        while self._intents and self._intents[0] in self._entered:
            self._intents.popleft()

    @property
    def due(self) -> int | None:
        """The intent whose delivery is next, where every call before that was entered."""
        if self.is_free:
            while self._first_waiting and self._first_waiting[0][1] not in self._waiting:
                heappop(self._first_waiting)
            return self._first_waiting[0][1] if self._first_waiting else None
        if not self._deliveries:
            return None
        seq, intent = self._deliveries[0]
        return None if self._intents and self._intents[0] < seq else intent

    def is_due(self, intent: int) -> bool:
        """Say whether the delivery of an intent is next, or, in the free order, waits for no other."""
        return self.due == intent or (self.is_free and intent not in self._waiting)

    def gave(self, intent: int) -> None:
        """Note that the delivery of an intent was given, in its turn or not."""
        self._waiting.pop(intent, None)
        self._given.add(intent)
        while self._deliveries and self._deliveries[0][1] in self._given:
            self._given.discard(self._deliveries.popleft()[1])

    def give_up(self) -> None:
        """Free the order because the calls before what the code waits for never came."""
        before = min(self._waiting.values(), default=0)
        self.passed.update(intent for intent in self._intents if intent < before)
        self.free()

    def free(self) -> None:
        """Wait for nothing any more: what is there is given, the first in the record first."""
        self.is_free = True
        self._intents.clear()
        self._deliveries.clear()

    def forget(self, awaited: Collection[int]) -> bool:
        """Wait no more for outcomes that the code threw away; say whether there were any."""
        gone = [intent for intent in self._waiting if intent not in awaited]
        for intent in gone:
            del self._waiting[intent]
        return bool(gone)

    @property
    def is_over(self) -> bool:
        """Whether all was entered and given."""
        return self.is_free or not (self._intents or self._deliveries)

    @property
    def next_intent(self) -> int | None:
        """The first recorded call that was not entered."""
        return self._intents[0] if self._intents else None

    def is_next(self, intent: int) -> bool:
        """Say whether the delivery of a call is next."""
        return bool(self._deliveries) and self._deliveries[0][1] == intent

    @property
    def next_delivery(self) -> tuple[int, int] | None:
        """The delivery that is next, and its intent."""
        return self._deliveries[0] if self._deliveries else None


def key_of(boundary: Boundary, digest: str) -> Key:
    """Return what a call is matched by."""
    return (boundary.scope, boundary.kind, boundary.name, digest)
