"""What was measured, as one row of the results: medians, their ratio, and the target where there is one."""

from collections.abc import Sequence
from statistics import median, quantiles
from typing import Final, Literal, TypeAlias

import msgspec

Better: TypeAlias = Literal["higher", "lower"]

_SMALLEST_SAMPLE: Final = 2


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """How long calls took, in milliseconds. Results of before have no `p99_9`."""

    p5: float
    p25: float
    p50: float
    p75: float
    p95: float
    p99: float
    p99_9: float | None = None


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of both sides, of all repeats together."""

    ours: Percentiles
    peer: Percentiles | None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison.

    `target` is what `ratio` must reach; where there is no peer, what `ours` must reach. `better` says which way.
    `target` and `met` are null where no target is set. `facts` are what the sides said of their durability.
    """

    name: str
    what: str
    ours: float
    peer: float | None
    peer_name: str | None
    ratio: float | None
    target: float | None
    met: bool | None
    unit: str
    better: Better
    repeats: int
    spread_ours: float
    spread_peer: float | None
    latency: Latency
    facts: tuple[str, ...]
    measured_at: str


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The repeats of one comparison, ours and the peer's in turn, and all their calls' milliseconds."""

    name: str
    what: str
    unit: str
    better: Better = "higher"
    peer_name: str | None = None
    target: float | None = None
    ours: tuple[float, ...]
    peer: tuple[float, ...] = ()
    ours_milliseconds: tuple[float, ...]
    peer_milliseconds: tuple[float, ...] = ()
    facts: tuple[str, ...] = ()

    def row(self, measured_at: str) -> Row:
        """Return the medians and what they mean."""
        ours, peer = median(self.ours), median(self.peer) if self.peer else None
        ratio = None if peer is None else ours / peer
        return Row(
            name=self.name,
            what=self.what,
            ours=round(ours, 2),
            peer=None if peer is None else round(peer, 2),
            peer_name=self.peer_name,
            ratio=None if ratio is None else round(ratio, 4),
            target=self.target,
            met=is_met(ours if ratio is None else ratio, self.target, self.better),
            unit=self.unit,
            better=self.better,
            repeats=len(self.ours),
            spread_ours=round(spread(self.ours), 3),
            spread_peer=round(spread(self.peer), 3) if self.peer else None,
            latency=Latency(
                ours=percentiles(self.ours_milliseconds),
                peer=percentiles(self.peer_milliseconds) if self.peer_milliseconds else None,
            ),
            facts=self.facts,
            measured_at=measured_at,
        )


def is_met(value: float, target: float | None, better: Better) -> bool | None:
    """Say whether a value reaches its target; None where there is none."""
    if target is None:
        return None
    return value >= target if better == "higher" else value <= target


def spread(repeats: Sequence[float]) -> float:
    """Return how far apart the repeats are, as a part of their median."""
    return (max(repeats) - min(repeats)) / median(repeats) if median(repeats) else 0.0


def percentiles(milliseconds: Sequence[float]) -> Percentiles:
    """Return the percentiles of at least one call."""
    sample = list(milliseconds) if len(milliseconds) >= _SMALLEST_SAMPLE else [*milliseconds, *milliseconds]
    cuts = [round(cut, 3) for cut in quantiles(sample, n=1000, method="inclusive")]
    return Percentiles(
        p5=cuts[49],
        p25=cuts[249],
        p50=cuts[499],
        p75=cuts[749],
        p95=cuts[949],
        p99=cuts[989],
        p99_9=cuts[998],
    )
