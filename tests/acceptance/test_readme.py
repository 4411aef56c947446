"""What the README promises of the first five minutes, word for word."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.service import ServiceProcess

README = (Path(__file__).parents[2] / "README.md").read_text()
FIRST = next(
    block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if 'print(pay("bob", 5))' in block
)

RECORDED = next(
    block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "Guard(record=True)" in block
)
STAGING = next(block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "tell_office" in block)
DESTINATIONS = next(iter(re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)))
WHAT_IF = ["--mode", "retest", "--llm", "recorded:judge", "--override", 'lookup=["UCTA 1977"]']


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program as somebody does who has set nothing."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TWICESHY_")}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_second_run_of_the_first_program_is_answered_from_the_record(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(FIRST)
    assert run(tmp_path, "first.py").stdout == "paying 5 to bob\nreceipt for 5\n"
    assert run(tmp_path, "first.py").stdout == "receipt for 5\n"
    listed = run(tmp_path, "-m", "twiceshy", "effects", "list", "--url", "sqlite:///twiceshy.db")
    assert listed.returncode == 0
    assert "succeeded" in listed.stdout


def test_a_program_that_forgot_is_suspended_until_someone_settles(tmp_path: Path) -> None:
    forgetful = FIRST.replace("order-1042", "order-1043").replace(
        "    return f", "    raise TimeoutError\n    return f"
    )
    (tmp_path / "first.py").write_text(forgetful)
    suspended = run(tmp_path, "first.py")
    assert suspended.stdout == "paying 5 to bob\n"
    assert "RunSuspended" in suspended.stderr
    here = ("--url", "sqlite:///twiceshy.db")
    listed = run(tmp_path, "-m", "twiceshy", "effects", "list", "--state", "in_doubt", "--json", *here)
    (effect,) = json.loads(listed.stdout)["items"]
    words = ["--as", "applied", "--result", '"receipt 7"', "--reason", "the bank shows it", *here]
    assert run(tmp_path, "-m", "twiceshy", "effects", "resolve", effect["key"], *words).returncode == 0
    assert run(tmp_path, "first.py").stdout == "receipt 7\n"


def test_the_same_program_runs_over_a_service(tmp_path: Path) -> None:
    with ServiceProcess(f"sqlite:///{tmp_path}/service.db") as service:
        (tmp_path / "first.py").write_text(FIRST.replace("Guard()", f'Guard("{service.url}")'))
        assert run(tmp_path, "first.py").stdout == "paying 5 to bob\nreceipt for 5\n"
        assert run(tmp_path, "first.py").stdout == "receipt for 5\n"
        listed = run(tmp_path, "-m", "twiceshy", "effects", "list", "--url", service.url)
        assert "succeeded" in listed.stdout
    assert not (tmp_path / "twiceshy.db").exists()


def test_the_recorded_program_is_shown_found_replayed_changed_and_promoted(tmp_path: Path) -> None:
    (tmp_path / "recorded.py").write_text(RECORDED)
    assert run(tmp_path, "recorded.py").stdout == "filed: low\n"
    here = ("--url", "sqlite:///twiceshy.db")
    shown = run(tmp_path, "-m", "twiceshy", "runs", "show", "review-C-1007", *here)
    assert "Called lookup with code 'GB-SCT'; it returned nothing (empty list)." in shown.stdout
    called = ("--called", "lookup", "--argument", "code=GB-*", "--empty")
    found = run(tmp_path, "-m", "twiceshy", "runs", "list", *called, "--json", *here)
    assert [item["run"] for item in json.loads(found.stdout)["items"]] == ["review-C-1007"]
    replay = ("-m", "twiceshy", "runs", "replay", "review-C-1007", "--agent", "recorded:review", *here)
    same = run(tmp_path, *replay)
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "The code did what was recorded.")
    changed = run(tmp_path, *replay, *WHAT_IF, "--answer", 'file_verdict="-"')
    assert changed.returncode == 1
    assert "file_verdict is called with other arguments than at event 5" in changed.stdout
    promoted = run(tmp_path, "-m", "twiceshy", "runs", "promote", "review-C-1007", "--agent", "recorded:review", *here)
    assert promoted.returncode == 0
    tested = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/recordings")
    assert (tested.returncode, "1 passed" in tested.stdout) == (0, True), tested.stdout


def test_the_staging_program_stages_once_and_the_office_hears_of_it_once(tmp_path: Path) -> None:
    (tmp_path / "destinations.yaml").write_text(DESTINATIONS)
    options = ("--with-relay", "--destinations", str(tmp_path / "destinations.yaml"))
    database = f"sqlite:///{tmp_path}/service.db"
    with ServiceProcess(database, options=options, TWICESHY_RELAY_FILES=str(tmp_path)) as service:
        (tmp_path / "notify.py").write_text(STAGING.replace("http://127.0.0.1:8700", service.url))
        staged = [run(tmp_path, "notify.py").stdout.rpartition("is_replay=")[2] for _ in range(2)]
        assert staged == ["False)\n", "True)\n"]
        delivered = ("-m", "twiceshy", "outbox", "list", "--state", "delivered", "--json", "--url", service.url)
        until = time.monotonic() + 30
        while not (items := json.loads(run(tmp_path, *delivered).stdout)["items"]):
            assert time.monotonic() < until
    assert [(item["destination"], item["run"]) for item in items] == [("office", "order-1042")]
    (line,) = (tmp_path / "office.log").read_text().splitlines()
    assert json.loads(line)["body"] == {"order": 1042, "total": "99.00"}
