"""What the service counts of itself. Names are those of Prometheus; nothing here decides anything.

Two of them are the names that operators look for first: answers from the record are cache hits, and a begin that
finds another attempt's lease is lock contention.
"""

import collections
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from guard.core.effects import SECOND, Effect
from guard.core.tools import UNDECLARED_VERSION, Tool
from guard.ports.accelerator import Recalled
from guard.ports.relay import Backlog
from guard.ports.store import Tally
from guard.service.contention import Contention

_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_OLDEST: Final = "oldest"
METERS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""By it Prometheus' client library is told the folder in which several processes add up what they count."""
METERS_PREFIX: Final = "twiceshy-meters-"
"""How that folder's name begins where the processes are ours, and not those of a program that we are a guest of."""
UNDECLARED: Final = "(undeclared)"
"""The label of every tool that nobody declared: names that callers make up must not become time series."""


class Meter(msgspec.Struct, frozen=True):
    """What the documents say of one meter."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


class Measures:
    """The meters of one process, in a registry of their own."""

    def __init__(self, contention: Contention | None = None) -> None:
        self._contending = Contention() if contention is None else contention
        self._registry = CollectorRegistry()
        self._meters: list[Meter] = []
        self._series: dict[tuple[Counter, tuple[str, ...]], Counter] = {}
        self._hits = self._counter("idempotency_cache_hit_total", "Begins answered from the record.", "tool")
        self._contention = self._counter(
            "idempotency_lock_contention_total", "Begins that found another attempt's lease.", "tool"
        )
        self._decisions = self._counter("twiceshy_decisions_total", "Answers to begins.", "tool", "decision")
        self._reports = self._counter("twiceshy_reports_total", "Answers to commit, fail and renew.", "verb", "answer")
        self._probes = self._counter(
            "twiceshy_probes_total", "Answers of providers that were asked over HTTP.", "tool", "said"
        )
        self._appends = self._counter("twiceshy_appends_total", "Answers to appends to runs' logs.", "answer")
        self._events = self._counter("twiceshy_events_total", "Events that were kept.")
        self._staged = self._counter("twiceshy_staged_total", "Messages that were staged with an effect.")
        self._states = self._counter("twiceshy_states_total", "Effects written, by the state written.", "state")
        self._sizes = self._histogram("twiceshy_batch_size", "Steps in a transaction.", _SIZES)
        self._waits = self._histogram(
            "twiceshy_queue_wait_seconds", "How long the first step of a transaction waited for it.", _SECONDS
        )
        self._database = self._histogram(
            "twiceshy_database_seconds", "How long the database took over a transaction of steps.", _SECONDS
        )
        self._put_off = self._counter(
            "twiceshy_put_off_total",
            "Requests refused because too much waited: `requests` under way, their `bytes`, or a `queue` of steps.",
            "why",
        )
        self._queue = self._gauge("twiceshy_queue_length", "Steps that wait for a transaction.")
        self._in_doubt = self._gauge("twiceshy_in_doubt", "Effects that wait for somebody to settle them.")
        self._executing = self._gauge("twiceshy_executing", "Effects under a lease.")
        self._lease_age = self._gauge(
            "twiceshy_oldest_lease_seconds", "How long ago the oldest lease that is held was granted."
        )
        self._waiting = self._waiting_gauges()
        self._flags = self._gauge("twiceshy_open_flags", "Flags that nobody has closed.")
        self._recalls = self._counter("twiceshy_redis_recalls_total", "Looks for a record in Redis.", "answer")
        self._distrusts = self._counter("twiceshy_redis_refused_total", "Entries in Redis not believed.", "why")
        self._shares = self._counter("twiceshy_redis_writes_total", "What was to be told to all replicas.", "answer")
        self._failures = self._counter("twiceshy_redis_failures_total", "Times that Redis failed.", "why")
        self._reached = self._gauge("twiceshy_redis_reached", "1 while Redis is asked, 0 while it is left alone.")

    def meters(self) -> tuple[Meter, ...]:
        """Name all meters."""
        return tuple(self._meters)

    def begun(self, tool: Tool, decision: str) -> None:
        """Count an answer to a begin."""
        self._add(self._decisions, _label(tool), decision)
        if decision == "replay":
            self._add(self._hits, _label(tool))

    def contended(self, tool: Tool, effect: Effect | None) -> None:
        """Count a begin that found another attempt's lease, however it ends."""
        self._add(self._contention, _label(tool))
        if effect is not None:
            self._contending.count(effect)

    def recalled(self, answer: Recalled) -> None:
        """Count a look for a record in Redis."""
        self._add(self._recalls, answer)

    def distrusted(self, why: str) -> None:
        """Count an entry in Redis that was not believed."""
        self._add(self._distrusts, why)

    def shared(self, answer: str, times: int) -> None:
        """Count what was to be told to all replicas through Redis."""
        self._add(self._shares, answer, times=times)

    def accelerator_failed(self, why: str) -> None:
        """Count a failure of Redis."""
        self._add(self._failures, why)

    def accelerator_reached(self, *, is_reached: bool) -> None:
        """Take whether Redis is asked."""
        self._reached.set(is_reached)

    def reported(self, verb: str, answer: str) -> None:
        """Count an answer to a report."""
        self._add(self._reports, verb, answer)

    def probed(self, tool: Tool, said: str) -> None:
        """Count what a provider said of a doubtful effect."""
        self._add(self._probes, _label(tool), said)

    def appended(self, answer: str, events: int) -> None:
        """Count an answer to an append, and the events that are kept by it."""
        self._add(self._appends, answer)
        self._events.inc(events)

    def staged(self, messages: int) -> None:
        """Count messages that were staged with an effect."""
        self._staged.inc(messages)

    def applied(self, size: int, waited: float, took: float) -> None:
        """Count a transaction: its steps, how long the first waited for it, and how long the database took."""
        self._sizes.observe(size)
        self._waits.observe(waited)
        self._database.observe(took)

    def put_off(self, why: str) -> None:
        """Count a request that was refused because too much waited: `requests`, `bytes`, or a `queue` of steps."""
        self._add(self._put_off, why)

    def queued(self, length: int) -> None:
        """Take how many steps wait at this moment."""
        self._queue.set(length)

    def written(self, states: Iterable[str]) -> None:
        """Count what a transaction wrote."""
        for state, times in collections.Counter(states).items():
            self._add(self._states, state, times=times)

    def stand(self, tally: Tally, flags: int) -> None:
        """Take what waits in the database at this moment."""
        self._in_doubt.set(tally.in_doubt)
        self._executing.set(tally.executing)
        self._lease_age.set(tally.oldest_lease / SECOND)
        self._flags.set(flags)

    def wait_for(self, backlogs: Mapping[str, Backlog]) -> None:
        """Take what waits for each destination at this moment; one that is gone is told no more."""
        for name, gauge in self._waiting.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # where there are several processes, the library cannot clear its files
                gauge.clear()
            for destination, backlog in backlogs.items():
                seconds = backlog.oldest / SECOND
                gauge.labels(destination).set(seconds if name == _OLDEST else getattr(backlog, name))

    def tell_also(self, others: Collector) -> None:
        """Tell the meters of what else lives in this process."""
        self._registry.register(others)

    def text(self) -> bytes:
        """Write all meters in Prometheus' text format: of all workers together, where this is one of several."""
        folder = os.environ.get(METERS_VARIABLE, "")
        is_ours = Path(folder).name.startswith(METERS_PREFIX)
        return generate_latest(_Together(self._registry, folder) if is_ours else self._registry)

    def _waiting_gauges(self) -> dict[str, Gauge]:
        """Make a meter of each count of a backlog."""
        meant = {
            "pending": "Messages that wait to be sent.",
            "in_flight": "Messages that relays hold.",
            "dead": "Messages that cannot be delivered.",
            "unknown": "Messages that may have arrived, and wait for a person.",
            "parked": "Messages that wait for a person before they are sent.",
        }
        gauges = {name: self._gauge(f"twiceshy_outbox_{name}", said, "destination") for name, said in meant.items()}
        said = "How long the oldest message that is due has waited."
        gauges[_OLDEST] = self._gauge("twiceshy_outbox_oldest_pending_seconds", said, "destination")
        return gauges

    def _add(self, counter: Counter, *labels: str, times: int = 1) -> None:
        """Add to a counter's series, which is looked for once."""
        series = self._series.get((counter, labels))
        if series is None:
            series = self._series[counter, labels] = counter.labels(*labels)
        series.inc(times)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        self._meters.append(Meter(name, "counter", labels, meaning))
        return Counter(name, meaning, labels, registry=self._registry)

    def _histogram(self, name: str, meaning: str, buckets: Sequence[float]) -> Histogram:
        self._meters.append(Meter(name, "histogram", (), meaning))
        return Histogram(name, meaning, buckets=buckets, registry=self._registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        self._meters.append(Meter(name, "gauge", labels, meaning))
        return Gauge(name, meaning, labels, registry=self._registry, multiprocess_mode="mostrecent")


class _Together(Collector):
    """What all workers counted, and how things stand as the one sees it that is asked."""

    def __init__(self, own: CollectorRegistry, folder: str) -> None:
        self._own = own
        self._all = cast("Callable[[None, str], Collector]", MultiProcessCollector)(None, folder)  # has no annotations

    def collect(self) -> Iterator[Metric]:
        """Return all meters as they are."""
        yield from (metric for metric in self._all.collect() if metric.type != "gauge")
        yield from (metric for metric in self._own.collect() if metric.type == "gauge")


def _label(tool: Tool) -> str:
    return UNDECLARED if tool.version == UNDECLARED_VERSION else tool.name
