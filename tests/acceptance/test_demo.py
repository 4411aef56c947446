"""The demo, run as its reader runs it: the guard's promise counted in the file of a calendar that knows none."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from guard.demo import command
from guard.demo.deliveries import Delivery
from guard.demo.processes import ChildFailed, Children
from guard.demo.table import Line, wrong

_TWICESHY = Path(sysconfig.get_path("scripts")) / "twiceshy"
_SECONDS = 120

DROP = Line(
    accident="drop",
    title="The connection drops",
    doubtful=True,
    without_guard=(1, 2),
    with_guard=(9,),
    told=(9,),
    states=("executing", "in_doubt", "succeeded"),
    settled="the call reported unknown; applied (fence 1): the calendar has hold 9",
)
LOST = Delivery(kind="mail", title="The mail to the guest", arrived=0, kept=0, told="pending")


def _start(temporary: Path, *options: str) -> subprocess.Popen[str]:
    """Start the demo without a terminal, with a folder for temporary files of its own."""
    environment = os.environ | {"TMPDIR": str(temporary)}
    return subprocess.Popen(
        [_TWICESHY, "demo", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=temporary,
    )


def _children(parent: int) -> list[Path]:
    """Return the folders in /proc of the processes that a process started."""
    return [process.parent for process in Path("/proc").glob("[0-9]*/stat") if _parent(process) == parent]


def _parent(stat: Path) -> int | None:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _wait_for(happens: Callable[[], bool]) -> None:
    until = time.monotonic() + _SECONDS
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_each_accident_books_twice_without_the_guard_once_with_it_and_each_message_comes_once(
    tmp_path: Path,
) -> None:
    demo = _start(tmp_path, "--json")
    printed, complaints = demo.communicate(timeout=_SECONDS)
    assert (demo.returncode, complaints) == (0, "")
    played = json.loads(printed)
    assert [
        (row["accident"], row["without_guard"], row["with_guard"], row["states"], row["wrong"])
        for row in played["accidents"]
    ] == [
        ("drop", 2, 1, ["executing", "in_doubt", "succeeded"], None),
        ("rephrase", 2, 1, ["executing", "succeeded"], None),
        ("race", 2, 1, ["executing", "succeeded"], None),
        ("kill", 2, 1, ["executing", "in_doubt", "succeeded"], None),
    ]
    assert [(row["kind"], row["arrived"], row["kept"], row["wrong"]) for row in played["deliveries"]] == [
        ("webhook", 2, 1, None),
        ("mail", 1, 1, None),
    ]
    assert [row["told"].partition(":")[0] for row in played["deliveries"]] == [
        "delivered",
        "unknown, twice; taken back",
    ]
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_the_table_has_no_colours_and_no_progress(tmp_path: Path) -> None:
    demo = _start(tmp_path)
    printed, complaints = demo.communicate(timeout=_SECONDS)
    assert (demo.returncode, complaints) == (0, "")
    assert "\x1b" not in printed
    assert "\r" not in printed
    assert printed.count("in_doubt") == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_process_and_no_folder(tmp_path: Path, number: signal.Signals) -> None:
    demo = _start(tmp_path)
    _wait_for(lambda: len(_children(demo.pid)) >= 3)  # the guard, the calendar, an agent
    children = _children(demo.pid)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("twiceshy-demo-")]
    demo.send_signal(number)
    printed, complaints = demo.communicate(timeout=_SECONDS)
    assert (demo.returncode, printed) == (130, "")
    assert complaints == "Stopped. All processes that the demo started are ended.\n"
    assert not [child for child in children if child.exists()]
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_is_as_it_should_be_has_nothing_wrong() -> None:
    assert wrong(DROP) is None
    assert wrong(msgspec.structs.replace(DROP, doubtful=False, states=("executing", "succeeded"))) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            msgspec.structs.replace(DROP, without_guard=(1,)),
            "without the guard the calendar has 1 entries; the accident did not happen",
        ),
        (msgspec.structs.replace(DROP, with_guard=(9, 10)), "with the guard the calendar has 2 entries instead of one"),
        (msgspec.structs.replace(DROP, with_guard=()), "with the guard the calendar has 0 entries instead of one"),
        (
            msgspec.structs.replace(DROP, told=(9, 8)),
            "the agents were told of holds (9, 8) where the calendar has (9,)",
        ),
        (msgspec.structs.replace(DROP, told=()), "the agents were told of holds () where the calendar has (9,)"),
        (msgspec.structs.replace(DROP, states=("executing", "succeeded")), "the effect went executing > succeeded"),
        (msgspec.structs.replace(DROP, doubtful=False), "the effect went executing > in_doubt > succeeded"),
    ],
)
def test_what_the_file_should_not_hold_is_named(line: Line, said: str) -> None:
    assert wrong(line) == f"The connection drops: {said}."


def test_the_demo_exits_with_1_and_names_the_wrong_line(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = msgspec.structs.replace(DROP, with_guard=(9, 10))
    monkeypatch.setattr(command, "_played", lambda _folder: ([DROP, twice], [LOST]))
    ran = CliRunner().invoke(command.demo, ["--json"])
    assert ran.exit_code == 1
    assert ran.stderr == (
        "Wrong: The connection drops: with the guard the calendar has 2 entries instead of one.\n"
        "Wrong: The mail to the guest: the letterbox kept 0 of it instead of one, of 0 that came.\n"
    )
    played = json.loads(ran.stdout)
    assert [row["with_guard"] for row in played["accidents"]] == [1, 2]
    assert [row["kept"] for row in played["deliveries"]] == [0]


def test_a_process_that_does_not_start_is_named_with_the_last_thing_it_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def played(folder: Path) -> tuple[list[Line], list[Delivery]]:
        with Children(folder) as children:
            dies = [sys.executable, "-c", "import sys; sys.exit('the port is taken')"]
            children.start("The calendar", dies).line(_SECONDS)
        return [], []

    monkeypatch.setattr(command, "_played", played)
    ran = CliRunner().invoke(command.demo, [])
    assert ran.exit_code == 1
    assert ran.stderr == (
        "Error: The demo cannot go on. The calendar ended too early. The last thing it said: the port is taken\n"
    )


def test_a_command_that_is_missing_is_named(tmp_path: Path) -> None:
    with Children(tmp_path) as children, pytest.raises(ChildFailed, match="The agent cannot be started"):
        children.start("The agent", [str(tmp_path / "missing")])


def test_keep_leaves_the_calendars_file_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def played(folder: Path) -> tuple[list[Line], list[Delivery]]:
        (folder / "calendar.db").touch()
        return [DROP], []

    monkeypatch.setattr(command, "_played", played)
    ran = CliRunner().invoke(command.demo, ["--keep", "--json"])
    assert ran.exit_code == 0
    kept = Path(ran.stderr.removeprefix("Kept: ").strip())
    assert [path.name for path in kept.iterdir()] == ["calendar.db"]
    (kept / "calendar.db").unlink()
    kept.rmdir()
