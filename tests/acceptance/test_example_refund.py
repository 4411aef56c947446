"""The refund behind approval, told as its reader tells it: one command, real processes, one refund in the ledger."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SECONDS = 120


def test_the_refund_is_asked_for_killed_edited_approved_and_made_once(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "examples.refund"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines()[-1] == "The provider's ledger: [('pay-1', 80)]"
    for line in (
        "An agent asks to refund 100 EUR of pay-1. A person must decide first; the run is suspended.",
        "The agent's process is killed (SIGKILL). The question stays.",
        '  It runs with {"payment": "pay-1", "amount": 80}.',
        'gets: {"refund": "re-1", "payment": "pay-1", "amount": 80}',
        "Another run asks to refund 100 EUR of pay-1, and is answered from the record: done at step 1",
        "5000 EUR of pay-2 are denied: the agent is told `no receipt`, by alice",
    ):
        assert line in told.stdout
    assert list(tmp_path.iterdir()) == []
