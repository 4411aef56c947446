"""A recorded run on the command line: shown with what became of it, compared, replayed, and made a test."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from tests.service import ServiceProcess
from twiceshy import RunSuspended
from twiceshy._commands import main

AGENT = """
import os
from twiceshy import Guard, OutcomeInDoubt

guard = Guard(os.environ["SHOP_URL"])
PREFIX = os.environ["SHOP_TOOLS"]
WORLD = {"GB": ["act"]}


@guard.tool(name=PREFIX + "lookup", effect="read")
def lookup(jurisdiction: str) -> list[str]:
    return WORLD.get(jurisdiction, [])


@guard.tool(name=PREFIX + "pay", on_doubt="tell")
def pay(cents: int) -> str:
    raise TimeoutError("no word from the bank")


@guard.tool(name=PREFIX + "mail")
def mail(to: str) -> str:
    raise TimeoutError("no word from the server")


def mailing(run: str):
    with guard.run(run, record=True):
        return mail("ann")


def jurisdiction_of(contract: int) -> str:
    return "GB-SCT"


def review(run: str, code: str | None = None):
    with guard.run(run, record=True, finish=True) as running:
        found = lookup(code or running.custom("jurisdiction_of", jurisdiction_of, 7))
        running.now()
        try:
            pay(500)
        except OutcomeInDoubt:
            return {"risk": "high" if found else "low", "paid": None}


def again():
    return review("whatever it is called")
"""


class Shop:
    """An agent in a folder of its own, and the command line beside it."""

    def __init__(self, service: ServiceProcess, prefix: str) -> None:
        self.agent: Any = importlib.import_module("shop_agent")
        self._service = service
        self.prefix = prefix

    def twiceshy(self, *words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [*words, "--url", self._service.url])
        assert result.exit_code == code, result.output
        return result


@pytest.fixture
def shop(service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    prefix = f"{uuid4().hex[:8]}."
    for name in [name for name in os.environ if name.startswith("TWICESHY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SHOP_URL", service.url)
    monkeypatch.setenv("SHOP_TOOLS", prefix)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "shop_agent.py").write_text(AGENT)
    sys.modules.pop("shop_agent", None)
    made = Shop(service, prefix)
    yield made
    made.agent.guard.close()
    sys.modules.pop("shop_agent", None)


def test_a_run_is_shown_call_by_call_and_says_how_its_doubt_was_settled(shop: Shop, run: str) -> None:
    shop.agent.review(run)
    shown = shop.twiceshy("runs", "show", run).output
    doubtful = [line for line in shown.splitlines() if "Called" in line][-1]
    assert f"Called {shop.prefix}pay with cents 500; nobody knows whether it happened (OutcomeInDoubt" in doubtful
    assert "still in doubt; settle it with `twiceshy effects resolve`" in shown
    assert f"Called {shop.prefix}lookup with jurisdiction 'GB-SCT'; it returned nothing (empty list)." in shown
    (effect,) = json.loads(shop.twiceshy("effects", "list", "--run", run, "--json").stdout)["items"]
    settled = ["--as", "applied", "--result", '"ref-1"', "--reason", "the bank has it"]
    shop.twiceshy("effects", "resolve", effect["key"], *settled)
    (note,) = json.loads(shop.twiceshy("runs", "show", run, "--json").stdout)["timeline"][-1]["notes"]
    assert note.startswith("later resolved as applied on 20")
    assert "the bank has it" in note


def test_a_call_whose_outcome_never_reached_the_code_is_joined_to_its_effect(shop: Shop, run: str) -> None:
    with pytest.raises(RunSuspended):
        shop.agent.mailing(run)
    shown = shop.twiceshy("runs", "show", run).output.splitlines()
    assert shown[-2:] == [
        f"       Called {shop.prefix}mail with to 'ann'; no outcome reached the code.",
        "       still in doubt; settle it with `twiceshy effects resolve`",
    ]


def test_two_runs_of_the_service_are_compared(shop: Shop, run: str) -> None:
    shop.agent.review(run)
    shop.agent.review(f"{run}-gb", "GB")
    compared = shop.twiceshy("runs", "diff", run, f"{run}-gb", code=1).output
    assert "        argument /jurisdiction: 'GB-SCT' → 'GB'" in compared.splitlines()
    assert "They part at 1." in compared
    told = json.loads(shop.twiceshy("runs", "diff", run, run, "--json").stdout)
    assert (told["is_same"], told["differences"]) == (True, [])


def test_a_run_of_the_service_is_replayed_and_becomes_a_test(shop: Shop, run: str, tmp_path: Path) -> None:
    shop.agent.review(run)
    shop.agent.WORLD.clear()
    replayed = json.loads(shop.twiceshy("runs", "replay", run, "--agent", "shop_agent:again", "--json").stdout)
    assert (replayed["is_same"], replayed["value"]) == (True, {"risk": "low", "paid": None})
    override = ["--override", f'{shop.prefix}lookup=["act"]', "--json"]
    changed = json.loads(shop.twiceshy("runs", "replay", run, "--agent", "shop_agent:again", *override).stdout)
    assert changed["value"] == {"risk": "high", "paid": None}
    promoted = shop.twiceshy("runs", "promote", run, "--agent", "shop_agent:again", "--name", "case").output
    assert promoted.splitlines()[-1] == "Run it: python -m pytest tests/recordings/test_case.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/recordings/test_case.py"]
    passed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert passed.returncode == 0, passed.stdout


def test_a_run_that_is_not_recorded_or_not_there_is_said(shop: Shop, service: ServiceProcess, run: str) -> None:
    service.ask("POST", "/v1/runs", {"run": run})
    assert "was not recorded: it has no events." in shop.twiceshy("runs", "diff", run, run, code=1).output
    assert "timeline" not in json.loads(shop.twiceshy("runs", "show", run, "--json").stdout)
    assert "There is no" in shop.twiceshy("runs", "promote", f"{run}-gone", code=1).output
