"""`twiceshy approvals` against a running service: what is listed is shown, decided and taken back."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.integration.approving import declared
from tests.service import Reply, ServiceProcess
from twiceshy._commands import main


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TWICESHY_")]:
        monkeypatch.delenv(name)


def approvals(service: ServiceProcess, *words: str, code: int = 0, **more: Any) -> Result:
    result = CliRunner().invoke(main, ["approvals", *words, "--url", service.url], **more)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def waiting(service: ServiceProcess, run: str) -> Reply:
    """A begin that awaits approval."""
    return service.begin(run, declared(service, approval={"quorum": 2}), {"amount": 100}, requester="agent-7")


def test_what_waits_is_listed_shown_and_approved_by_two(service: ServiceProcess, run: str, waiting: Reply) -> None:
    approval = waiting.body["approval"]
    listed = approvals(service, "list", "--state", "open", "--run", run).output.splitlines()
    assert (len(listed), listed[1].split()[:2]) == (2, [approval, "open"])
    assert listed[1].endswith("(amount=100)")
    shown = approvals(service, "show", approval).output
    for line in ("asked by   agent-7", "needed     2, not who asked", 'arguments  {"amount": 100}'):
        assert line in shown
    edit = ("--edit", '{"amount": 80}')
    first = approvals(service, "approve", approval, *edit, "--as", "alice", "--reason", "less is due").output
    assert f"Approval {approval} is open, 1 of 2 have approved" in first
    second = approvals(service, "approve", approval, "--edit", "-", "--as", "bob", input='{"amount": 80}').output
    assert f"Approval {approval} is approved" in second
    assert 'It runs with {"amount": 80}.' in second
    assert "alice  approve, with other arguments" in approvals(service, "show", approval).output


def test_a_denial_needs_a_reason_and_is_final(service: ServiceProcess, waiting: Reply) -> None:
    approval = waiting.body["approval"]
    assert "Missing option '--reason'" in approvals(service, "deny", approval, code=2).output
    assert "is denied" in approvals(service, "deny", approval, "--as", "alice", "--reason", "no").output
    late = approvals(service, "approve", approval, "--as", "bob", code=1).output
    assert "Error: The question is decided." in late
    assert "is denied already by alice: no" in late
    assert "reason     no" in approvals(service, "show", approval).output


def test_a_question_is_taken_back(service: ServiceProcess, waiting: Reply) -> None:
    approval = waiting.body["approval"]
    assert "is cancelled" in approvals(service, "cancel", approval, "--as", "carol", "--reason", "no use").output
    shown = json.loads(approvals(service, "show", approval, "--json").stdout)
    assert (shown["state"], shown["cancelled_by"], shown["reason"]) == ("cancelled", "carol", "no use")


def test_everything_is_printed_as_json(service: ServiceProcess, run: str, waiting: Reply) -> None:
    approval = waiting.body["approval"]
    listed = json.loads(approvals(service, "list", "--run", run, "--json").stdout)
    assert [one["id"] for one in listed["items"]] == [approval]
    decided = json.loads(approvals(service, "approve", approval, "--as", "alice", "--json").stdout)
    assert [vote["by"] for vote in decided["decisions"]] == ["alice"]


def test_who_says_nothing_of_who_decides_is_the_user_of_this_machine(
    service: ServiceProcess, waiting: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "zoe")
    decided = json.loads(approvals(service, "approve", waiting.body["approval"], "--json").stdout)
    assert [vote["by"] for vote in decided["decisions"]] == ["zoe"]


@pytest.mark.parametrize("edit", ["80", "[80]", "{amount: 80}", "@missing.json"])
def test_an_edit_that_is_no_object_decides_nothing(service: ServiceProcess, waiting: Reply, edit: str) -> None:
    assert "--edit" in approvals(service, "approve", waiting.body["approval"], "--edit", edit, code=2).output
    assert json.loads(approvals(service, "show", waiting.body["approval"], "--json").stdout)["state"] == "open"


def test_nothing_to_list_is_said(service: ServiceProcess) -> None:
    assert approvals(service, "list", "--run", "nobodys").output == "No approvals.\n"
