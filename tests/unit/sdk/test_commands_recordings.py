"""`twiceshy runs export` and `twiceshy runs import`: logs of runs into files, and out of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sdk.commands import run
from tests.unit.sdk.logs import LogService, conversation, head, logged, saved
from twiceshy import Recording
from twiceshy_contract.runs import RunAbout


def small(run_name: str, value: int = 1, **fields: Any) -> Recording:
    events = logged([({"a": value}, value), ({"a": "x" * 2000}, value)])
    return Recording.from_events(head(run_name, len(events[0]), **fields), *events)


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz", "run.jsonl.zst"])
def test_a_run_is_exported_into_a_file(tmp_path: Path, name: str) -> None:
    result = run(LogService(conversation()), "runs", "export", "order-1042", "-o", str(tmp_path / name))
    assert (result.exit_code, result.output) == (0, f"{tmp_path / name} has 1 run with 6 events.\n")
    with Recording.load(tmp_path / name) as read:
        assert list(read.events) == list(conversation().events)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_run_is_exported_onto_standard_output(tmp_path: Path) -> None:
    result = run(LogService(conversation()), "runs", "export", "order-1042")
    assert result.stdout_bytes == saved(conversation(), tmp_path).read_bytes()


def test_several_runs_go_into_one_file_each_once(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.jsonl")
    service = LogService(small("a"), small("b"))
    result = run(service, "runs", "export", "b", "a", "b", "-o", path, "--json")
    assert json.loads(result.output) == {
        "file": path,
        "form": "recording",
        "runs": [{"run": "b", "events": 4}, {"run": "a", "events": 4}],
    }
    loaded = Recording.load_all(path)
    assert [each.run for each in loaded] == ["b", "a"]
    for each in loaded:
        each.close()


def test_all_recorded_runs_are_exported_oldest_first(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    service = LogService(small("a"), small("b"))
    service.runs["never recorded"] = head("never recorded")
    words = ["--all", "--state", "failed", "--tag", "x", "--tag", "y", "--fact", "escalated=true"]
    result = run(service, "runs", "export", *words, "-o", str(path))
    assert result.output == f"{path} has 2 runs with 8 events.\n"
    assert service.asked[0][1] == "/v1/runs?state=failed&tag=x&tag=y&fact=escalated%3Dtrue&limit=500"
    loaded = Recording.load_all(path)
    assert [each.run for each in loaded] == ["a", "b"]
    for each in loaded:
        each.close()


def test_a_run_is_exported_as_an_execution_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    result = run(LogService(small("a")), "runs", "export", "a", "--form", "execution-log", "-o", str(path))
    assert result.output == f"{path} has 1 run with 4 events.\n"
    (log,) = map(json.loads, path.read_text().splitlines())
    assert [(turn["request"]["name"], turn["response"]) for turn in log["turns"]] == [("look", {"result": 1})] * 2


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["export"], 2, "Say which runs: their names, or --all."),
        (["export", "a", "--all"], 2, "Say which runs: their names, or --all."),
        (["export", "a", "--state", "failed"], 2, "--state chooses among all runs: add --all."),
        (["export", "a", "--json"], 2, "name a file with -o to have --json"),
        (["export", "a/b"], 2, "'a/b' is not the name of a run"),
        (["export", "a", "missing", "-o", "x.jsonl"], 1, "There is no run 'missing'. `twiceshy runs list` shows"),
        (["export", "a", "-o", "missing/x.jsonl"], 1, "missing/x.jsonl cannot be written: No such file or directory."),
        (["export", "empty", "-o", "x.jsonl"], 1, "Run empty was not recorded: it has no events."),
        (["import", "missing.jsonl"], 2, "'missing.jsonl' does not exist"),
        (["import", "text"], 1, "text, line 1: this is not JSON"),
        (["import", "both", "--as", "c"], 2, "--as names one run, and both holds 2."),
    ],
)
def test_what_cannot_be_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("no\n")
    Path("both").write_bytes(
        saved(small("a"), tmp_path, "a").read_bytes() + saved(small("b"), tmp_path, "b").read_bytes()
    )
    before = {*tmp_path.iterdir()}
    service = LogService(small("a"))
    service.runs["empty"] = head("empty")
    result = run(service, "runs", *words)
    assert result.exit_code == code, result.output
    assert says in " ".join(result.output.split())
    assert {*tmp_path.iterdir()} == before
    assert [asked for asked in service.asked if asked[0] == "POST" and "blobs/read" not in asked[1]] == []


def test_an_export_that_is_cut_off_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("before")
    service = LogService(conversation())
    service.fails_at = 5
    result = run(service, "runs", "export", "order-1042", "-o", str(path))
    assert result.exit_code == 1
    assert (path.read_text(), [*tmp_path.iterdir()]) == ("before", [path])


def test_none_of_that_kind_is_said(tmp_path: Path) -> None:
    result = run(LogService(), "runs", "export", "--all", "-o", str(tmp_path / "x"))
    assert (result.exit_code, result.output) == (1, "Error: No such runs; nothing was written.\n")


def test_a_recording_is_imported_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    about = RunAbout(workflow="w", agent_version="2")
    recording = small("a", about=about, facts={"escalated": True}, state="failed")
    service = LogService()
    result = run(service, "runs", "import", str(saved(recording, tmp_path, "a.jsonl.gz")))
    assert (result.exit_code, result.output) == (0, "Run a: 4 events were added.\n")
    assert service.events["a"] == LogService(recording).events["a"]
    assert service.blobs == LogService(recording).blobs
    assert ("POST", "/v1/runs", {"run": "a", "record": True, "about": {"workflow": "w", "agent_version": "2"}}) in (
        service.asked
    )
    assert (service.runs["a"].state, service.runs["a"].facts) == ("failed", {"escalated": True})


def test_a_recording_is_imported_under_another_name_and_as_json(tmp_path: Path) -> None:
    service = LogService()
    result = run(service, "runs", "import", str(saved(small("a"), tmp_path)), "--as", "b c", "--json")
    assert json.loads(result.output) == {"runs": [{"run": "b c", "events": 4, "added": 4, "left_out": None}]}
    assert list(service.runs) == ["b c"]


def test_an_import_again_adds_nothing_and_one_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    path = str(saved(small("a", facts={"score": 1}, state="finished"), tmp_path))
    service = LogService(small("a"))
    service.events["a"] = service.events["a"][:2]
    service.runs["a"] = head("a", 2)
    assert run(service, "runs", "import", path).output == "Run a: 2 events were added to the 2 that were there.\n"
    assert (len(service.events["a"]), service.runs["a"].state, service.runs["a"].facts) == (4, "finished", {"score": 1})
    service.asked.clear()
    assert run(service, "runs", "import", path).output == "Run a is there already, with all 4 events.\n"
    assert {method for method, _, _ in service.asked} == {"GET"}


def test_an_import_whose_last_words_were_lost_says_them(tmp_path: Path) -> None:
    path = str(saved(small("a", facts={"score": 1}, state="finished"), tmp_path))
    service = LogService(small("a"))
    assert run(service, "runs", "import", path).output == "Run a is there already, with all 4 events.\n"
    assert (service.runs["a"].state, service.runs["a"].facts) == ("finished", {"score": 1})
    assert service.runs["a"].epoch == 0


def test_a_recording_without_events_is_imported_as_such(tmp_path: Path) -> None:
    path, service = str(saved(Recording.from_events(head("a"), []), tmp_path)), LogService()
    for _ in range(2):
        assert run(service, "runs", "import", path).output == "Run a is there; it has no events.\n"
    assert list(service.runs) == ["a"]


def test_a_run_that_has_gone_on_since_is_left_alone(tmp_path: Path) -> None:
    events = logged([({"a": 1}, 1)])
    path = str(saved(Recording.from_events(head("a"), *events), tmp_path))
    service = LogService(small("a"))
    assert run(service, "runs", "import", path).output == "Run a is there already, with all 2 events.\n"
    assert {method for method, _, _ in service.asked} == {"GET"}


@pytest.mark.parametrize(
    ("here", "says"),
    [
        (small("a", 2), "its event 1 here is another"),
        (Recording.from_events(head("a", effects=3), []), "it has effects here and was not recorded"),
        (Recording.from_events(head("a", state="failed"), []), "it is failed here with 0 events, and takes no more"),
    ],
)
def test_a_run_of_the_name_that_is_another_is_refused(tmp_path: Path, here: Recording, says: str) -> None:
    service = LogService(here)
    result = run(service, "runs", "import", str(saved(small("a"), tmp_path)))
    assert result.exit_code == 1
    assert result.output == (
        f"Error: There is a run a already, and it is not this recording: {says}. Import it under another name: "
        "--as NAME.\n"
    )
    assert {method for method, _, _ in service.asked} == {"GET"}


def test_nothing_is_sent_of_a_file_that_is_wrong_at_its_end(tmp_path: Path) -> None:
    path = saved(small("a"), tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    service = LogService()
    result = run(service, "runs", "import", str(path))
    assert (result.exit_code, service.asked) == (1, [])
    assert "run.jsonl, line " in result.output


def test_an_import_that_loses_the_service_says_how_far_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twiceshy._commands.recordings_upload.MAX_EVENTS", 1)
    path = str(saved(small("a"), tmp_path))
    service = LogService()
    service.fails_at = 5
    result = run(service, "runs", "import", path)
    assert result.exit_code == 1
    assert "Of run a 2 of 4 events are there; the same import again goes on." in " ".join(result.output.split())
    service.fails_at = None
    assert run(service, "runs", "import", path).output == "Run a: 2 events were added to the 2 that were there.\n"


def test_parents_are_imported_before_the_runs_that_they_started(tmp_path: Path) -> None:
    path = tmp_path / "family.jsonl"
    family = [small("child", parent="mother"), small("mother", parent="gone")]
    path.write_bytes(b"".join(saved(each, tmp_path, each.run).read_bytes() for each in family))
    service = LogService()
    assert run(service, "runs", "import", str(path)).output == (
        "Run mother: 4 events were added. Its parent gone is not here, so it is imported without one.\n"
        "Run child: 4 events were added.\n"
    )
    assert [service.runs[name].parent for name in ("mother", "child")] == [None, "mother"]


def test_a_recording_is_imported_from_standard_input(tmp_path: Path) -> None:
    text = saved(small("a"), tmp_path).read_text()
    assert run(LogService(), "runs", "import", "-", input=text).output == "Run a: 4 events were added.\n"
