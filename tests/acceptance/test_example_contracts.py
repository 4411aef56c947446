"""The contract that was silently called low risk, told as its reader tells it: one command, real processes."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SECONDS = 120


def test_the_contract_is_found_forked_mended_and_made_a_test(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "examples.contracts"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, ""), told.stdout
    for line in (
        "Four contracts were reviewed. No error was logged.",
        "   review-C-1007",
        "The lookup of GB-SCT, event 3, came back empty: the database knows GB alone.",
        "   The fork says: high. It filed nothing: file_verdict was answered by its simulator.",
        "   $ twiceshy runs list --called lookup_rules --argument 'jurisdiction=GB-*' --empty",
        "   The agent of today passes it.",
    ):
        assert line in told.stdout
    assert list(tmp_path.iterdir()) == []
