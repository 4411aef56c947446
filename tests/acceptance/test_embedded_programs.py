"""Programs with an embedded guard: they end in order whatever they do, and may be forked."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.acceptance.programs"]


def run(verb: str, database: str, sink: Path, **more: str) -> str:
    """Run a program; it must end well, and say nothing to standard error. Return what it said."""
    done = subprocess.run(
        [*PROGRAM, verb, database, str(sink)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | more,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def world(sink: Path) -> list[int]:
    return sorted(int(line) for line in sink.read_text().splitlines())


def test_a_program_that_never_closes_its_guard_ends_in_order_and_has_lost_nothing(
    database_url: str, sink: Path, tmp_path: Path
) -> None:
    assert run("leave", database_url, sink) == "10\n20\n"
    assert not list(tmp_path.glob("*.db-wal"))
    assert run("leave", database_url, sink) == "10\n20\n"
    assert world(sink) == [1, 2]


@pytest.mark.parametrize("verb", ["outlive", "outlive_used"])
def test_a_thread_that_outlives_the_main_thread_still_calls(verb: str, database_url: str, sink: Path) -> None:
    assert run(verb, database_url, sink) == "10\n"
    assert 1 in world(sink)


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_call_from_an_exit_handler_is_served(database_url: str, sink: Path) -> None:
    assert run("at_exit", database_url, sink) == "10\n"


@pytest.mark.parametrize("backend", ["sqlite"])
def test_ctrl_c_inside_a_tool_leaves_the_guard_at_work(database_url: str, sink: Path) -> None:
    assert run("interrupted", database_url, sink) == "KeyboardInterrupt\n10\n"


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_call_that_waits_for_a_lease_does_not_hold_up_the_end(database_url: str, sink: Path) -> None:
    assert run("held_at_exit", database_url, sink) == "10\n"


@pytest.mark.parametrize("verb", ["fork", "fork_by_library"])
def test_children_forked_while_threads_are_calling_work_and_so_does_the_parent(
    verb: str, database_url: str, sink: Path
) -> None:
    assert run(verb, database_url, sink) == "[0, 0, 0] 20 40\n"
    done = world(sink)
    assert len(done) == len(set(done))
    assert {1, 2, 3, 4} <= set(done)


MOMENTS = ["0", "0.02", "0.2", "0.4", "0.6"]
"""Seconds after the first call began: the server is imported, the schema made, the service started."""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("state", ["new", "existing"])
def test_children_forked_while_the_file_is_opened_execute_once_and_harm_nothing(
    state: str, moment: str, sqlite_template: Path, sink: Path, tmp_path: Path
) -> None:
    file = tmp_path / "opening.db"
    if state == "existing":
        shutil.copy(sqlite_template, file)
    assert run("fork_while_opening", f"sqlite:///{file}", sink, FORK_AFTER=moment) == "True [0, 0, 0, 0]\n"
    assert world(sink) == [*range(30), *range(1000, 1050)]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM effects").fetchall() == [(80,)]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("backend", ["postgresql"])
def test_children_forked_while_a_server_is_connected_to_share_no_connection(
    moment: str, database_url: str, sink: Path
) -> None:
    assert run("fork_while_opening", database_url, sink, FORK_AFTER=moment) == "True [0, 0, 0, 0]\n"
    assert world(sink) == [*range(30), *range(1000, 1050)]


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_call_from_a_finaliser_when_all_is_over_is_given_up_at_once(database_url: str, sink: Path) -> None:
    assert run("call_from_finaliser", database_url, sink) == "20\nGuardUnavailable True True\n"
    assert world(sink) == [2]


def test_the_example_of_the_document_is_answered_from_the_record_when_it_runs_again(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "embedded.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "first.py").write_text(example)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("TWICESHY_")}

    def said(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert said("first.py") == "paying 5 to bob\nreceipt for 5\n"
    assert said("first.py") == "receipt for 5\n"
    command = re.search(r"^    twiceshy (effects list .*)$", page, re.MULTILINE)
    assert command is not None
    assert "succeeded" in said("-m", "twiceshy", *command[1].split())
