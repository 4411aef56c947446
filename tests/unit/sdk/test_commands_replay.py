"""`twiceshy runs replay` and `promote`: an agent against a record, on the command line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.unit.sdk.call_logs import Writing
from twiceshy._commands import main

AGENT = """
from twiceshy import Guard

guard = Guard("http://127.0.0.1:9", spool="spool")


@guard.tool(effect="read")
def lookup(jurisdiction: str) -> list[str]:
    raise RuntimeError("a tool ran in a replay")


@guard.tool()
def file_risk(contract: int, risk: str) -> str:
    raise RuntimeError("a tool ran in a replay")


def review():
    print("reviewing")
    with guard.run("contract-7"):
        risk = "high" if lookup("GB-SCT") else "low"
        return {"risk": risk, "filed": file_risk(7, risk)}


def broken():
    review()
    raise KeyError("no such contract")


NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with an agent and the recording of what it did."""
    writing = Writing()
    writing.tool("lookup", {"jurisdiction": "GB-SCT"}, [])
    writing.tool("file_risk", {"contract": 7, "risk": "low"}, "filed-1")
    writing.recording().save(tmp_path / "case.jsonl")
    (tmp_path / "contract_agents.py").write_text(AGENT)
    (tmp_path / "faulty.py").write_text("import contract_agents\nraise ValueError('not today')\n")
    (tmp_path / "needy.py").write_text("import nothing_of_this_name\n")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TWICESHY_")]:
        monkeypatch.delenv(name)
    known = dict(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = known[1]
    for name in [name for name in sys.modules if name not in known[0]]:
        del sys.modules[name]


def runs(*words: str) -> Result:
    return CliRunner().invoke(main, ["runs", *words])


def replayed(*words: str, agent: str = "contract_agents:review") -> Result:
    return runs("replay", "case.jsonl", "--agent", agent, *words)


@pytest.mark.usefixtures("folder")
def test_a_replay_shows_what_the_agent_did_and_ends_with_0() -> None:
    result = replayed()
    assert (result.exit_code, result.stderr) == (0, "reviewing\n"), result.output
    lines = result.stdout.splitlines()
    assert lines[1] == "       Called lookup with jurisdiction 'GB-SCT'; it returned nothing (empty list)."
    assert lines[3] == "       Called file_risk with contract 7, risk 'low'; it returned 'filed-1'."
    assert lines[-1] == "The code did what was recorded."
    assert replayed(agent="contract_agents.py:review").exit_code == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("override", ['lookup=["act"]', 'lookup#1=["act"]', '1=["act"]', '2=["act"]'])
def test_an_override_changes_one_outcome_and_an_answer_what_is_not_recorded(override: str) -> None:
    diverged = replayed("--override", override)
    assert (diverged.exit_code, "It diverged: file_risk" in diverged.stdout) == (1, True), diverged.stdout
    words = ["--mode", "retest", "--override", override, "--answer", 'file_risk="filed-2"', "--json"]
    told = msgspec.json.decode(replayed(*words).stdout)
    assert told["value"] == {"risk": "high", "filed": "filed-2"}
    assert [(each["class"], each["seq"]) for each in told["divergences"]] == [("arguments", 3)]
    assert told["divergences"][0]["arguments"] == [{"path": "/risk", "left": "low", "right": "high"}]
    first = told["timeline"][0]
    assert (first["name"], first["marks"]) == ("lookup", ["override", "counterfactual"])


@pytest.mark.usefixtures("folder")
def test_an_error_is_put_in_the_place_of_an_outcome() -> None:
    error = '{"type": "ValueError", "message": "closed today"}'
    told = msgspec.json.decode(replayed("--override-error", f"lookup={error}", "--json").stdout)
    assert (told["error"]["type"], told["error"]["message"]) == ("ValueError", "closed today")


@pytest.mark.usefixtures("folder")
def test_a_replay_pauses_at_an_event_and_ends_with_3() -> None:
    paused = replayed("--mode", "until", "--at", "3")
    assert (paused.exit_code, "risk = 'low'" in paused.stdout) == (3, True), paused.output


WRONG = [
    (
        ["--agent", "contract_agents"],
        2,
        "--agent is module:function, such as shop.agent:main; 'contract_agents' is not.",
    ),
    (["--agent", "contract_agents:revieew"], 2, "contract_agents has no 'revieew'; did you mean review?"),
    (["--agent", "contract_agents:NUMBER"], 2, "contract_agents:NUMBER is no function, but 3."),
    (["--agent", "gone:main"], 2, "there is no module 'gone' in "),
    (["--agent", "gone.py:main"], 2, "there is no file gone.py."),
    (["--agent", "needy:main"], 1, "needy cannot be imported: ModuleNotFoundError: No module named 'nothing_of_this"),
    (["--agent", "faulty:main"], 1, "faulty cannot be imported: ValueError: not today ("),
    (["--override", "lookup"], 2, "--override is CALL=JSON, such as 8=[] or lookup#2=null; 'lookup' is not."),
    (["--override", "lookup={"], 2, "--override lookup is not JSON"),
    (["--override", "lokup=[]"], 2, "No call of the recording is named 'lokup'; did you mean lookup?"),
    (["--override", "90=[]"], 2, "there is no event 90"),
    (["--override", "lookup#0=[]"], 2, "occurrence counts from 1"),
    (["--answer", "flag"], 2, "--answer is TOOL=JSON, such as flag=true; 'flag' is not."),
    (["--mode", "until"], 2, "at is an event from 1 to 4"),
    (["--llm", "liv"], 2, "llm is 'liv'; did you mean live?"),
    (["--llm", "contract_agents:nobody"], 2, "--llm: contract_agents has no 'nobody'"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("words", "code", "said"), WRONG)
def test_what_cannot_be_replayed_says_what_is_wrong(words: list[str], code: int, said: str) -> None:
    agent = [] if "--agent" in words else ["--agent", "contract_agents:review"]
    result = runs("replay", "case.jsonl", *agent, *words)
    assert (result.exit_code, said in result.output) == (code, True), result.output


TEST = '''"""Run contract-7 of 2026-11-30, held against the agent of today."""

import pytest

from contract_agents import review


@pytest.mark.twiceshy(recording="case_7.jsonl", mode="retest")
def test_case_7(replayed):
    happened = replayed(review)
    happened.in_order("lookup", "file_risk")
    happened.outcome({'risk': 'low', 'filed': 'filed-1'})
'''


def python_m_pytest(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_promoted_run_is_a_test_that_passes_until_the_agent_changes(folder: Path) -> None:
    promoted = runs("promote", "case.jsonl", "--agent", "contract_agents:review", "--name", "Case #7")
    assert promoted.exit_code == 0, promoted.output
    assert promoted.stdout.splitlines() == [
        "tests/recordings/case_7.jsonl is the recording of run contract-7, tests/recordings/test_case_7.py its test.",
        "Run it: python -m pytest tests/recordings/test_case_7.py",
    ]
    assert (folder / "tests/recordings/test_case_7.py").read_text() == TEST
    passed = python_m_pytest(folder, "tests/recordings/test_case_7.py")
    assert passed.returncode == 0, passed.stdout
    (folder / "contract_agents.py").write_text(AGENT.replace('else "low"', 'else "unknown"'))
    failed = python_m_pytest(folder, "tests/recordings/test_case_7.py")
    assert (failed.returncode, "It diverged: file_risk" in failed.stdout) == (1, True), failed.stdout


def test_a_promoted_run_that_failed_is_held_to_its_error(folder: Path) -> None:
    writing = Writing("failed-7", state="failed")
    writing.tool("lookup", {"jurisdiction": "GB-SCT"}, [])
    writing.tool("file_risk", {"contract": 7, "risk": "low"}, "filed-1")
    writing.recording().save(folder / "failed.jsonl")
    promoted = runs("promote", "failed.jsonl", "--agent", "contract_agents:broken", "--dir", "cases")
    assert promoted.exit_code == 0, promoted.output
    test = (folder / "cases/test_failed_7.py").read_text()
    assert "    happened.raised(KeyError, \"'no such contract'\")\n" in test
    passed = python_m_pytest(folder, "cases/test_failed_7.py")
    assert passed.returncode == 0, passed.stdout


@pytest.mark.usefixtures("folder")
def test_an_agent_that_has_changed_already_is_said_when_its_run_is_promoted() -> None:
    promoted = runs("promote", "case.jsonl", "--agent", "contract_agents:broken", "--dir", "cases")
    assert promoted.exit_code == 0, promoted.output
    assert promoted.stdout.splitlines()[1] == (
        "The agent does not do any more what was recorded, so that the test fails as it is:"
    )


def test_nothing_is_written_over_what_is_there(folder: Path) -> None:
    assert runs("promote", "case.jsonl", "--name", "case").exit_code == 0
    (folder / "tests/recordings/test_case.py").write_text("mine")
    refused = runs("promote", "case.jsonl", "--name", "case")
    assert refused.exit_code == 1
    assert "tests/recordings/case.jsonl and tests/recordings/test_case.py are there already" in refused.output
    assert (folder / "tests/recordings/test_case.py").read_text() == "mine"
    forced = runs("promote", "case.jsonl", "--name", "case", "--force", "--json")
    assert msgspec.json.decode(forced.stdout) == {
        "run": "contract-7",
        "recording": "tests/recordings/case.jsonl",
        "test": "tests/recordings/test_case.py",
        "is_same": None,
    }
    assert "from agent_module import agent" in (folder / "tests/recordings/test_case.py").read_text()
    assert "makes no name of a file" in runs("promote", "case.jsonl", "--name", "!?").output
