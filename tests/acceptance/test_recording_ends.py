"""Processes that record end in bad ways: the log holds what the code saw, and no outcome that nobody saw."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.acceptance.conftest import Agent
from tests.service import ServiceProcess

Start = Callable[..., Agent]


@pytest.fixture
def start(sink: Path) -> Iterator[Start]:
    """Start agents that record; whatever is left of them ends with the test."""
    agents: list[Agent] = []

    def begin(service: ServiceProcess, *words: str) -> Agent:
        agents.append(Agent(service.url, sink, *words, module="recording_agents"))
        return agents[-1]

    yield begin
    for agent in agents:
        agent.end()


@pytest.fixture
def run() -> str:
    return f"run-{uuid4().hex[:12]}"


def log_of(service: ServiceProcess, run: str) -> list[str]:
    items = service.ask("GET", f"/v1/runs/{run}/events").body["items"]
    return [
        f"{item['kind']}" if item["phase"] == "intent" else f"{item['outcome']} of {item['intent']}" for item in items
    ]


def until(service: ServiceProcess, run: str, events: int) -> list[str]:
    """Wait until a log has so many events."""
    end = time.monotonic() + 20
    while len(log := log_of(service, run)) < events and time.monotonic() < end:
        time.sleep(0.05)
    return log


@pytest.mark.parametrize(
    ("verb", "log"),
    [
        ("one", ["random", "result of 1", "llm_call"]),
        ("pieces", ["llm_call"]),
        ("several", ["random", "result of 1", "llm_call", "llm_call", "llm_call"]),
    ],
)
@pytest.mark.parametrize("what", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_an_ended_process_leaves_no_outcome_that_it_did_not_see(
    shared_service: ServiceProcess, start: Start, run: str, verb: str, log: list[str], what: signal.Signals
) -> None:
    agent = start(shared_service, verb, run)
    assert agent.hear() == "inside"
    assert until(shared_service, run, len(log)) == log
    agent.send(what)
    agent.process.wait(20)
    assert log_of(shared_service, run) == log


def test_an_interrupted_process_still_sends_what_it_saw(shared_service: ServiceProcess, start: Start, run: str) -> None:
    agent = start(shared_service, "one", run)
    assert agent.hear() == "inside"
    agent.send(signal.SIGINT)
    assert agent.process.wait(20) != 0
    assert log_of(shared_service, run) == ["random", "result of 1", "llm_call"]


def test_a_process_that_is_killed_in_its_effect_has_its_decisions_in_the_log(
    shared_service: ServiceProcess, start: Start, run: str, sink: Path
) -> None:
    agent = start(shared_service, "paying", run)
    assert agent.hear() == "inside"
    agent.send(signal.SIGKILL)
    agent.process.wait(20)
    assert log_of(shared_service, run) == ["random", "result of 1", "tool_call"]
    assert sink.read_text() == "charge 1\n"


def test_a_service_that_restarts_in_the_middle_loses_no_event(service: ServiceProcess, start: Start) -> None:
    agent = start(service, "drawing", "restarted")
    assert agent.hear() == "drawn"
    service.kill()
    agent.tell()
    assert agent.hear() == "drawn"
    service.start()
    assert until(service, "restarted", 4) == ["random", "result of 1", "random", "result of 3"]
    agent.tell()
    assert agent.hear() == "drawn"
    service.stop()
    agent.tell()
    service.start()
    assert agent.hear() == "left"
    assert len(log_of(service, "restarted")) == 6


def test_an_older_process_is_told_that_another_one_drives_the_run(
    shared_service: ServiceProcess, start: Start, run: str, sink: Path
) -> None:
    service = shared_service
    old = start(service, "paying", run)
    assert old.hear() == "inside"
    epoch = service.ask("POST", "/v1/runs", {"run": run, "record": True}).body["epoch"]
    assert epoch == 2
    old.tell()
    assert old.hear() == "paid 10"
    effects = service.ask("GET", f"/v1/effects?run={run}").body["items"]
    assert [effect["state"] for effect in effects] == ["succeeded"]
    old.process.wait(20)
    assert log_of(service, run) == ["random", "result of 1", "tool_call"]
    assert sink.read_text() == "charge 1\n"


def test_a_forked_process_does_not_write_its_parents_log(
    shared_service: ServiceProcess, start: Start, run: str
) -> None:
    agent = start(shared_service, "forking", run)
    assert sorted([agent.hear(), agent.hear()]) == ["refused", "went on"]
    assert agent.hear() == "left"
    assert log_of(shared_service, run) == ["random", "result of 1", "random", "result of 3"]
