"""The command line beside doubt: flags, cancel and reopen, and what `show` says of questions."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.integration.flagged import flags_about
from tests.service import Reply, ServiceProcess
from twiceshy._commands import main

ERROR = {"type": "TimeoutError", "message": "no word"}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TWICESHY_")]:
        monkeypatch.delenv(name)


def twiceshy(service: ServiceProcess, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [*words, "--url", service.url])
    assert result.exit_code == code, result.output
    return result


def as_json(service: ServiceProcess, *words: str) -> Any:
    return json.loads(twiceshy(service, *words, "--json").stdout)


def waiting(service: ServiceProcess, run: str, tool: str = "pay") -> Reply:
    grant = service.begin(run, tool)
    assert service.report("fail", grant, kind="not_applied", error=ERROR).body["state"] == "pending"
    return grant


def test_an_effect_is_cancelled_and_its_calls_hear_why(service: ServiceProcess, run: str) -> None:
    key = waiting(service, run).body["key"]
    said = twiceshy(service, "effects", "cancel", key, "--reason", "the customer has left", "--by", "ada")
    assert said.output == f"Effect {key} of pay is failed: calls are answered with that from now on.\n"
    again = as_json(service, "effects", "cancel", key, "--reason", "the customer has left", "--by", "ada")
    assert again["outcome"]["error"]["type"] == "Cancelled"
    assert "Cancelled: the customer has left" in twiceshy(service, "effects", "show", key).output


def test_an_effect_is_reopened(service: ServiceProcess, run: str) -> None:
    tool = f"pay-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"attempts": 1})
    key = waiting(service, run, tool).body["key"]
    said = twiceshy(service, "effects", "reopen", key, "--reason", "the account is filled")
    assert said.output == f"Effect {key} of {tool} is pending: the next call tries it again.\n"
    assert as_json(service, "effects", "reopen", key, "--reason", "again")["state"] == "pending"
    assert service.begin(run, tool).status == 201


def test_what_cannot_be_cancelled_is_said_in_one_line(service: ServiceProcess, run: str) -> None:
    key = service.begin(run).body["key"]
    refused = twiceshy(service, "effects", "cancel", key, "--reason", "r", code=1)
    assert "The effect's state does not allow this" in refused.output
    assert "not an effect's key" in twiceshy(service, "effects", "reopen", "x", "--reason", "r", code=2).output


def test_flags_are_listed_and_closed(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    service.report("commit", grant, result=1)
    service.report("commit", grant, result=2)
    (flag,) = flags_about(service, grant)
    listed = as_json(service, "flags", "list", "--kind", "double", "--state", "open", "--all")["items"]
    assert flag["id"] in [item["id"] for item in listed]
    shown = twiceshy(service, "flags", "list", "--kind", "double", "--all").output
    assert str(flag["id"]) in shown
    assert grant.body["key"] in shown
    closed = twiceshy(service, "flags", "close", str(flag["id"]), "--reason", "refunded", "--by", "ada")
    assert closed.output == f"Flag {flag['id']} (double) is closed by ada: refunded\n"
    again = as_json(service, "flags", "close", str(flag["id"]), "--reason", "seen too")
    assert (again["state"], again["closed_by"], again["reason"]) == ("closed", "ada", "refunded")
    assert str(flag["id"]) not in twiceshy(service, "flags", "list", "--kind", "saga-stuck", "--all").output
    assert (
        "there is no flag" in twiceshy(service, "flags", "close", f"{'0' * 32}", "--reason", "r", code=1).output.lower()
    )


def test_show_says_how_the_questions_about_a_doubt_stand(service: ServiceProcess, run: str) -> None:
    tool = f"pay-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"settle_seconds": 0})
    grant = service.begin(run, tool)
    service.report("fail", grant, kind="unknown", error=ERROR)
    assert service.ask("POST", "/v1/probes/claims", {"tools": [tool]}).body["items"] != []
    assert "asked 1 times, next at" in twiceshy(service, "effects", "show", grant.body["key"]).output
