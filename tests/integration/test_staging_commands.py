"""`twiceshy destinations` and `twiceshy outbox` against a real service: what is declared, staged, and seen to."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.integration.staging import declared, message, stage
from tests.service import ServiceProcess
from twiceshy._commands import main


class Line:
    """The command line, said to a service."""

    def __init__(self, service: ServiceProcess) -> None:
        self._url = service.url

    def __call__(self, *words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [*words, "--url", self._url], env={"TWICESHY_TOKEN": None})
        assert result.exit_code == code, result.output
        return result

    def json(self, *words: str) -> Any:
        return msgspec.json.decode(self(*words, "--json").output)


@pytest.fixture
def line(service: ServiceProcess) -> Line:
    return Line(service)


def test_destinations_of_a_file_are_declared_changed_reached_and_removed(line: Line, tmp_path: Path) -> None:
    hook, log = f"hook-{uuid4().hex[:8]}", f"log-{uuid4().hex[:8]}"
    file = tmp_path / "destinations.yaml"
    written = f"destinations:\n  {hook}: {{kind: webhook, url: 'https://hooks.example/x'}}\n  {log}: {{kind: log}}\n"
    file.write_text(written)
    first = line("destinations", "apply", str(file), "--yes").output
    assert first.splitlines()[0] == f"+ {hook}: new"
    assert first.endswith("2 new, 0 changed, 0 unchanged.\nApplied.\n")
    again = line("destinations", "apply", str(file)).output
    assert again.splitlines()[-1] == "0 new, 0 changed, 2 unchanged."
    file.write_text(written.replace("kind: log", "kind: log, attempts: 3"))
    changed = line("destinations", "apply", str(file), "--yes").output.splitlines()
    assert changed[1:3] == [f"~ {log}: changed", "    attempts: 8 → 3"]
    assert line.json("destinations", "show", log)["version"] == 2
    assert {hook, log} <= {it["name"] for it in line.json("destinations", "list")["items"]}
    assert "attempts" in line("destinations", "show", log).output
    line("destinations", "pause", hook, "--reason", "moving", "--by", "ann")
    assert "paused" in line("destinations", "list").output
    line("destinations", "resume", hook, "--reason", "moved")
    line("destinations", "remove", hook, "--reason", "gone")
    assert "There is no destination" in line("destinations", "show", hook, code=1).output


def test_what_the_service_does_not_take_is_named_by_its_line(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "destinations.yaml"
    file.write_text("destinations:\n  hook:\n    kind: webhook\n    url: ftp://hooks.example/x\n")
    said = line("destinations", "apply", str(file), "--yes", code=2).output
    assert "destinations.yaml:4:5: /destinations/hook/url: the URL of a webhook begins with" in said


def test_messages_are_listed_shown_taken_back_and_sent_anew(line: Line, service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    line("destinations", "pause", hook, "--reason", "a test")
    answer = stage(service, run, message(hook, {"order": 7}, type="order.created", lane="o-7")).body
    (id_,) = answer["messages"]
    listed = line("outbox", "list", "--run", run, "--destination", hook).output.splitlines()[1].split()
    assert listed[:6] == [id_, "pending", hook, "o-7", "order.created", run]
    shown = line("outbox", "show", id_).output
    assert 'Body (application/json, 11 bytes)\n  {"order":7}\n' in shown
    assert f"`twiceshy outbox cancel {id_} --reason ...`" in shown
    assert id_ in line("effects", "show", answer["key"]).output
    refused = line("outbox", "redrive", id_, "--as", "retry", "--reason", "r", code=1)
    assert "waits to be sent" in refused.output
    line("outbox", "cancel", id_, "--reason", "wrong", "--by", "ann")
    assert line("outbox", "list", "--run", run).output.startswith("No messages wait.")
    assert [it["state"] for it in line.json("outbox", "list", "--run", run, "--state", "cancelled")["items"]] == [
        "cancelled"
    ]
    assert line("outbox", "redrive", id_, "--as", "anew", "--reason", "after all").output.startswith("1 message is")
    again = line.json("outbox", "show", id_)
    assert (again["epoch"], again["state"]) == (2, "pending")
    words = ("--state", "dead", "--destination", hook, "--as", "retry", "--reason", "r", "--yes")
    redriven = line("outbox", "redrive", *words)
    assert redriven.output == "0 messages are to be sent again.\n"
