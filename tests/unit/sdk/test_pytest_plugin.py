"""The pytest plugin, in test runs of its own: recordings found, replayed, checked, and refused in one clear message."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.sdk.call_logs import Writing
from twiceshy._recording import Recording

pytest_plugins = ["pytester"]

AGENT = """
import asyncio
from twiceshy import Guard

guard = Guard("http://127.0.0.1:9", spool="spool")
FOUND = "low"


@guard.tool(effect="read")
def lookup(jurisdiction: str) -> list[str]:
    raise RuntimeError("a tool ran in a replay")


@guard.tool()
def file_risk(contract: int, risk: str) -> str:
    raise RuntimeError("a tool ran in a replay")


def review(code="GB-SCT", wanted="file_risk"):
    with guard.run("contract-7"):
        risk = "high" if lookup(code) else FOUND
        return {"risk": risk, "filed": file_risk(7, risk) if wanted else None}


async def review_async():
    await asyncio.sleep(0)
    return review()
"""


def contract(run: str = "contract-7") -> Recording:
    writing = Writing(run)
    writing.tool("lookup", {"jurisdiction": "GB-SCT"}, [])
    writing.tool("file_risk", {"contract": 7, "risk": "low"}, "filed-1")
    return writing.recording()


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with an agent, its tests in `tests`, and a recording in the usual folder."""
    (pytester.path / "agents.py").write_text(AGENT)
    (pytester.path / "tests" / "recordings").mkdir(parents=True)
    contract().save(pytester.path / "tests" / "recordings" / "case.jsonl")
    pytester.makeini("[pytest]\npythonpath = .\n")
    return pytester


def ran(project: pytest.Pytester, test: str, *words: str) -> pytest.RunResult:
    (project.path / "tests" / "test_agent.py").write_text(f"import pytest\nimport agents\n\n{test}")
    return project.runpytest_subprocess("-p", "no:cacheprovider", *words)


def test_a_test_that_names_no_recording_runs_once_for_each(project: pytest.Pytester) -> None:
    contract("other").save(project.path / "tests" / "recordings" / "second.jsonl.gz")
    result = ran(project, "def test_all(replayed):\n    replayed(agents.review).unchanged()\n", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_all?case.jsonl? PASSED*", "*test_all?second.jsonl.gz? PASSED*"])


def test_a_mark_names_the_recording_and_how_it_is_replayed(project: pytest.Pytester) -> None:
    test = """
from twiceshy import Override

@pytest.mark.twiceshy(
    recording="case.jsonl", overrides=[Override(name="lookup", result=["act"])], answers={"file_risk": "filed-2"}
)
def test_one(replayed):
    happened = replayed(agents.review)
    happened.called("lookup").with_arguments("file_risk", {"risk": "high"})
    happened.outcome({"risk": "high", "filed": "filed-2"})
    assert replayed(agents.review, overrides=()).value["risk"] == "low"
"""
    ran(project, test).assert_outcomes(passed=1)


def test_a_failing_check_shows_the_timeline_with_the_first_difference_marked(project: pytest.Pytester) -> None:
    test = """
@pytest.mark.twiceshy(recording="case.jsonl")
def test_one(replayed):
    replayed(lambda: agents.review(wanted="")).called("file_risk")
"""
    result = ran(project, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: file_risk was not called.",
            "*Called: lookup.",
            "*with the first difference to the recording marked >>:",
            "*    1  tool_call*empty  recorded",
            "*Called lookup with jurisdiction 'GB-SCT'; it returned nothing (empty list).",
            "*>>     -  missing here; recorded at 3: Called file_risk with contract 7*",
        ]
    )
    result.stdout.no_fnmatch_line("*_assertions.py*")


def test_an_agent_that_asks_for_what_is_not_recorded_fails_with_the_report(project: pytest.Pytester) -> None:
    test = """
@pytest.mark.twiceshy(recording="case.jsonl")
def test_one(replayed):
    replayed(lambda: agents.review("GB")).called("lookup")
"""
    result = ran(project, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*It diverged: lookup is called with other arguments (*).", "*'GB-SCT' -> 'GB'"])


def test_async_agents_are_replayed_with_and_without_a_loop(project: pytest.Pytester) -> None:
    test = """
pytestmark = [pytest.mark.anyio, pytest.mark.twiceshy(recording="case.jsonl")]

@pytest.fixture
def anyio_backend():
    return "asyncio"

def test_sync(replayed):
    replayed(agents.review_async).unchanged()

async def test_async(replayed):
    (await replayed.run_async(agents.review_async)).unchanged()

async def test_wrong(replayed):
    replayed(agents.review_async)
"""
    result = ran(project, test)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*write `happened = await replayed.run_async(agent)`*"])


REFUSED = [
    ('recording="gone.jsonl"', ["The recording gone.jsonl of tests/test_agent.py::test_one is not there*"]),
    ('recording="cut.jsonl"', ["The recording cannot be replayed.*cut.jsonl*line 5*"]),
    ('recording="case.jsonl", overides=()', ["@pytest.mark.twiceshy has no 'overides'; did you mean overrides?"]),
    (
        'recording="both.jsonl"',
        ["*both.jsonl holds 2 runs: contract-7, other. Name one in the mark: run='contract-7'."],
    ),
    ('recording="both.jsonl", run="othr"', ["*has no run 'othr'; did you mean other? It holds contract-7, other."]),
    ('recording="case.jsonl", mode="rettest"', ["*mode is 'rettest'; did you mean retest?*"]),
]


@pytest.mark.parametrize(("mark", "said"), REFUSED)
def test_what_cannot_be_replayed_is_refused_in_one_message(
    project: pytest.Pytester, mark: str, said: list[str]
) -> None:
    folder = project.path / "tests" / "recordings"
    whole = (folder / "case.jsonl").read_bytes()
    (folder / "cut.jsonl").write_bytes(whole[:-200])
    contract("other").save(folder / "other.jsonl")
    (folder / "both.jsonl").write_bytes(whole + (folder / "other.jsonl").read_bytes())
    test = f"@pytest.mark.twiceshy({mark})\ndef test_one(replayed):\n    replayed(agents.review)\n"
    result = ran(project, test)
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 1, result.stdout.str()
    result.stdout.fnmatch_lines([f"*{line}" for line in said])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*During handling*")


def test_a_mark_that_names_no_recording_is_refused_as_that(project: pytest.Pytester) -> None:
    result = ran(project, "@pytest.mark.twiceshy(recording=[])\ndef test_one(replayed):\n    pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*test_one names no recording: its mark says recording=[[]]. Name a file, or*"])


def test_a_folder_without_recordings_is_an_error_and_one_that_is_not_there_too(project: pytest.Pytester) -> None:
    test = "def test_all(replayed):\n    pass\n"
    (project.path / "empty").mkdir()
    result = ran(project, test, "--twiceshy-recordings", "empty")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*replays every recording of *empty, and there is none*"])
    gone = ran(project, test, "--twiceshy-recordings", "gone")
    assert gone.ret == pytest.ExitCode.USAGE_ERROR
    gone.stderr.fnmatch_lines(["*--twiceshy-recordings: there is no folder *gone*"])


def test_a_setting_names_the_folder_as_well(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\npythonpath = .\ntwiceshy_recordings = cases\n")
    (project.path / "cases").mkdir()
    contract().save(project.path / "cases" / "a.jsonl")
    ran(project, "def test_all(replayed):\n    replayed(agents.review)\n").assert_outcomes(passed=1)


def test_pytest_loads_nothing_of_twiceshy_before_the_first_replay(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n    assert 'twiceshy_pytest.plugin' in sys.modules\n"
        "    assert not [name for name in sys.modules if name == 'twiceshy' or name.startswith('twiceshy.')]\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
