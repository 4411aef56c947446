"""The retention call that nobody can reproduce, told as its reader tells it: one command, one recording."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SECONDS = 120


def test_the_call_is_replayed_narrowed_down_mended_and_made_a_test(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "examples.retention"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, ""), told.stdout
    for line in (
        'The agent: "I can offer you 20 percent off for a year." She leaves.',
        "   account > check_coverage > offer_loyalty_discount",
        "   account > check_coverage > flag_coverage_review",
        "   prompt v2: the test passes",
        "   prompt v1: the test fails",
    ):
        assert line in told.stdout
    assert list(tmp_path.iterdir()) == []
