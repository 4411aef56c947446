"""The peers are put where the bench looks for them, or the bench says what is missing."""

from pathlib import Path

import pytest

from bench.failure import BenchFailure
from bench.peers.install import RESTATE_SERVER, restate_server


def test_without_npm_the_error_says_what_to_install_or_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BenchFailure, match=r"Install Node\.js 20 or newer, or leave Restate out"):
        restate_server(print, tmp_path)


def test_a_server_that_is_there_is_not_installed_again(tmp_path: Path) -> None:
    said: list[str] = []
    folder = tmp_path / "restate-server"
    program = folder / "node_modules" / "@restatedev" / "restate-server-linux-x64" / "bin" / "restate-server"
    program.parent.mkdir(parents=True)
    program.touch()
    (folder / "installed.txt").write_text(RESTATE_SERVER)
    assert restate_server(said.append, tmp_path) == program
    assert said == []


def test_a_machine_that_the_server_is_not_made_for_is_told_so(tmp_path: Path) -> None:
    folder = tmp_path / "restate-server"
    folder.mkdir()
    (folder / "installed.txt").write_text(RESTATE_SERVER)
    with pytest.raises(BenchFailure, match="no program for this machine"):
        restate_server(print, tmp_path)
