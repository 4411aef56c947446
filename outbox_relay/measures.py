"""What a relay counts of itself: plain numbers while it works, Prometheus' text when it is asked for.

The names of destinations are those that operators gave, so they may be labels.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from guard.ports.relay import Backlog, Reaped, Way
from outbox_relay.delivery import Judged

_STATES: Final = {"closed": 0, "half_open": 1, "open": 2}


class Measures(Collector):
    """The meters of one relay. They are those of its process alone, but for what waits, which is the database's."""

    def __init__(self) -> None:
        self._tries: Counter[tuple[str, str]] = Counter()
        self._suspected: Counter[str] = Counter()
        self._fenced = 0
        self._repeated = 0
        self._again = 0
        self._unknown = 0
        self._claims = 0
        self._claimed = 0
        self._claim_seconds = 0.0
        self._in_flight = 0
        self._ways: tuple[Way, ...] = ()
        self._backlogs: Mapping[int, Backlog] = {}
        self.registry: Final = CollectorRegistry()
        self.registry.register(self)

    @property
    def fenced_so_far(self) -> int:
        """How many results came when their message was no longer under the lease."""
        return self._fenced

    @property
    def suspected_so_far(self) -> int:
        """How many sends may have been a second one."""
        return self._suspected.total()

    def tried(self, destination: str, judged: Judged) -> None:
        """Count a try."""
        self._tries[destination, judged.outcome] += 1
        if judged.is_repeated:
            self._suspected[destination] += 1

    def count_of(self, destination: str, outcome: str) -> int:
        """Return how many tries at a destination came to this."""
        return self._tries[destination, outcome]

    def summary(self) -> tuple[int, int]:
        """Return how many tries delivered, and how many did not."""
        delivered = sum(count for (_, outcome), count in self._tries.items() if outcome in ("delivered", "duplicate"))
        return delivered, self._tries.total() - delivered

    def fenced(self, count: int) -> None:
        """Count results that came too late to be written."""
        self._fenced += count

    def repeated(self, count: int) -> None:
        """Count results that were written before, when the answer of the database was lost."""
        self._repeated += count

    def reaped(self, reaped: Reaped) -> None:
        """Count what was taken back from relays that are gone: what is sent again may be a second time."""
        self._again += reaped.again
        self._unknown += reaped.unknown

    def turned(self, claimed: int, seconds: float, in_flight: int) -> None:
        """Count a turn at the database."""
        self._claims += 1
        self._claimed += claimed
        self._claim_seconds += seconds
        self._in_flight = in_flight

    def stand(self, ways: tuple[Way, ...]) -> None:
        """Remember how the destinations stand."""
        self._ways = ways

    def wait(self, backlogs: Mapping[int, Backlog]) -> None:
        """Remember what waits for them."""
        self._backlogs = backlogs

    def text(self) -> bytes:
        """Write all meters, in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Return all meters as they are."""
        yield from self._of_tries()
        yield from self._of_turns()
        yield from self._of_destinations()

    def _of_tries(self) -> Iterator[Metric]:
        tries = CounterMetricFamily(
            "twiceshy_relay_tries", "Tries to deliver, by what came of them.", labels=("destination", "result")
        )
        for (destination, outcome), count in list(self._tries.items()):
            tries.add_metric((destination, outcome), count)
        yield tries
        suspected = CounterMetricFamily(
            "twiceshy_relay_duplicates_suspected",
            "Messages that are sent again although they may have arrived.",
            labels=("destination",),
        )
        for destination, count in list(self._suspected.items()):
            suspected.add_metric((destination,), count)
        yield suspected

    def _of_turns(self) -> Iterator[Metric]:
        counted = (
            ("fenced", "Results that came when their message was no longer under the lease.", self._fenced),
            ("repeated", "Results that were written before, when the database's answer was lost.", self._repeated),
            ("expired_again", "Messages of relays that are gone which are sent again.", self._again),
            ("expired_unknown", "Messages of relays that are gone which wait for a person.", self._unknown),
            ("turns", "Turns at the database, to settle and to claim.", self._claims),
            ("claimed", "Messages that were claimed.", self._claimed),
            ("claim_seconds", "Seconds that turns took.", self._claim_seconds),
        )
        for name, meaning, value in counted:
            yield CounterMetricFamily(f"twiceshy_relay_{name}", meaning, value=value)
        yield GaugeMetricFamily("twiceshy_relay_in_flight", "Messages under way.", value=self._in_flight)

    def _of_destinations(self) -> Iterator[Metric]:
        lag = GaugeMetricFamily(
            "twiceshy_relay_lag_seconds", "How long the oldest message that is due has waited.", labels=("destination",)
        )
        waiting = GaugeMetricFamily(
            "twiceshy_relay_messages", "Messages that are not over, by state.", labels=("destination", "state")
        )
        breaker = GaugeMetricFamily("twiceshy_relay_breaker", "0 closed, 1 half open, 2 open.", labels=("destination",))
        for way in self._ways:
            breaker.add_metric((way.name,), _STATES[way.breaker])
            backlog = self._backlogs.get(way.id, Backlog())
            lag.add_metric((way.name,), backlog.oldest / 1_000_000)
            for state in ("pending", "in_flight", "dead", "unknown", "parked"):
                waiting.add_metric((way.name, state), getattr(backlog, state))
        yield from (lag, waiting, breaker)
