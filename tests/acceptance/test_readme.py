"""What the README promises of the first five minutes, word for word."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service import ServiceProcess

README = (Path(__file__).parents[2] / "README.md").read_text()
FIRST = next(
    block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if 'print(pay("bob", 5))' in block
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(f"sqlite:///{tmp_path}/twiceshy.db") as process:
        yield process


def run(service: ServiceProcess, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"TWICESHY_URL": service.url}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_second_run_of_the_first_program_is_answered_from_the_record(
    service: ServiceProcess, tmp_path: Path
) -> None:
    program = tmp_path / "first.py"
    program.write_text(FIRST.replace("http://127.0.0.1:8700", service.url))
    assert run(service, str(program)).stdout == "paying 5 to bob\nreceipt for 5\n"
    assert run(service, str(program)).stdout == "receipt for 5\n"
    listed = run(service, "-m", "twiceshy", "effects", "list")
    assert listed.returncode == 0
    assert "succeeded" in listed.stdout


def test_a_program_that_forgot_is_suspended_until_someone_settles(service: ServiceProcess, tmp_path: Path) -> None:
    program = tmp_path / "first.py"
    forgetful = FIRST.replace("http://127.0.0.1:8700", service.url).replace("order-1042", "order-1043")
    program.write_text(forgetful.replace("    return f", "    raise TimeoutError\n    return f"))
    suspended = run(service, str(program))
    assert suspended.stdout == "paying 5 to bob\n"
    assert "RunSuspended" in suspended.stderr
    (effect,) = service.ask("GET", "/v1/effects?state=in_doubt").body["items"]
    words = ["--as", "applied", "--result", '"receipt 7"', "--reason", "the bank shows it"]
    assert run(service, "-m", "twiceshy", "effects", "resolve", effect["key"], *words).returncode == 0
    assert run(service, str(program)).stdout == "receipt 7\n"
