"""Runs of a service as files: exported, imported under another name or elsewhere, and the same again."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.integration.test_recording import append, delivery, digest_of, intent, log_of, record
from tests.service import ServiceProcess
from twiceshy import Guard, Recording, RecordingRefused
from twiceshy._commands import main
from twiceshy_contract.events import Delivery, Intent

MESSAGE = '{"content":"Wo ist Zürich?\\n","role":"user"}'
FIRST = json.dumps({"items": [{"$blob": digest_of(MESSAGE)}, "hi"]}, separators=(",", ":"))
SECOND = json.dumps({"items": [{"role": "user"}], "after": digest_of(FIRST)}, separators=(",", ":"))
PRETTY = json.dumps({"found": ["x" * 2000, None]}, indent=2)
BLOBS = {digest_of(text): text for text in (MESSAGE, FIRST, SECOND, PRETTY)}
EVENTS = [
    intent(1, "model", kind="llm_call", arguments={"messages": {"$list": digest_of(FIRST)}}),
    delivery(2, 1, value="Wo?"),
    intent(3, "look", arguments={"where": "GB-SCT", "until": {"$dec": "1.50"}}),
    intent(4, "model", kind="llm_call", arguments={"messages": {"$list": digest_of(SECOND)}}),
    delivery(
        5, 4, outcome="error", error={"type": "E", "message": "m", "data": {"body": {"$blob": digest_of(PRETTY)}}}
    ),
    delivery(6, 3, value={"$blob": digest_of(PRETTY)}, took=17),
    intent(7, "never"),
]


def command(service: ServiceProcess, *words: str) -> Result:
    clean: dict[str, str | None] = {name: None for name in os.environ if name.startswith("TWICESHY_")}
    return CliRunner().invoke(main, [*words, "--url", service.url], env=clean)


@pytest.fixture
def recorded(service: ServiceProcess, run: str) -> str:
    about = {"workflow": "contracts", "agent_version": "7", "input": {"text": {"$blob": digest_of(MESSAGE)}}}
    service.ask("POST", "/v1/runs", {"run": run, "record": True, "about": about})
    assert append(service, run, 1, *EVENTS, blobs=BLOBS).body["next_seq"] == 8
    assert service.ask("POST", f"/v1/runs/{run}/facts", {"facts": {"escalated": True}}).status == 200
    assert service.ask("POST", f"/v1/runs/{run}/finish", {"as": "failed"}).status == 200
    return run


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_a_run_survives_a_file_and_another_service(
    service: ServiceProcess, recorded: str, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"{recorded}.{ending}"
    exported = command(service, "runs", "export", recorded, "-o", str(path))
    assert exported.output == f"{path} has 1 run with 7 events.\n"
    with ServiceProcess(f"sqlite:///{tmp_path / 'other.db'}") as other:
        imported = command(other, "runs", "import", str(path))
        assert imported.output == f"Run {recorded}: 7 events were added.\n"
        here, there = (one.ask("GET", f"/v1/runs/{recorded}").body for one in (service, other))
        for told in (here, there):
            for name in ("id", "started_at", "ended_at"):
                del told[name]
        assert there == here
        assert log_of(other, recorded) == log_of(service, recorded) == {"items": EVENTS, "next": None}
        blobs = other.ask("POST", "/v1/blobs/read", {"digests": list(BLOBS)}).body["blobs"]
        assert blobs == BLOBS
        again = command(other, "runs", "import", str(path))
        assert again.output == f"Run {recorded} is there already, with all 7 events.\n"
        assert other.ask("GET", f"/v1/runs/{recorded}").body["epoch"] == 1


def test_a_run_is_imported_beside_itself_under_another_name(
    service: ServiceProcess, recorded: str, tmp_path: Path
) -> None:
    path, copy = str(tmp_path / "run.jsonl"), f"{recorded}-copy"
    command(service, "runs", "export", recorded, "-o", path)
    result = command(service, "runs", "import", path, "--as", copy, "--json")
    assert json.loads(result.output) == {"runs": [{"run": copy, "events": 7, "added": 7, "left_out": None}]}
    assert log_of(service, copy) == log_of(service, recorded)
    with Guard(service.url, spool=None) as guard, Recording.of(guard, copy) as read:
        assert (read.run, len(read), read.head.state) == (copy, 7, "failed")
        assert read.head.about is not None
        assert read.whole(read.head.about.input) == {"text": json.loads(MESSAGE)}
        second, found = read.events[3], read.events[5]
        assert isinstance(second, Intent)
        assert isinstance(found, Delivery)
        assert read.arguments(second) == {"messages": [json.loads(MESSAGE), "hi", {"role": "user"}]}
        assert read.value(found) == json.loads(PRETTY)


def test_an_import_that_was_cut_off_goes_on(service: ServiceProcess, recorded: str, tmp_path: Path) -> None:
    path, copy = str(tmp_path / "run.jsonl"), f"{recorded}-copy"
    command(service, "runs", "export", recorded, "-o", path)
    record(service, copy)
    append(service, copy, 1, *EVENTS[:4], blobs=BLOBS)
    result = command(service, "runs", "import", path, "--as", copy)
    assert result.output == f"Run {copy}: 3 events were added to the 4 that were there.\n"
    assert log_of(service, copy) == log_of(service, recorded)


def test_a_run_with_other_events_is_left_alone(service: ServiceProcess, recorded: str, tmp_path: Path) -> None:
    path, other = str(tmp_path / "run.jsonl"), f"{recorded}-other"
    command(service, "runs", "export", recorded, "-o", path)
    record(service, other)
    append(service, other, 1, intent(1), intent(2))
    result = command(service, "runs", "import", path, "--as", other)
    assert result.exit_code == 1
    assert "it is not this recording: its event 1 here is another." in result.output
    view = service.ask("GET", f"/v1/runs/{other}").body
    assert (view["epoch"], view["events"], view["about"]) == (1, 2, None)


def test_runs_are_found_and_exported_by_what_is_known_of_them(
    service: ServiceProcess, recorded: str, tmp_path: Path
) -> None:
    reference = f"contract {recorded}"
    for name in ("a", "b"):
        service.ask(
            "POST", "/v1/runs", {"run": f"{recorded}-{name}", "record": True, "about": {"reference": reference}}
        )
        append(service, f"{recorded}-{name}", 1, intent(1))
    path = tmp_path / "found.jsonl"
    words = ["runs", "export", "--all", "--reference", reference, "-o", str(path), "--json"]
    told: Any = json.loads(command(service, *words).output)
    assert [each["run"] for each in told["runs"]] == [f"{recorded}-a", f"{recorded}-b"]


def test_a_run_that_is_not_there_or_was_not_recorded_is_said(service: ServiceProcess, run: str) -> None:
    missing = command(service, "runs", "export", run)
    assert (missing.exit_code, f"There is no run '{run}'" in missing.output) == (1, True)
    service.ask("POST", "/v1/runs", {"run": run})
    assert f"Run {run} was not recorded: it has no events." in command(service, "runs", "export", run).output
    with Guard(service.url, spool=None) as guard, pytest.raises(RecordingRefused, match="it has no events"):
        guard.recording(run)


def test_an_execution_log_is_imported(service: ServiceProcess, run: str, tmp_path: Path) -> None:
    turn = {"turnId": "1", "timestamp": "2026-06-15T10:00:00Z", "type": "tool_call", "durationMs": 5}
    turn |= {"request": {"name": "look", "args": {"at": "GB"}}, "response": {"result": {"$ref": "x" * 2000}}}
    log = {"sessionId": run, "agentVersion": "1", "promptVersion": "2", "startedAt": "2026-06-15T10:00:00Z"}
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({**log, "turns": [turn], "outcome": "resolved"}, indent=2))
    assert command(service, "runs", "import", str(path)).output == f"Run {run}: 2 events were added.\n"
    view = service.ask("GET", f"/v1/runs/{run}").body
    assert (view["state"], view["facts"]) == ("finished", {"outcome": "resolved"})
    assert log_of(service, run)["items"][0]["arguments"] == {"at": "GB"}
    back = command(service, "runs", "export", run, "--form", "execution-log")
    assert json.loads(back.output)["turns"][0]["response"] == {"result": {"$ref": "x" * 2000}}
