"""Rows as a run of the bench leaves them."""

from bench.results import Machine
from bench.rows import Latency, Percentiles, Row

MACHINE = Machine(cores=2, processor="Some Processor", system="Linux", python="CPython 3.11.7", load=0.3)


def some_percentiles(p50: float) -> Percentiles:
    return Percentiles(p5=p50 / 4, p25=p50 / 2, p50=p50, p75=p50 * 2, p95=p50 * 4, p99=p50 * 8, p99_9=p50 * 16)


FASTER = Row(
    name="dbos",
    what="32 callers <through> the SDK & PostgreSQL",
    ours=5_000,
    peer=250,
    peer_name="DBOS",
    ratio=20,
    target=20,
    met=True,
    unit="guarded calls/s",
    better="higher",
    repeats=3,
    spread_ours=0.1,
    spread_peer=0.2,
    latency=Latency(ours=some_percentiles(4), peer=some_percentiles(120)),
    facts=("PostgreSQL 18.6: fsync on",),
    measured_at="2026-11-30T10:00:00+00:00",
)
ALONE = Row(
    name="one-key",
    what="1,000 begins of one key",
    ours=150,
    peer=None,
    peer_name=None,
    ratio=None,
    target=100,
    met=False,
    unit="ms",
    better="lower",
    repeats=3,
    spread_ours=0.1,
    spread_peer=None,
    latency=Latency(ours=some_percentiles(80), peer=None),
    facts=("PostgreSQL 18.6: fsync on",),
    measured_at="2026-12-01T10:00:00+00:00",
)
