"""Several agents, each with the guard embedded over one SQLite file: right, if not fast."""

import itertools
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import Agent, StartAgent


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A file that does not exist yet: the agents make it, several at once."""
    return tmp_path / "shared.db"


@pytest.fixture
def start_agent(database: Path, sink: Path) -> Iterator[StartAgent]:
    agents: list[Agent] = []

    def start(*words: str) -> Agent:
        agents.append(Agent(f"sqlite:///{database}", sink, *words))
        return agents[-1]

    yield start
    for agent in agents:
        agent.end()


def states(database: Path) -> list[tuple[str, int]]:
    """Read how many effects of each tool there are, by hand."""
    with sqlite3.connect(database) as connection:
        return connection.execute("SELECT tool, count(*) FROM effects GROUP BY tool").fetchall()


def test_six_processes_with_one_slot_execute_once_and_all_get_the_result(
    start_agent: StartAgent, sink: Path, database: Path
) -> None:
    agents = [start_agent("race", "shared") for _ in range(6)]
    assert [agent.hear() for agent in agents] == ["ready"] * 6
    for agent in agents:
        agent.tell()
    assert [agent.hear() for agent in agents] == ["10"] * 6
    assert sink.read_text() == "charge 1\n"
    assert states(database) == [("charge", 1)]


def test_one_of_five_processes_killed_in_the_middle_costs_no_call_and_doubles_none(
    start_agent: StartAgent, sink: Path
) -> None:
    agents = [start_agent("many", "crash", "0", "30") for _ in range(5)]
    assert [agent.hear() for agent in agents] == ["ready"] * 5
    for agent in agents:
        agent.tell()
    victim, *others = agents
    for _ in range(5):
        victim.hear()
    victim.send(signal.SIGKILL)
    heard = list(itertools.chain.from_iterable(agent.hear_all() for agent in others))
    assert len(heard) == 4 * 30
    assert not [line for line in heard if line.startswith("gave-up")]
    executed = Counter(line.removeprefix("charge ") for line in sink.read_text().splitlines())
    assert max(executed.values()) == 1
    done = {line.removeprefix("done ") for line in heard if line.startswith("done ")}
    doubtful = {line.removeprefix("doubt ") for line in heard if line.startswith("doubt ")}
    assert done <= set(executed)
    assert len(doubtful) <= 1  # only the call inside which the victim died


def test_an_agent_killed_inside_a_side_effect_leaves_doubt_to_the_others(start_agent: StartAgent, sink: Path) -> None:
    owner = start_agent("pause", "killed")
    assert owner.hear() == "inside"
    waiting = start_agent("pause", "killed")
    owner.send(signal.SIGKILL)
    assert waiting.hear() == "RunSuspended"
    assert sink.read_text() == "pausing 1\n"


def test_a_call_that_waits_in_one_process_is_answered_when_another_commits(start_agent: StartAgent, sink: Path) -> None:
    owner = start_agent("pause", "waited")
    assert owner.hear() == "inside"
    waiting = start_agent("pause", "waited")
    owner.tell()
    assert (owner.hear(), waiting.hear()) == ("by 1", "by 1")
    assert sink.read_text() == "pausing 1\n"


def test_an_idempotent_tool_of_a_killed_agent_is_taken_over(database: Path, sink: Path) -> None:
    command = [sys.executable, "-m", "tests.acceptance.programs", "take_over", f"sqlite:///{database}", str(sink)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "inside\n"
        owner.kill()
    heir = subprocess.run(command, input="go\n", capture_output=True, text=True, timeout=60, check=False)
    assert (heir.returncode, heir.stdout, heir.stderr) == (0, "inside\n1\n", "")
    assert sink.read_text() == "1\n1\n"


def test_a_tool_that_outlasts_its_lease_is_kept_alive_by_the_heartbeat(start_agent: StartAgent, sink: Path) -> None:
    first, second = start_agent("alone", "long"), start_agent("alone_async", "long-too")
    third = start_agent("alone", "long")
    assert (first.hear(), second.hear(), third.hear()) == ("1", "1", "1")
    assert sorted(sink.read_text().splitlines()) == ["slow 1"] * 2
