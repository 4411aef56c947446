"""The example of a booking, run as its reader runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


def _played(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.booking", *options]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_the_example_does_everything_once_and_takes_it_back_once_whatever_is_killed() -> None:
    played = _played("--json")
    assert (played.returncode, played.stderr) == (0, "")
    told = json.loads(played.stdout)
    assert (told["ledger"], told["state"], told["is_right"]) == (
        ["hold", "pay", "refund", "release"], "compensated", True,
    )  # fmt: skip
    assert [act["came"][-1] for act in told["acts"]] == ["(killed)", "(killed)", "(ended with nothing left)"]
    assert [act["came"][:-1] for act in told["acts"][:2]] == [
        ["hold: hold-1", "pay: pay-2"],
        ["pay: pay-2", "refund: refund-3"],
    ]


@pytest.mark.parametrize("example", ["booking", "refund"])
def test_an_example_that_is_ended_while_it_is_loaded_ends_quietly(example: str) -> None:
    story = f"""
import runpy, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "examples.{example}.play":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
runpy.run_module("examples.{example}", run_name="__main__")
"""
    played = subprocess.run(
        [sys.executable, "-c", story], cwd=_ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (played.returncode, played.stdout, played.stderr) == (130, "", "")


def test_the_example_tells_a_story() -> None:
    played = _played()
    assert played.returncode == 0
    assert "3. It starts once more.\n   refund: refund-3\n   release: release-4\n" in played.stdout
    assert played.stdout.endswith("Everything was done once, and taken back once.\n")
