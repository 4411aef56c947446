"""The curves are kept as they were measured, and shown to the eye, in a table, and to whom they are read aloud."""

from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree as ET

from bench.curve_chart import curves
from bench.curves import Line, _generator, read, write
from bench.page import page
from bench.turns import Call, OpenCaller
from tests.unit.bench.given_rows import FASTER, MACHINE

SVG = "{http://www.w3.org/2000/svg}"
LINES = [
    Line(name="Twiceshy", clients=(1, 32), per_second=(400.0, 5_000.0), p50=(2.5, 6.0)),
    Line(name="A & B", clients=(1, 32), per_second=(100.0, 250.0), p50=(9.0, 120.0)),
]


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314 - our own


def heights(svg: str) -> list[float]:
    return [float(dot.attrib["cy"]) for dot in ET.fromstring(svg).iter(f"{SVG}circle")]  # noqa: S314 - our own


def test_each_point_has_callers_of_its_own_as_calls_are_numbered_from_the_start() -> None:
    opened: list[list[int]] = []

    def open_anew() -> OpenCaller:
        numbers: list[int] = []
        opened.append(numbers)

        async def call(number: int) -> None:
            numbers.append(number)

        def open_caller(_: int) -> nullcontext[Call]:
            return nullcontext(call)

        return open_caller

    take_turn = _generator(open_anew)
    for clients in (1, 2):
        take_turn(clients, 0.001)
    assert [numbers[0] for numbers in opened] == [0, 0]


def test_curves_are_read_as_they_were_written_and_are_none_before(tmp_path: Path) -> None:
    assert read(tmp_path) == []
    write(LINES, tmp_path)
    assert read(tmp_path) == LINES


def test_the_page_has_a_column_for_each_line_and_a_row_for_each_number_of_clients() -> None:
    written = page([FASTER], LINES, MACHINE, 64)
    assert "| clients | Twiceshy | A & B |" in written
    assert "| 32 | 5,000 (6) | 250 (120) |" in written


def test_without_curves_the_page_names_no_chart_of_them() -> None:
    assert "bench-curves.svg" not in page([FASTER], [], MACHINE, 64)


def test_the_same_curves_are_drawn_the_same() -> None:
    assert curves(LINES) == curves(list(LINES))


def test_a_line_ends_with_its_name_and_last_figure() -> None:
    assert {"Twiceshy: 5,000", "A & B: 250", "clients", "10,000"} <= set(words(curves(LINES)))


def test_the_faster_point_is_higher() -> None:
    first, last, peers_first, peers_last = heights(curves(LINES))
    assert last < first < peers_first
    assert last < peers_last


def test_names_of_lines_that_end_together_do_not_lie_on_each_other() -> None:
    lines = [Line(name=name, clients=(1,), per_second=(100.0,), p50=(1.0,)) for name in ("one", "two", "three")]
    places = [
        float(text.attrib["y"])
        for text in ET.fromstring(curves(lines)).iter(f"{SVG}text")  # noqa: S314 - our own
        if (text.text or "").endswith(": 100")
    ]
    assert len(places) == 3
    assert min(abs(one - other) for one, other in ((places[0], places[1]), (places[1], places[2]))) >= 16


def test_every_line_is_drawn_however_many_there_are() -> None:
    lines = [
        Line(name=f"side {n}", clients=(1, 2), per_second=(10.0 * n, 20.0 * n), p50=(1.0, 1.0)) for n in range(1, 8)
    ]
    assert len(heights(curves(lines))) == 14


def test_curves_are_read_aloud_with_their_ends() -> None:
    root = ET.fromstring(curves(LINES))  # noqa: S314 - our own
    assert root.find(f"{SVG}desc") is not None
    assert "Twiceshy: 400 with 1, 5,000 with 32 clients." in (root.findtext(f"{SVG}desc") or "")
