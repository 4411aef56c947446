"""The service goes away while tools run, and processes die with outcomes that nobody has heard: none is lost."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import Agent
from tests.service import ServiceProcess
from tests.unit.sdk.spooled import of_the_dead
from twiceshy._spool_list import Entry, look

Start = Callable[..., Agent]


@pytest.fixture
def backend() -> str:
    """SQLite alone: a spool does not know which database its service has."""
    return "sqlite"


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def start(service: ServiceProcess, sink: Path, spool: Path) -> Iterator[Start]:
    """Start agents that share a spool; whatever is left of them ends with the test."""
    agents: list[Agent] = []

    def started(*words: str, **more: str) -> Agent:
        agents.append(Agent(service.url, sink, *words, patience=20, module="spooling_agents", **more))
        return agents[-1]

    yield started
    for agent in agents:
        agent.end()


def entries(spool: Path, count: int, owner: str) -> list[Entry]:
    """Wait until so many outcomes wait, of processes that stand so."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = [entry for entry in look(spool) if entry.owner == owner]
        if len(found) == count:
            return found
    raise AssertionError(look(spool))


def states(service: ServiceProcess, run: str) -> list[str]:
    return [item["state"] for item in service.ask("GET", f"/v1/effects?run={run}&limit=500").body["items"]]


def reports(service: ServiceProcess, run: str) -> list[str]:
    """What the attempts of a run's one effect reported."""
    (item,) = service.ask("GET", f"/v1/effects?run={run}").body["items"]
    return [attempt["report"] for attempt in service.ask("GET", f"/v1/effects/{item['key']}").body["attempts"]]


def drain(service: ServiceProcess, spool: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "twiceshy", "spool", "drain", "--url", service.url, "--spool", str(spool)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"TWICESHY_SPOOL": ""})


def test_an_outcome_of_a_killed_process_is_adopted_by_the_next_and_answers_its_call(
    service: ServiceProcess, start: Start, sink: Path, spool: Path
) -> None:
    agent = start("one", "killed")
    assert agent.hear() == "inside"
    service.kill()
    agent.tell()
    entries(spool, 1, "alive")
    agent.send(signal.SIGKILL)
    (entry,) = entries(spool, 1, "dead")
    assert (entry.tool, entry.kind, entry.run) == ("charge", "succeeded", "killed")
    service.start()
    assert start("one", "killed").hear() == "10"
    assert sink.read_text() == "charge 1\n"
    assert states(service, "killed") == ["succeeded"]
    assert look(spool) == []


def test_a_process_that_outlives_the_outage_gives_its_caller_the_value_and_delivers_by_itself(
    service: ServiceProcess, start: Start, sink: Path, spool: Path
) -> None:
    agent = start("one", "outage", AGENT_DELIVERS="0.5")
    assert agent.hear() == "inside"
    service.kill()
    agent.tell()
    assert agent.hear() == "10"
    service.start()
    entries(spool, 0, "alive")
    assert states(service, "outage") == ["succeeded"]
    assert sink.read_text() == "charge 1\n"
    assert list(spool.iterdir()) == []


def test_two_processes_drain_one_spool_and_one_wins(
    service: ServiceProcess, start: Start, sink: Path, spool: Path
) -> None:
    agent = start("twenty", "many")
    assert [agent.hear() for _ in range(20)] == ["inside"] * 20
    service.kill()
    agent.tell()
    entries(spool, 20, "alive")
    refused = drain(service, spool)
    assert refused.communicate()[0].startswith("0 delivered, 0 refused for good, 20 left.\n20 left to the living")
    assert refused.returncode == 1
    agent.send(signal.SIGKILL)
    entries(spool, 20, "dead")
    service.start()
    both = [drain(service, spool) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    delivered = [re.findall(r"^(\d+) delivered, 0 refused", words, re.MULTILINE) for words in said]
    assert sorted(int(count) for (count,) in delivered) == [0, 20]
    assert 0 in [process.returncode for process in both]
    assert states(service, "many") == ["succeeded"] * 20
    assert look(spool) == []


def test_a_restarted_agent_with_parallel_calls_is_answered_from_what_its_killed_process_left(
    service: ServiceProcess, start: Start, sink: Path, spool: Path
) -> None:
    agent = start("eighty_async", "parallel")
    assert [agent.hear() for _ in range(80)] == ["inside"] * 80
    service.kill()
    agent.tell()
    entries(spool, 80, "alive")
    agent.send(signal.SIGKILL)
    entries(spool, 80, "dead")
    service.start()
    assert start("eighty_async", "parallel").hear() == "80 int"
    assert len(sink.read_text().splitlines()) == 80
    assert states(service, "parallel") == ["succeeded"] * 80
    assert look(spool) == []


@pytest.mark.parametrize("verb", ["interrupted", "interrupted_async"])
def test_ctrl_c_inside_a_tool_leaves_doubt_and_says_so(
    service: ServiceProcess, start: Start, sink: Path, verb: str
) -> None:
    agent = start(verb, verb)
    assert agent.hear() == "inside"
    agent.send(signal.SIGINT)
    assert agent.process.wait(20) == -signal.SIGINT
    assert sink.read_text() == "ponder\n"
    assert states(service, verb) == ["in_doubt"]
    assert reports(service, verb) == ["unknown"]


@pytest.mark.parametrize("verb", ["interrupted", "interrupted_async"])
def test_ctrl_c_inside_a_tool_while_the_service_is_gone_is_told_later(
    service: ServiceProcess, start: Start, spool: Path, verb: str
) -> None:
    agent = start(verb, verb)
    assert agent.hear() == "inside"
    service.kill()
    agent.send(signal.SIGINT)
    assert agent.process.wait(20) == -signal.SIGINT
    assert [entry.kind for entry in entries(spool, 1, "dead")] == ["unknown"]
    service.start()
    assert drain(service, spool).communicate()[0].endswith("1 delivered, 0 refused for good, 0 left.\n")
    assert states(service, verb) == ["in_doubt"]
    assert reports(service, verb) == ["unknown"]


def test_what_was_not_applied_is_tried_again_within_the_call_under_one_effect(
    service: ServiceProcess, start: Start, sink: Path
) -> None:
    assert start("again", "again").hear() == "at last"
    assert sink.read_text() == "tried\ntried\ntried\nstubborn\n"
    assert states(service, "again") == ["succeeded"]
    assert reports(service, "again") == ["not_applied", "not_applied", "succeeded"]


_HOLDS = """
import sys
from pathlib import Path
from twiceshy._spool_file import SpoolFile
held = SpoolFile.adopt(Path(sys.argv[1]))
print("held" if held else "none", flush=True)
sys.stdin.read()
"""


def test_of_two_processes_that_want_one_spool_the_second_leaves_it_to_the_first(tmp_path: Path) -> None:
    """The first holds the file while the second tries: they overlap for certain."""
    file = of_the_dead(tmp_path / "spool", 1, 2, url="http://127.0.0.1:1")
    drain = [sys.executable, "-m", "twiceshy", "spool", "drain", "--spool", str(tmp_path / "spool")]
    drain += ["--url", "http://127.0.0.1:1"]
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        second = subprocess.run(drain, capture_output=True, text=True, check=False)
        assert (second.returncode, "2 left to the living process" in second.stdout) == (1, True)
        first.communicate("")
    third = subprocess.run(drain, capture_output=True, text=True, check=False)
    assert (third.returncode, "living process" in third.stdout, "stuck in" in third.stdout) == (1, False, True)
