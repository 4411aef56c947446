"""The results are kept row by row, and the page says what they say."""

from pathlib import Path

import msgspec
import pytest

from bench.failure import BenchFailure, NotDurable
from bench.page import page
from bench.results import read, read_machine, write
from bench.servers import durable
from tests.unit.bench.given_rows import ALONE, FASTER, MACHINE

ORDER = ("dbos", "one-key")


def test_a_row_that_was_not_measured_again_stays(tmp_path: Path) -> None:
    write([ALONE], MACHINE, ORDER, tmp_path)
    write([FASTER], MACHINE, ORDER, tmp_path)
    again = msgspec.structs.replace(FASTER, ours=6_000)
    write([again], MACHINE, ORDER, tmp_path)
    assert read(tmp_path) == [again, ALONE]


def test_a_row_that_the_bench_has_no_more_goes(tmp_path: Path) -> None:
    write([ALONE, FASTER], MACHINE, ORDER, tmp_path)
    write([FASTER], MACHINE, ("dbos",), tmp_path)
    assert read(tmp_path) == [FASTER]


def test_results_of_an_older_form_are_no_results(tmp_path: Path) -> None:
    (tmp_path / "latest.json").write_text('[{"name": "dbos", "ours": 1}]')
    assert read(tmp_path) == []


def test_where_there_are_no_results_the_error_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(BenchFailure, match="Run `make bench` first"):
        read(tmp_path)


def test_the_machine_is_kept_without_its_name(tmp_path: Path) -> None:
    write([FASTER], MACHINE, ORDER, tmp_path)
    assert set(msgspec.to_builtins(read_machine(tmp_path))) == {"cores", "processor", "system", "python", "load"}


def test_results_of_an_unknown_machine_are_measured_again(tmp_path: Path) -> None:
    with pytest.raises(BenchFailure, match="Run `make bench` again"):
        read_machine(tmp_path)


@pytest.mark.parametrize(("load", "busy"), [(0.5, False), (0.6, True)])
def test_a_machine_on_which_others_work_is_said_to_be_busy(load: float, busy: bool) -> None:  # noqa: FBT001
    assert msgspec.structs.replace(MACHINE, load=load).is_busy is busy


def test_the_page_has_a_line_for_each_row() -> None:
    lines = page([FASTER, ALONE], [], MACHINE, 64).splitlines()
    times = "\N{MULTIPLICATION SIGN}"
    assert f"| `dbos` | {FASTER.what} | DBOS | 5,000 | 250 | guarded calls/s | 20{times} | ≥ 20{times} | met |" in lines
    assert f"| `one-key` | {ALONE.what} | - | 150 | - | ms | - | ≤ 100 ms | missed |" in lines
    assert "| `dbos` | 4 | 16 | 32 | 64 | 120 | 480 | 960 | 1,920 |" in lines


def test_the_page_gives_no_percentiles_of_what_was_not_timed_call_by_call() -> None:
    drain = msgspec.structs.replace(FASTER, name="drain", unit="messages/s")
    lines = page([FASTER, drain], [], MACHINE, 64).splitlines()
    assert [line[:9] for line in lines if line.startswith("| `drain`")] == ["| `drain`"]


def test_the_page_says_in_words_what_was_missed_and_nothing_where_all_is_met() -> None:
    assert "- `one-key` reached 150 ms, the target is ≤ 100 ms." in page([FASTER, ALONE], [], MACHINE, 64)
    assert "Missed in this run" not in page([FASTER], [], MACHINE, 64)


def test_the_page_says_on_what_and_when_it_was_measured() -> None:
    written = page([FASTER, ALONE], [], MACHINE, 64)
    assert "Measured 2026-11-30 and 2026-12-01 on 2 cores of Some Processor (Linux), CPython 3.11.7;" in written
    assert written.count("- PostgreSQL 18.6: fsync on") == 1


def test_a_side_that_syncs_is_said_to() -> None:
    assert durable("DBOS", {"fsync": "on", "journal": "delete"}, {"fsync": "on"}) == "DBOS: fsync on, journal delete"


@pytest.mark.parametrize("found", [{"fsync": "off"}, {}])
def test_a_side_that_may_lose_what_it_acknowledged_is_not_measured(found: dict[str, str]) -> None:
    with pytest.raises(NotDurable, match="its figures would mean nothing"):
        durable("DBOS", found, {"fsync": "on"})
