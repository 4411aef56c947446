"""Finding runs from the command line, against a running service."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.recorded_calls import lookup, recorded
from tests.service import ServiceProcess
from twiceshy._commands import main


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TWICESHY_")]:
        monkeypatch.delenv(name)


def twiceshy(service: ServiceProcess, *words: str) -> str:
    result = CliRunner().invoke(main, [*words, "--url", service.url])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_affected_runs_are_found_marked_and_listed(service: ServiceProcess, run: str) -> None:
    tool = f"lookup-{run}"
    for number, jurisdiction in enumerate(("GB-SCT", "DE", "GB-WLS")):
        opening = {"workflow": "contracts", "reference": f"contract {number}", "tags": [run]}
        recorded(service, f"{run}-{number}", lookup(jurisdiction, name=tool), about=opening)
    search = ["runs", "list", "--called", tool, "--argument", "jurisdiction=GB-*", "--empty", "--since", "1h"]
    found = twiceshy(service, *search).splitlines()
    assert [line.split()[0] for line in found[1:3]] == [f"{run}-2", f"{run}-0"]
    assert found[3:] == ["2 calls in 2 runs."]
    calls = json.loads(twiceshy(service, *search, "--json"))
    for call in calls["items"]:
        said = twiceshy(service, "runs", "facts", call["run"], "affected=true", "score=61")
        assert said.splitlines()[1].split() == ["affected", "true"]
    listed = twiceshy(service, "runs", "list", "--tag", run, "--fact", "affected=true").splitlines()
    assert [line.split()[0] for line in listed[1:]] == [f"{run}-2", f"{run}-0"]
    assert listed[1].endswith("contracts  contract 2  affected=true score=61")
    assert twiceshy(service, "runs", "list", "--reference", "contract 1", "--tag", run).splitlines()[1].startswith(run)
    assert twiceshy(service, "runs", "list", "--children-of", f"{run}-0") == "No runs.\n"
