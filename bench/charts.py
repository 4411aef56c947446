"""The charts of the documents: throughput, and how long calls took."""

import math
from collections.abc import Callable, Sequence
from typing import Final

from bench.figures import figure, ratio, target, verdict
from bench.rows import Percentiles, Row
from bench.svg import Drawing

OURS: Final = "Twiceshy"
_WIDTH: Final = 800
_LEFT: Final = 236
_RIGHT: Final = 560
_TOP: Final = 62
_ROW: Final = 74
_BAR: Final = 16
_TIMED: Final = ("guarded calls/s", "requests/s", "ms")
"""The units of rows whose calls are timed one by one."""


def throughput(rows: Sequence[Row]) -> str:
    """Draw, for each row, ours and the peer on a scale of their own."""
    shown = [row for row in rows if row.better == "higher" and row.peer is not None]
    drawing = Drawing(
        _WIDTH,
        _TOP + _ROW * len(shown),
        title="Throughput",
        description=" ".join(_said(row) for row in shown),
    )
    drawing.text(20, 48, "Each pair of bars has its own scale; longer is better.", "muted")
    for index, row in enumerate(shown):
        top = _TOP + _ROW * index
        largest = max(row.ours, row.peer or 0)
        drawing.text(20, top + 14, f"{row.what}, {row.unit}", "strong")
        for place, (name, value, kind) in enumerate(
            ((OURS, row.ours, "ours"), (row.peer_name or "", row.peer or 0, "peer"))
        ):
            y = top + 22 + place * (_BAR + 4)
            length = (_RIGHT - _LEFT) * value / largest
            drawing.text(_LEFT - 8, y + 12, name, "end")
            drawing.bar(_LEFT, y, length, _BAR, kind)
            drawing.text(_LEFT + length + 6, y + 12, figure(value))
        drawing.text(_WIDTH - 20, top + 34, ratio(row), "strong end")
        drawing.text(_WIDTH - 20, top + 54, f"target {target(row)} {verdict(row)}".rstrip(), "muted end")
    return drawing.svg()


def latency(rows: Sequence[Row]) -> str:
    """Draw, for each row that times its calls, how long those of both sides took, on one logarithmic scale."""
    rows = [row for row in rows if is_timed(row)]
    low, high = decades(rows)
    height = _TOP + _ROW * len(rows) + 24
    drawing = Drawing(
        _WIDTH,
        height,
        title="How long one call took",
        description=" ".join(_spelled(row) for row in rows),
    )
    drawing.text(
        20, 48, "Line: 5 % to 95 % of the calls. Thick: the middle half. Dot: median. Ticks: 99 and 99.9 %.", "muted"
    )
    place = _scale(low, high)
    for power in range(low, high + 1):
        x = place(10.0**power)
        drawing.line((x, _TOP), (x, height - 24), "grid")
        drawing.text(x, height - 8, f"{10.0**power:,g} ms", "muted middle")
    for index, row in enumerate(rows):
        top = _TOP + _ROW * index
        drawing.text(20, top + 14, row.what, "strong")
        sides = ((OURS, row.latency.ours, "ours"), (row.peer_name or "", row.latency.peer, "peer"))
        for number, (name, found, kind) in enumerate(sides):
            if found is not None:
                _whisker(drawing, top + 30 + number * (_BAR + 4), name, found, kind, place)
    return drawing.svg()


def _whisker(
    drawing: Drawing, y: float, name: str, found: Percentiles, kind: str, place: Callable[[float], float]
) -> None:
    drawing.text(_LEFT - 8, y + 4, name, "end")
    drawing.line((place(found.p5), y), (place(found.p95), y), kind, 2)
    drawing.line((place(found.p25), y), (place(found.p75), y), kind, 8)
    tail = [found.p99, *([] if found.p99_9 is None else [found.p99_9])]
    for tick in tail:
        drawing.line((place(tick), y - 6), (place(tick), y + 6), kind, 2)
    drawing.dot(place(found.p50), y, 4, f"{kind} hole")
    drawing.text(place(max(tail)) + 8, y + 4, f"{figure(found.p50)} / {figure(found.p99)} ms")


def is_timed(row: Row) -> bool:
    """Say whether each call of a row was timed: drains, bytes and events have a mean at most."""
    return row.unit in _TIMED


def _scale(low: int, high: int) -> Callable[[float], float]:
    """Return where on the page a number of milliseconds is; less than the scale has lies at its start."""

    def place(milliseconds: float) -> float:
        power = math.log10(max(milliseconds, 10.0**low))
        return _LEFT + (_RIGHT + 90 - _LEFT) * (power - low) / (high - low)

    return place


def decades(rows: Sequence[Row]) -> tuple[int, int]:
    """Return the powers of ten between which all the calls lie."""
    found = [side for row in rows for side in (row.latency.ours, row.latency.peer) if side is not None]
    least = min((side.p5 for side in found if side.p5 > 0), default=1.0)
    most = max((side.p99_9 or side.p99 for side in found), default=1.0)
    low = max(-2, math.floor(math.log10(least)))
    return low, max(low + 1, math.ceil(math.log10(max(most, 10.0**low))))


def _said(row: Row) -> str:
    peer = f"{row.peer_name} {figure(row.peer)}"
    return f"{row.what}: {OURS} {figure(row.ours)}, {peer} {row.unit}; {ratio(row)}, target {target(row)}."


def _spelled(row: Row) -> str:
    said = f"{row.what}: {OURS} median {figure(row.latency.ours.p50)} ms, 99 % {figure(row.latency.ours.p99)} ms"
    if row.latency.peer is None:
        return f"{said}."
    peer = row.latency.peer
    return f"{said}; {row.peer_name} median {figure(peer.p50)} ms, 99 % {figure(peer.p99)} ms."
