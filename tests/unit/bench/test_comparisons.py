"""Every number that the design sets is a row of the bench, with the target that the design sets."""

import pytest

from bench.__main__ import _chosen
from bench.comparisons import COMPARISONS, growing
from bench.rows import Better

ROWS = {comparison.name: comparison for comparison in COMPARISONS}


@pytest.mark.parametrize(
    ("name", "target", "better", "unit"),
    [
        ("dbos", 20, "higher", "guarded calls/s"),
        ("restate", 4, "higher", "guarded calls/s"),
        ("ingress", 5, "higher", "guarded calls/s"),
        ("noop", 0.7, "higher", "requests/s"),
        ("latency", 0.4, "lower", "ms"),
        ("replay", 0.8, "higher", "requests/s"),
        ("dbos-sqlite", 20, "higher", "guarded calls/s"),
        ("record", 20, "lower", "µs"),
        ("one-key", 100, "lower", "ms"),
        ("growth", 1.3, "lower", "ms"),
        ("conversation", 50, "higher", "times smaller"),
    ],
)
def test_a_number_to_reach_is_a_row_with_its_target(name: str, target: float, better: Better, unit: str) -> None:
    row = ROWS[name]
    assert (row.target, row.better, row.unit) == (target, better, unit)


def test_no_two_rows_have_one_name() -> None:
    assert len(ROWS) == len(COMPARISONS)


def test_a_row_that_takes_minutes_is_measured_only_where_it_is_named_or_all_are_wanted() -> None:
    assert "growth" not in [row.name for row in _chosen((), 10_000_000, is_all=False)]
    assert [row.name for row in _chosen(("growth",), 10_000_000, is_all=False)] == ["growth"]
    assert [row.name for row in _chosen((), 10_000_000, is_all=True)] == list(ROWS)


def test_where_the_curves_alone_are_named_no_row_is_measured() -> None:
    assert _chosen(("curves",), 10_000_000, is_all=False) == []


def test_a_quick_look_at_growth_says_how_many_effects_it_had() -> None:
    [row] = _chosen(("growth",), 100_000, is_all=False)
    assert row.what == growing(100_000).what == "p50 of a begin with 100,000 stored effects, 1 caller"
