"""The chart of distributions: how long each part of the calls took, of both sides, one panel a row."""

import math
from collections.abc import Sequence
from itertools import pairwise
from textwrap import shorten
from typing import Final

from bench.charts import OURS, decades, is_timed
from bench.figures import figure
from bench.rows import Percentiles, Row
from bench.svg import Drawing

_WIDTH: Final = 800
_TOP: Final = 66
_COLUMNS: Final = 2
_PANEL_WIDTH: Final = 390
_PANEL_HEIGHT: Final = 236
_LEFT: Final = 76
_PLOT_WIDTH: Final = 290
_PLOT_TOP: Final = 44
_PLOT_HEIGHT: Final = 150
_LONGEST: Final = 52
_NINES: Final = 3.0
"""How far the axis reaches: three nines are 99.9 %."""
_TICKS: Final = ((0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"))


def distributions(rows: Sequence[Row]) -> str:
    """Draw, for each row with a peer whose calls were timed one by one, a curve for each side."""
    shown = [row for row in rows if row.latency.peer is not None and is_timed(row)]
    drawing = Drawing(
        _WIDTH,
        _TOP + _PANEL_HEIGHT * math.ceil(len(shown) / _COLUMNS),
        title="How long calls took, by percentile",
        description=" ".join(_said(row) for row in shown),
    )
    drawing.text(
        20, 48, "Up: milliseconds, logarithmic. Right: the part of the calls that took at most so long.", "muted"
    )
    low, high = decades(shown)
    for number, row in enumerate(shown):
        left = _PANEL_WIDTH * (number % _COLUMNS)
        _Panel(drawing, left, _TOP + _PANEL_HEIGHT * (number // _COLUMNS), (low, high)).draw(row)
    return drawing.svg()


class _Panel:
    """One row's axes and curves."""

    def __init__(self, drawing: Drawing, left: float, top: float, powers: tuple[int, int]) -> None:
        self._drawing = drawing
        self._left = left
        self._top = top
        self._low, self._high = powers

    def draw(self, row: Row) -> None:
        """Draw it."""
        self._drawing.text(
            self._left + 20, self._top + 14, shorten(f"{row.name}: {row.what}", _LONGEST, placeholder=" …"), "strong"
        )
        self._axes()
        sides = ((row.peer_name or "", row.latency.peer, "peer"), (OURS, row.latency.ours, "ours"))
        for name, found, kind in sides:
            if found is not None:
                self._curve(found, kind)
                self._legend(name, kind)

    def _axes(self) -> None:
        right, bottom = self._left + _LEFT + _PLOT_WIDTH, self._top + _PLOT_TOP + _PLOT_HEIGHT
        for power in range(self._low, self._high + 1):
            y = self._height(10.0**power)
            self._drawing.line((self._left + _LEFT, y), (right, y), "grid")
            self._drawing.text(self._left + _LEFT - 6, y + 4, f"{10.0**power:,g} ms", "muted end")
        for part, words in _TICKS:
            x = self._place(part)
            self._drawing.line((x, bottom), (x, bottom + 4), "grid")
            self._drawing.text(x, bottom + 18, words, "muted middle")

    def _curve(self, found: Percentiles, kind: str) -> None:
        points = [(self._place(part), self._height(value)) for part, value in _points(found)]
        for start, end in pairwise(points):
            self._drawing.line(start, end, kind, 2)
        for x, y in points:
            self._drawing.dot(x, y, 2.5, kind)

    def _legend(self, name: str, kind: str) -> None:
        """Name a side above the plot, after a piece of its line."""
        y = self._top + 32
        x = self._left + 20 if kind == "ours" else self._left + 120
        self._drawing.line((x, y - 4), (x + 16, y - 4), kind, 2)
        self._drawing.text(x + 22, y, name, "muted")

    def _place(self, part: float) -> float:
        return self._left + _LEFT + _PLOT_WIDTH * -math.log10(1 - part) / _NINES

    def _height(self, milliseconds: float) -> float:
        power = math.log10(max(milliseconds, 10.0**self._low))
        share = (power - self._low) / (self._high - self._low)
        return self._top + _PLOT_TOP + _PLOT_HEIGHT * (1 - share)


def _points(found: Percentiles) -> list[tuple[float, float]]:
    """Return parts of the calls, and what they took at most."""
    points = [(0.05, found.p5), (0.25, found.p25), (0.5, found.p50), (0.75, found.p75), (0.95, found.p95)]
    return [*points, (0.99, found.p99), *([] if found.p99_9 is None else [(0.999, found.p99_9)])]


def _said(row: Row) -> str:
    said = f"{row.name}: {OURS} {_tail(row.latency.ours)}"
    return f"{said}." if row.latency.peer is None else f"{said}; {row.peer_name} {_tail(row.latency.peer)}."


def _tail(found: Percentiles) -> str:
    last = found.p99 if found.p99_9 is None else found.p99_9
    return f"median {figure(found.p50)} ms, {'99' if found.p99_9 is None else '99.9'} % {figure(last)} ms"
