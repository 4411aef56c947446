"""A route: one destination as this relay stands to it, and its flights, each of which takes one slot there.

What is sent was judged when it was claimed: so what cannot be begun soon after is given back, to be judged anew. And a
lease is counted from before the database was asked for it: nothing is begun that might outlive it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from guard.core.effects import Duration, seconds
from guard.logs import logger
from guard.ports.relay import Again, Ask, Claimed, Way
from outbox_relay.delivery import printable
from outbox_relay.hearing import Hearing
from outbox_relay.sinks.base import Sink, SinkRefused
from twiceshy_contract.destinations import Destination

OpenSink = Callable[[str, Destination], Sink]
"""Opens a destination. Raises SinkRefused."""
_log = logger("guard.relay")
_SHORTEST_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 60.0
_FOLLOWERS: Final = 50
_AHEAD: Final = 8.0
"""How many slots' worth more is claimed at the most than is sent at once, where what was claimed and never sent may be
sent again."""
_AHEAD_SECONDS: Final = 0.06
"""How much work, by the clock, is claimed ahead: enough until the next turn, too little to keep it from others."""
_SMOOTHING: Final = 0.1
_SLOW: Final = 1.0
_SHORTEST_PATIENCE: Final = 0.25
_LONGEST_PATIENCE: Final = 2.0


class Flight:
    """What takes one slot: a message without a lane, or the first of a lane with those behind it.

    `current` is being sent since `since` (None: it is not under way yet). It was claimed at `answered`, under a lease
    that surely lasts until `ends`, by the loop's clock. `is_ended`: its worker was told to let it be.
    """

    __slots__ = ("answered", "current", "ends", "is_ended", "is_over", "rest", "route", "since", "worker")

    def __init__(
        self, route: "Route", first: Claimed, rest: "deque[Claimed] | None", answered: float, ends: float
    ) -> None:
        self.route = route
        self.current = first
        self.rest = rest
        self.answered = answered
        self.ends = ends
        self.since: float | None = None
        self.is_over = False
        self.is_ended = False
        self.worker: asyncio.Task[None] | None = None

    def has_time(self, now: float) -> bool:
        """Whether enough of the lease is left for a whole try."""
        return self.ends - now >= self.route.way.settings.timeout_seconds

    def is_fresh(self, now: float) -> bool:
        """Whether what the claim said may still be gone by."""
        return now - self.answered <= self.route.patience and self.has_time(now)


class Route:
    """One destination. `is_hungry`: it may have more that is due than was claimed.

    `patience` is for how many seconds what was claimed may wait until it is begun.
    """

    def __init__(self, way: Way) -> None:
        self.way = way
        self.sink: Sink | None = None
        self.repeatable = False
        self.is_hungry = True
        self.waiting: deque[Flight] = deque()
        self.flights: set[Flight] = set()
        self.workers = 0
        self.is_worker_coming = False
        self.hearing = Hearing()
        self.next: Way | None = None
        self.patience = _SHORTEST_PATIENCE
        self._pace = _SLOW
        self._retry_at = 0.0
        self._retry_pause = _SHORTEST_RETRY

    @property
    def is_sending(self) -> bool:
        """Whether anything is under way here."""
        return bool(self.flights)

    @property
    def lease(self) -> Duration:
        """How long a lease of its messages is."""
        return seconds(self.way.settings.timeout_seconds * 2)

    @property
    def may_claim(self) -> bool:
        """Whether more may be begun here, by what is known of its destination."""
        is_well = self.way.state == "active" and self.way.is_open and not self.has_urgent_news
        return is_well and self.sink is not None and self.next is None

    @property
    def has_urgent_news(self) -> bool:
        """Whether what was heard decides over what may be claimed next."""
        return self.hearing.is_bad or (self.hearing.good > 0 and self.way.breaker != "closed")

    @property
    def ahead(self) -> float:
        """How many slots' worth is claimed besides what is sent at once."""
        if not self.repeatable or self.way.settings.rate_per_second is not None or self._pace > _SHORTEST_PATIENCE:
            return 0.0
        return min(_AHEAD, _AHEAD_SECONDS / max(self._pace, 0.0001))

    @property
    def is_running_dry(self) -> bool:
        """Whether slots will soon be free for which nothing is claimed."""
        return len(self.waiting) * 2 <= self.way.settings.concurrency * self.ahead

    @property
    def free(self) -> int:
        """How much more could be claimed, by this destination's own bounds."""
        return round(self.way.settings.concurrency * (1 + self.ahead)) - len(self.flights)

    def taken(self, most: int) -> int:
        """Return how many slots its flights take; one that is quick gives way to others, and counts for `most`."""
        slots = min(len(self.flights), self.way.settings.concurrency)
        return min(slots, most) if self.ahead >= 1 else slots

    def took(self, seconds: float) -> None:
        """Remember how long a send took."""
        self._pace += (seconds - self._pace) * _SMOOTHING

    def begins(self) -> None:
        """Note that something is begun here: what waits has a chance to be begun in time."""
        self.patience = _SHORTEST_PATIENCE

    def fell_behind(self) -> None:
        """Note that what was claimed was not begun in time: claim nothing ahead until sends are quick again.

        Where not even one is begun in between, the next may wait for longer: else a slow process would begin none.
        """
        self._pace = max(self._pace, _SLOW)
        self.patience = min(self.patience * 2, _LONGEST_PATIENCE)
        self.is_hungry = True

    def ask(self, slots: int) -> Ask:
        """Return the question for so many more sends."""
        return Ask(destination=self.way.id, slots=slots, followers=_FOLLOWERS, repeatable=self.repeatable)

    def open(self, open_sink: OpenSink, now: float) -> None:
        """Open the sink unless it is open; one that is refused is tried again after longer and longer pauses."""
        if self.sink is not None or self.way.state != "active" or now < self._retry_at:
            return
        try:
            self.sink = open_sink(self.way.name, self.way.settings)
        except Exception as error:  # noqa: BLE001  one destination that cannot be opened stops no other
            said = str(error) if isinstance(error, SinkRefused) else f"it cannot be opened: {error!r}"
            self._retry_at, self._retry_pause = now + self._retry_pause, min(self._retry_pause * 2, _LONGEST_RETRY)
            self.hearing.note = printable(said)
            _log.warning("destination_not_opened", destination=self.way.name, reason=said)
            return
        self._retry_pause = _SHORTEST_RETRY
        self.repeatable = self.sink.capability == "deduplicates" or self.way.settings.at_least_once

    def give_back(self) -> list[Again]:
        """Return what was claimed and is not under way, to be claimed anew; no try is spent on it."""
        given: list[Again] = []
        while self.waiting:
            flight = self.waiting.popleft()
            self.flights.discard(flight)
            given.append(again(flight.current))
            given += give_back(flight)
        for flight in self.flights:
            given += give_back(flight)
        return given


def again(message: Claimed) -> Again:
    """Return what gives a message back: it is due at once, and no try is spent on it."""
    return Again(id=message.id, delay=Duration(0))


def give_back(flight: Flight) -> list[Again]:
    """Return those behind a message of a lane, to be claimed anew behind whatever becomes of it."""
    rest, flight.rest = flight.rest, None
    return [] if rest is None else [again(message) for message in rest]
