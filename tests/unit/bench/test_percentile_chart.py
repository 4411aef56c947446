"""The distributions show every percentile of both sides, on one scale for all rows."""

import math
from xml.etree import ElementTree as ET

import msgspec
import pytest

from bench.percentile_chart import distributions
from tests.unit.bench.given_rows import ALONE, FASTER, some_percentiles

SVG = "{http://www.w3.org/2000/svg}"


def root(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - our own


def dots(svg: str, kind: str) -> list[tuple[float, float]]:
    found = root(svg).iter(f"{SVG}circle")
    return [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in found if dot.attrib["class"] == kind]


def words(svg: str) -> list[str]:
    return [element.text or "" for element in root(svg).iter(f"{SVG}text")]


def test_a_curve_has_a_point_for_each_percentile_from_5_to_99_9() -> None:
    drawn = distributions([FASTER])
    assert len(dots(drawn, "ours")) == len(dots(drawn, "peer")) == 7


def test_a_slower_percentile_is_further_right_and_higher() -> None:
    points = dots(distributions([FASTER]), "ours")
    assert points == sorted(points)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)


def test_each_nine_takes_the_same_room() -> None:
    left = dots(distributions([FASTER]), "ours")
    [p99, p99_9] = [x for x, _ in left[-2:]]
    [p50] = [x for x, _ in left[2:3]]
    assert (p99_9 - p99) / (p99 - p50) == pytest.approx(1 / (2 - math.log10(2)), abs=0.01)


def test_results_of_before_have_curves_that_end_with_99_percent() -> None:
    before = msgspec.structs.replace(some_percentiles(4), p99_9=None)
    row = msgspec.structs.replace(FASTER, latency=msgspec.structs.replace(FASTER.latency, ours=before))
    assert len(dots(distributions([row]), "ours")) == 6


def test_a_row_without_a_peer_or_without_timed_calls_is_left_out() -> None:
    drain = msgspec.structs.replace(FASTER, name="drain", unit="messages/s")
    assert dots(distributions([ALONE, drain]), "ours") == []


def test_a_panel_names_its_row_both_sides_and_the_axes() -> None:
    said = set(words(distributions([FASTER])))
    assert {"Twiceshy", "DBOS", "50 %", "99.9 %", "1 ms", "10,000 ms"} <= said
    assert any(word.startswith("dbos: 32 callers <through>") for word in said)


def test_distributions_are_read_aloud_with_median_and_tail() -> None:
    described = root(distributions([FASTER])).findtext(f"{SVG}desc")
    assert described == "dbos: Twiceshy median 4 ms, 99.9 % 64 ms; DBOS median 120 ms, 99.9 % 1,920 ms."


def test_the_same_results_are_drawn_the_same() -> None:
    assert distributions([FASTER, FASTER]) == distributions([FASTER, FASTER])
