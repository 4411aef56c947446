"""Spool files: what they promise of what was written, whoever owns them and however they end."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.unit.sdk.spooled import files, keys, of_the_dead, undelivered
from twiceshy import Guard, SetupError
from twiceshy._spool import Spool, spool_folder
from twiceshy._spool_file import SpoolFile
from twiceshy._spool_list import look
from twiceshy._spool_lock import owner

ROOT = Path(__file__).parents[3]


def test_nothing_is_made_before_something_waits_and_nothing_is_left_after(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "spool"
    spool = Spool(folder, "http://guard.test")
    spool.adopt()
    assert (spool.has_waiting, spool.has_strangers(), folder.exists()) == (False, False, False)
    path = spool.keep(undelivered(1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert str(os.getpid()) in path.name
    spool.settle(UUID(int=1))
    assert files(folder) == []


def test_what_was_kept_outlasts_its_owner_in_the_order_of_writing(tmp_path: Path) -> None:
    path = of_the_dead(tmp_path, 3, 1, 2)
    spool = Spool(tmp_path, "http://guard.test")
    spool.adopt()
    assert keys(spool) == [[3, 1, 2]]
    spool.settle(UUID(int=1))
    spool.let_go()
    again = SpoolFile.adopt(path)
    assert again is not None
    assert [waiting.outcome for waiting in again.waiting.values()] == [undelivered(3), undelivered(2)]
    again.let_go()


def test_a_file_of_the_living_is_left_alone(tmp_path: Path) -> None:
    owning, other = Spool(tmp_path, "http://guard.test"), Spool(tmp_path, "http://guard.test")
    path = owning.keep(undelivered(1))
    other.adopt()
    assert (keys(other), owner(path), [entry.owner for entry in look(tmp_path)]) == ([], "alive", ["alive"])
    owning.let_go()
    assert owner(path) == "dead"
    other.adopt()
    assert keys(other) == [[1]]


def test_outcomes_for_another_service_are_neither_sent_nor_removed(tmp_path: Path) -> None:
    of_the_dead(tmp_path, 1, url="http://elsewhere.test")
    spool = Spool(tmp_path, "http://guard.test")
    spool.adopt()
    assert (keys(spool), spool.has_waiting) == ([], False)
    elsewhere = Spool(tmp_path, "http://elsewhere.test")
    elsewhere.adopt()
    assert keys(elsewhere) == [[1]]


@pytest.mark.parametrize("odd", ["", False, True, 5])
def test_a_spool_that_names_no_folder_is_refused(odd: Any) -> None:
    with pytest.raises(SetupError, match=r"names no folder\. Give a folder, or None to keep nothing"):
        Guard("http://guard.test", spool=odd)


def test_an_outcome_is_its_callers_to_send_until_it_is_handed_over(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "http://guard.test")
    spool.keep(undelivered(1))
    spool.keep(undelivered(2, key="1f" * 32))
    spool.hand_over(UUID(int=2))
    assert (keys(spool), spool.has_waiting) == ([[2]], True)
    spool.keep(undelivered(3))
    spool.hand_over(UUID(int=3))
    assert keys(spool) == [[2]], "the third is of the first one's effect, whose caller still reports"
    spool.hand_over(UUID(int=1))
    assert keys(spool) == [[1, 3], [2]], "in the order of writing, effect by effect"


def test_an_outcome_that_is_kept_twice_waits_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "http://guard.test")
    assert spool.keep(undelivered(1)) == spool.keep(undelivered(1))
    spool.hand_over(UUID(int=1))
    assert keys(spool) == [[1]]


def test_a_file_that_somebody_removed_is_made_again_with_all_that_waits(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "http://guard.test")
    spool.keep(undelivered(1)).unlink()
    spool.keep(undelivered(2, key="1f" * 32))
    assert [entry.attempt.int for entry in look(tmp_path)] == [1, 2]


def test_a_file_that_its_adopter_removed_meanwhile_is_not_adopted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = of_the_dead(tmp_path, 1)
    locks = []

    def take(file: int) -> bool:
        locks.append(file)
        path.unlink()
        return True

    monkeypatch.setattr("twiceshy._spool_file.take", take)
    assert SpoolFile.adopt(path) is None
    assert locks
    assert SpoolFile.adopt(path) is None


def test_without_locks_nothing_is_kept_or_adopted_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    of_the_dead(tmp_path, 1)
    monkeypatch.setattr("twiceshy._spool_lock.HAS_LOCKS", False)
    spool = Spool(tmp_path, "http://guard.test")
    spool.adopt()
    spool.adopt()
    assert keys(spool) == []
    assert ["this system has no locks" in record.getMessage() for record in caplog.records] == [True]
    with pytest.raises(OSError, match="this system has no locks"):
        spool.keep(undelivered(2))
    assert [(entry.attempt.int, entry.owner) for entry in look(tmp_path)] == [(1, "unknown")]


def test_a_folder_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        Spool(tmp_path / "file" / "spool", "http://guard.test").keep(undelivered(1))


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path, "http://guard.test")
    path = spool.keep(undelivered(1))
    before = path.read_bytes()

    def fsync(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("twiceshy._spool_file.os.fsync", fsync)
        with pytest.raises(OSError, match="Input/output"):
            spool.keep(undelivered(2))
    assert path.read_bytes() == before
    spool.keep(undelivered(3))
    assert [entry.attempt.int for entry in look(tmp_path)] == [1, 3]


_FULL = """
import resource, sys
from pathlib import Path
from tests.unit.sdk.spooled import undelivered
from twiceshy._spool import Spool
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
spool = Spool(Path(sys.argv[1]), "http://guard.test")
spool.keep(undelivered(1))
try:
    spool.keep(undelivered(2, key="1f" * 32, result="x" * 8000))
except OSError as error:
    print("refused", error.strerror)
spool.keep(undelivered(3, key="2f" * 32))
"""


def test_a_disk_that_is_full_refuses_one_outcome_and_harms_no_other(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused File too large\n"
    assert [(entry.attempt.int, entry.owner) for entry in look(tmp_path)] == [(1, "dead"), (3, "dead")]


_FORKED = """
import os, sys
from pathlib import Path
from tests.unit.sdk.spooled import undelivered
from twiceshy._spool import Spool
from twiceshy._spooler import Spooler
spooler = Spooler(Spool(Path(sys.argv[1]), "http://guard.test"), None, lambda: 0.0, lambda: 1.0)
spooler.keep(undelivered(1))
if os.fork() == 0:
    spooler.keep(undelivered(2))
    print("kept", flush=True)
    sys.stdin.readline()
    os._exit(0)
os._exit(0)
"""


def test_a_forked_child_has_a_file_of_its_own_and_does_not_keep_its_parents_lock(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _FORKED, str(tmp_path)],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "kept\n"
    child.wait()
    assert {entry.attempt.int: entry.owner for entry in look(tmp_path)} == {1: "dead", 2: "alive"}
    child.communicate("go\n")


@pytest.mark.parametrize(
    ("given", "variable", "folder"),
    [
        ("here", None, "here"),
        (None, "there", None),
        ("off", None, None),
    ],
)
def test_what_is_said_in_code_comes_before_the_environment(
    given: str | None, variable: str | None, folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable is not None:
        monkeypatch.setenv("TWICESHY_SPOOL", variable)
    assert spool_folder(given) == (None if folder is None else Path.cwd() / folder)


@pytest.mark.parametrize(("variable", "folder"), [("there", "there"), ("off", None), ("", "twiceshy.spool")])
def test_the_environment_comes_before_the_default(
    variable: str, folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWICESHY_SPOOL", variable)
    assert spool_folder() == (None if folder is None else Path.cwd() / folder)
