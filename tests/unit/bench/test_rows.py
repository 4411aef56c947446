"""A row says what the repeats of both sides mean."""

import msgspec
import pytest

from bench.rows import Better, Measured, is_met, percentiles, spread

MEASURED = Measured(
    name="dbos",
    what="32 callers through the SDK",
    unit="guarded calls/s",
    peer_name="DBOS",
    target=20,
    ours=(4_000.0, 6_000.0, 5_000.0),
    peer=(260.0, 250.0, 200.0),
    ours_milliseconds=(4.0, 6.0),
    peer_milliseconds=(100.0, 120.0),
    facts=("PostgreSQL 18.6: fsync on",),
)
NOW = "2026-11-30T10:00:00+00:00"


def test_the_ratio_is_that_of_the_medians() -> None:
    row = MEASURED.row(NOW)
    assert (row.ours, row.peer, row.ratio, row.met) == (5_000, 250, 20, True)


def test_a_ratio_below_its_target_misses_it() -> None:
    row = msgspec.structs.replace(MEASURED, ours=(4_990.0,)).row(NOW)
    assert (row.ratio, row.met) == (19.96, False)


@pytest.mark.parametrize(("ours", "met"), [(0.39, True), (0.4, True), (0.41, False)])
def test_where_lower_is_better_the_ratio_must_not_exceed_the_target(ours: float, met: bool) -> None:  # noqa: FBT001
    latency = msgspec.structs.replace(MEASURED, unit="ms", better="lower", target=0.4, ours=(ours,), peer=(1.0,))
    assert latency.row(NOW).met is met


@pytest.mark.parametrize(("ours", "met"), [(99.0, True), (101.0, False)])
def test_without_a_peer_the_target_is_a_figure_of_ours(ours: float, met: bool) -> None:  # noqa: FBT001
    alone = msgspec.structs.replace(
        MEASURED, better="lower", target=100, ours=(ours,), peer=(), peer_name=None, peer_milliseconds=()
    )
    row = alone.row(NOW)
    assert (row.peer, row.ratio, row.latency.peer, row.spread_peer, row.met) == (None, None, None, None, met)


def test_a_row_without_a_target_is_neither_met_nor_missed() -> None:
    row = msgspec.structs.replace(MEASURED, target=None).row(NOW)
    assert (row.target, row.met) == (None, None)


@pytest.mark.parametrize(("value", "better", "met"), [(2, "higher", True), (2, "lower", True), (3, "lower", False)])
def test_a_target_is_met_where_it_is_reached(value: float, better: Better, met: bool) -> None:  # noqa: FBT001
    assert is_met(value, 2, better) is met


def test_the_spread_is_a_part_of_the_median() -> None:
    assert spread((90.0, 100.0, 120.0)) == 0.3


def test_percentiles_are_read_off_the_sorted_calls() -> None:
    found = percentiles([float(number) for number in range(100, -1, -1)])
    assert (found.p5, found.p25, found.p50, found.p75, found.p95, found.p99, found.p99_9) == (
        5,
        25,
        50,
        75,
        95,
        99,
        99.9,
    )


def test_a_single_call_is_all_of_its_percentiles() -> None:
    found = percentiles([7.0])
    assert (found.p5, found.p50, found.p99) == (7, 7, 7)


def test_the_results_carry_the_members_that_the_design_names() -> None:
    written = msgspec.to_builtins(MEASURED.row(NOW))
    assert {"name", "ours", "peer", "ratio", "target", "met", "unit"} <= set(written)
