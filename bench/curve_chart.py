"""The chart of the curves: calls a second over clients, both on logarithmic scales."""

import math
from collections.abc import Sequence
from itertools import cycle, pairwise
from typing import Final

from bench.curves import Line
from bench.figures import figure
from bench.svg import Drawing

_WIDTH: Final = 800
_HEIGHT: Final = 440
_LEFT: Final = 76
_RIGHT: Final = 590
_TOP: Final = 66
_BOTTOM: Final = 384
_KINDS: Final = ("ours", "ours dashed", "ours dotted", "peer", "peer dashed")
_LEAST_GAP: Final = 16.0


def curves(lines: Sequence[Line]) -> str:
    """Draw a line for each side, its name at its end."""
    rates = [rate for line in lines for rate in line.per_second]
    low, high = math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates)))
    most = max(count for line in lines for count in line.clients)
    drawing = Drawing(_WIDTH, _HEIGHT, title="Guarded calls a second by clients", description=_said(lines))
    drawing.text(20, 48, "Up: calls a second. Right: clients. Both scales are logarithmic.", "muted")
    for power in range(low, high + 1):
        y = _height(10.0**power, low, high)
        drawing.line((_LEFT, y), (_RIGHT, y), "grid")
        drawing.text(_LEFT - 8, y + 4, f"{10**power:,}", "muted end")
    for count in lines[0].clients:
        drawing.text(_place(count, most), _BOTTOM + 20, str(count), "muted middle")
    drawing.text((_LEFT + _RIGHT) / 2, _BOTTOM + 42, "clients", "muted middle")
    labels = []
    for line, kind in zip(lines, cycle(_KINDS), strict=False):
        points = [
            (_place(count, most), _height(rate, low, high))
            for count, rate in zip(line.clients, line.per_second, strict=True)
        ]
        for start, end in pairwise(points):
            drawing.line(start, end, kind, 2)
        for x, y in points:
            drawing.dot(x, y, 3, kind.partition(" ")[0])
        labels.append((points[-1][1], f"{line.name}: {figure(line.per_second[-1])}"))
    _label(drawing, labels)
    return drawing.svg()


def _label(drawing: Drawing, labels: Sequence[tuple[float, str]]) -> None:
    """Write the names at the ends of their lines, none over another."""
    lowest = -math.inf
    for y, name in sorted(labels):
        lowest = max(y, lowest + _LEAST_GAP)
        drawing.text(_RIGHT + 8, lowest + 4, name)


def _place(clients: int, most: int) -> float:
    return _LEFT + (_RIGHT - _LEFT) * math.log2(clients) / max(math.log2(most), 1)


def _height(rate: float, low: int, high: int) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * (math.log10(rate) - low) / max(high - low, 1)


def _said(lines: Sequence[Line]) -> str:
    return " ".join(
        f"{line.name}: {figure(line.per_second[0])} with {line.clients[0]}, "
        f"{figure(line.per_second[-1])} with {line.clients[-1]} clients."
        for line in lines
    )
