"""The charts show the results' own figures, to the eye and to whom they are read aloud."""

from collections.abc import Callable, Sequence
from xml.etree import ElementTree as ET

import msgspec
import pytest

from bench.charts import latency, throughput
from bench.rows import Latency, Percentiles, Row
from tests.unit.bench.given_rows import ALONE, FASTER

SVG = "{http://www.w3.org/2000/svg}"
CHARTS = (throughput, latency)
Draw = Callable[[Sequence[Row]], str]


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314 - our own


def bars(svg: str, kind: str) -> list[float]:
    return [
        float(element.attrib["width"])
        for element in ET.fromstring(svg).iter(f"{SVG}rect")  # noqa: S314 - our own
        if element.attrib["class"] == kind
    ]


def test_the_lengths_of_the_bars_are_as_the_figures() -> None:
    drawn = throughput([FASTER])
    [ours], [peer] = bars(drawn, "ours"), bars(drawn, "peer")
    assert ours / peer == pytest.approx(20, abs=0.1)


def test_the_faster_of_the_two_fills_its_own_scale() -> None:
    slower = msgspec.structs.replace(FASTER, ours=3_000, peer=10_000, ratio=0.3)
    assert bars(throughput([FASTER]), "ours") == bars(throughput([slower]), "peer")


def test_throughput_says_figures_ratio_target_and_verdict() -> None:
    said = words(throughput([FASTER]))
    assert {"5,000", "250", "20\N{MULTIPLICATION SIGN}", "target ≥ 20\N{MULTIPLICATION SIGN} met"} <= set(said)


def test_throughput_leaves_out_what_has_no_peer_or_is_no_throughput() -> None:
    latency_row = msgspec.structs.replace(FASTER, better="lower", what="one call")
    said = words(throughput([FASTER, ALONE, latency_row]))
    assert ALONE.what not in "".join(said)
    assert "one call" not in "".join(said)


def test_latency_says_median_and_99_percent_of_both_sides() -> None:
    assert {"4 / 32 ms", "120 / 960 ms", "80 / 640 ms"} <= set(words(latency([FASTER, ALONE])))


def test_the_scale_of_latency_holds_the_fastest_and_the_slowest_call() -> None:
    ticks = [word for word in words(latency([FASTER])) if word.endswith(" ms") and "/" not in word]
    assert ticks == ["1 ms", "10 ms", "100 ms", "1,000 ms", "10,000 ms"]


def test_calls_that_took_no_time_at_all_are_drawn_at_the_start_of_the_scale() -> None:
    none = Percentiles(p5=0, p25=0, p50=0, p75=0, p95=0, p99=0)
    instant = msgspec.structs.replace(ALONE, latency=Latency(ours=none, peer=None))
    assert "0 / 0 ms" in words(latency([instant]))


@pytest.mark.parametrize("draw", CHARTS)
def test_a_chart_has_a_title_and_a_description_that_are_read_aloud(draw: Draw) -> None:
    root = ET.fromstring(draw([FASTER]))  # noqa: S314 - our own
    assert root.attrib["role"] == "img"
    named = {element.attrib["id"]: element.text or "" for element in root if "id" in element.attrib}
    assert root.attrib["aria-labelledby"].split() == list(named)
    assert "DBOS" in named["description"]


@pytest.mark.parametrize("draw", CHARTS)
def test_a_chart_has_its_own_paper_and_colours_for_the_dark(draw: Draw) -> None:
    drawn = draw([FASTER])
    assert "prefers-color-scheme: dark" in drawn
    assert len(bars(drawn, "paper")) == 1


@pytest.mark.parametrize("draw", CHARTS)
def test_words_of_a_row_are_never_taken_for_markup(draw: Draw) -> None:
    assert any(FASTER.what in word for word in words(draw([FASTER])))


@pytest.mark.parametrize("draw", CHARTS)
def test_a_chart_of_nothing_is_still_a_chart(draw: Draw) -> None:
    assert ET.fromstring(draw([])).tag == f"{SVG}svg"  # noqa: S314 - our own
