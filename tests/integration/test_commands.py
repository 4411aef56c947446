"""The command line against a running service, on both databases: what one command shows, the next can use."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from tests.service import ServiceProcess
from twiceshy._commands import main


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TWICESHY_")]:
        monkeypatch.delenv(name)


def twiceshy(service: ServiceProcess, *words: str, **more: Any) -> Result:
    result = CliRunner().invoke(main, [*words, "--url", service.url], **more)
    assert result.exit_code == 0, result.output
    return result


def as_json(service: ServiceProcess, *words: str) -> Any:
    return json.loads(twiceshy(service, *words, "--json").stdout)


def test_a_declaration_is_changed_part_by_part_and_shown(service: ServiceProcess) -> None:
    tool = f"mail {uuid4().hex[:8]} ü?%"
    declared = twiceshy(service, "tools", "declare", tool, "--content", "/subject", "--normaliser", "/to=email")
    assert declared.output.splitlines()[:2] == [
        f"Tool {tool} is at version 1 (nobody had declared it).",
        "  content: +/subject",
    ]
    assert "nothing changed" in twiceshy(service, "tools", "declare", tool).output
    again = twiceshy(service, "tools", "declare", tool, "--class", "idempotent", "--content", "/body")
    assert again.output.splitlines() == [
        f"Tool {tool} is at version 2 (was 1).",
        "  class: side_effect → idempotent",
        "  content: -/subject +/body",
    ]
    shown = as_json(service, "tools", "show", tool)
    assert shown["declaration"]["arguments"]["normalisers"] == {"/to": "email"}
    copied = json.dumps(shown["declaration"])
    twiceshy(service, "tools", "declare", f"{tool} copy", "--file", "-", input=copied)
    assert as_json(service, "tools", "show", f"{tool} copy")["declaration"] == shown["declaration"]
    listed = {item["name"]: item["version"] for item in as_json(service, "tools", "list")["items"]}
    assert (listed[tool], listed[f"{tool} copy"]) == (2, 1)
    assert tool in twiceshy(service, "tools", "list").output


def test_what_the_service_refuses_of_a_declaration_names_the_place(service: ServiceProcess) -> None:
    words = ["tools", "declare", f"t{uuid4().hex}", "--content", "/a", "--ignored", "/a", "--url", service.url]
    refused = CliRunner().invoke(main, words)
    assert (refused.exit_code, "/arguments/ignored/0" in refused.output) == (1, True)


def test_a_run_is_shown_oldest_first_and_finished_once(service: ServiceProcess, run: str) -> None:
    name = f"{run} ü%?#"
    grants = [service.begin(name, arguments={"n": n}, worker=f"w{n}") for n in range(3)]
    service.report("commit", grants[1], result=1)
    shown = as_json(service, "runs", "show", name)
    assert (shown["run"]["run"], shown["run"]["effects"]) == (name, 3)
    assert [(effect["step"], effect["state"], effect["worker"]) for effect in shown["effects"]] == [
        (1, "executing", "w0"), (2, "succeeded", "w1"), (3, "executing", "w2"),
    ]  # fmt: skip
    keys = [line.split()[3] for line in twiceshy(service, "runs", "show", name).output.splitlines()[-3:]]
    assert keys == [grant.body["key"] for grant in grants]
    finished = twiceshy(service, "runs", "finish", name, "--as", "cancelled")
    assert finished.output.startswith(f"Run {name} is cancelled. It serves the record of its 3 effects")
    assert name in [item["run"] for item in as_json(service, "runs", "list", "--state", "cancelled", "--all")["items"]]
    refused = CliRunner().invoke(main, ["runs", "finish", name, "--url", service.url])
    assert (refused.exit_code, "is cancelled already" in refused.output) == (1, True)
    missing = CliRunner().invoke(main, ["runs", "show", f"no-{run}", "--url", service.url])
    assert (missing.exit_code, "There is no run" in missing.output) == (1, True)


def test_the_key_of_a_preview_is_the_key_of_the_call(service: ServiceProcess, run: str) -> None:
    call = ["keys", "preview", "--tool", "pay", "--arguments", '{"to": "bob", "amount": 5.0}', "--run", run]
    assert "unknown until run" in twiceshy(service, *call).output
    key = service.begin(run, arguments={"amount": 5, "to": "bob"}).body["key"]
    assert as_json(service, *call)["key"] == key
    assert key in twiceshy(service, *call).output
    business = ["keys", "preview", "--tool", "pay", "--arguments", "{}", "--business-key", f"order {run}"]
    assert as_json(service, *business)["rule"] == "business_key"


def test_a_listing_longer_than_a_page_is_whole_and_in_order(service: ServiceProcess, run: str) -> None:
    for n in range(503):
        service.begin(run, arguments={"n": n}, lease_seconds=3600)
    listed = as_json(service, "effects", "list", "--run", run, "--limit", "502")
    assert [effect["step"] for effect in listed["items"]] == list(range(503, 1, -1))
    assert listed["next"] is not None
    everything = twiceshy(service, "effects", "list", "--run", run, "--all").output.splitlines()
    assert len(everything) == 1 + 503
    shown = as_json(service, "runs", "show", run)
    assert [effect["step"] for effect in shown["effects"]] == list(range(1, 504))


def test_closed_doubt_is_listed_only_where_it_is_asked_for(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    service.report("fail", grant, kind="unknown", error={"type": "TimeoutError", "message": "no answer"})
    twiceshy(service, "effects", "resolve", grant.body["key"], "--as", "closed", "--reason", "nobody knows")
    doubt = ["effects", "list", "--state", "in_doubt", "--run", run]
    assert as_json(service, *doubt)["items"] == []
    assert [effect["closed"] for effect in as_json(service, *doubt, "--closed")["items"]] == [True]


def test_the_doctor_sees_a_durable_file_and_a_server_that_is_not(service: ServiceProcess, backend: str) -> None:
    result = CliRunner().invoke(main, ["doctor", "--url", service.url, "--json"])
    report = json.loads(result.stdout)
    levels = {finding["check"]: finding["level"] for finding in report["checks"]}
    assert [levels[name] for name in ("settings", "service", "token", "versions", "clock", "database")] == ["ok"] * 6
    assert levels["durability"] == {"sqlite": "ok", "postgresql": "fail"}[backend]
    assert (report["ok"], result.exit_code) == {"sqlite": (True, 0), "postgresql": (False, 1)}[backend]


def test_the_doctor_looks_at_a_database_itself(database_url: str, backend: str) -> None:
    result = CliRunner().invoke(main, ["doctor", "--database", database_url, "--json"])
    levels = {finding["check"]: finding["level"] for finding in json.loads(result.stdout)["checks"]}
    assert (levels["database"], levels["clock"], levels["doubt"]) == ("ok", "ok", "ok")
    assert ("room" in levels) == (backend == "sqlite")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://postgres:hidden@127.0.0.1:1/none", "could not be reached"),
        ("mysql://localhost/x", "postgresql://"),
        ("sqlite:///missing.db", "There is no database missing.db yet"),
    ],
)
def test_a_database_that_cannot_be_looked_at_is_a_finding(address: str, words: str) -> None:
    result = CliRunner().invoke(main, ["doctor", "--database", address])
    assert (result.exit_code, words in result.output, "hidden" in result.output) == (1, True, False)


def test_a_token_is_asked_for_and_taken(tmp_path: Path) -> None:
    with ServiceProcess(f"sqlite:///{tmp_path}/a.db", TWICESHY_TOKENS="sesame") as service:
        for words in (["effects", "list"], ["tools", "list"], ["runs", "list"], ["doctor"]):
            refused = CliRunner().invoke(main, [*words, "--url", service.url])
            assert (refused.exit_code, "TWICESHY_TOKEN" in refused.output) == (1, True)
            taken = CliRunner().invoke(main, [*words, "--url", service.url], env={"TWICESHY_TOKEN": "sesame"})
            assert taken.exit_code == 0, taken.output


def test_bash_completes_commands_with_its_script(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    program = tmp_path / "twiceshy"
    program.write_text(f'#!{sys.executable}\nfrom twiceshy._commands import main\nmain(prog_name="twiceshy")\n')
    program.chmod(0o755)
    typed = (
        'eval "$(twiceshy completion bash)"\nCOMP_WORDS=(twiceshy effects list --state in)\nCOMP_CWORD=4\n'
        '_twiceshy_completion twiceshy\necho "${COMPREPLY[@]}"\n'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([bash, "--norc"], input=typed, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("in_doubt\n", "")


def test_a_service_that_knows_of_nothing_does_not_hide_the_record_of_this_folder(
    service: ServiceProcess, tmp_path: Path, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twiceshy._commands.service.DEFAULT_URL", service.url)
    nothing = CliRunner().invoke(main, ["effects", "list", "--run", run])
    assert (nothing.exit_code, nothing.stderr) == (0, "")
    (tmp_path / "twiceshy.db").touch()
    mentioned = CliRunner().invoke(main, ["effects", "list", "--run", run])
    assert "--url sqlite:///twiceshy.db" in mentioned.stderr
    service.begin(run)
    found = CliRunner().invoke(main, ["effects", "list", "--run", run])
    assert (found.exit_code, found.stderr) == (0, "")
