"""A drawing as SVG that reads in light and dark, and to whom it is read aloud."""

from typing import Final
from xml.etree import ElementTree as ET

STYLE: Final = """
text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .strong { font-weight: 600 } .muted { fill: #59636e; font-size: 12px }
.paper { fill: #ffffff } .grid { stroke: #d1d9e0 } .ours { fill: #0969da; stroke: #0969da }
.peer { fill: #818b98; stroke: #818b98 } .hole { fill: #ffffff; stroke-width: 2 }
.dashed { stroke-dasharray: 6 4 } .dotted { stroke-dasharray: 2 4 }
.end { text-anchor: end } .middle { text-anchor: middle }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .muted { fill: #9198a1 } .paper { fill: #0d1117 } .grid { stroke: #3d444d }
  .ours { fill: #4493f8; stroke: #4493f8 } .peer { fill: #767e89; stroke: #767e89 }
  .hole { fill: #0d1117 }
}
"""


class Drawing:
    """A drawing of a size, with a title that is shown and a description that is read aloud."""

    def __init__(self, width: int, height: int, *, title: str, description: str) -> None:
        self._root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {width} {height}",
                "width": str(width),
                "height": str(height),
                "role": "img",
                "aria-labelledby": "title description",
            },
        )
        self._add("title", title, id="title")
        self._add("desc", description, id="description")
        self._add("style", STYLE)
        self.bar(0, 0, width, height, "paper")
        self.text(20, 28, title, "title")

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        """Write words; `kind` is a class of the style."""
        self._add("text", words, kind, x=_short(x), y=_short(y))

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Draw a filled bar."""
        self._add("rect", None, kind, x=_short(x), y=_short(y), width=_short(width), height=_short(height))

    def line(self, start: tuple[float, float], end: tuple[float, float], kind: str, width: float = 1) -> None:
        """Draw a line."""
        places = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1], "stroke-width": width}
        self._add("line", None, kind, **{name: _short(value) for name, value in places.items()})

    def dot(self, x: float, y: float, radius: float, kind: str) -> None:
        """Draw a dot."""
        self._add("circle", None, kind, cx=_short(x), cy=_short(y), r=_short(radius))

    def svg(self) -> str:
        """Return the file's text."""
        ET.indent(self._root)
        return ET.tostring(self._root, encoding="unicode") + "\n"

    def _add(self, name: str, words: str | None, kind: str = "", **attributes: str) -> None:
        element = ET.SubElement(self._root, name, ({"class": kind} if kind else {}) | attributes)
        element.text = words


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
