"""One intent, one execution: counted in the world, on real processes and real databases."""

import signal
import time
from pathlib import Path

from tests.acceptance.conftest import StartAgent
from tests.service import ServiceProcess


def effects(sink: Path) -> list[str]:
    return sink.read_text().splitlines()


def only_effect(service: ServiceProcess, run: str) -> dict[str, object]:
    items = service.ask("GET", f"/v1/effects?run={run}").body["items"]
    assert len(items) == 1
    shown: dict[str, object] = service.ask("GET", f"/v1/effects/{items[0]['key']}").body
    return shown


def wait_for_state(service: ServiceProcess, run: str, state: str) -> dict[str, object]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if service.ask("GET", f"/v1/effects?run={run}&state={state}").body["items"]:
            return only_effect(service, run)
    raise AssertionError(f"the effect of {run} never was {state}: {only_effect(service, run)['state']}")


def test_eight_processes_with_one_slot_execute_once_and_all_get_the_result(start_agent: StartAgent, sink: Path) -> None:
    agents = [start_agent("race", "shared") for _ in range(8)]
    assert [agent.hear() for agent in agents] == ["ready"] * 8
    for agent in agents:
        agent.tell()
    assert [agent.hear() for agent in agents] == ["10"] * 8
    assert effects(sink) == ["charge 1"]


def test_a_blocking_tool_that_outlasts_its_lease_stays_one_execution(start_agent: StartAgent, sink: Path) -> None:
    first, second = start_agent("alone", "long"), start_agent("alone", "long")
    assert (first.hear(), second.hear()) == ("1", "1")
    assert effects(sink) == ["slow 1"]


def test_an_async_tool_that_outlasts_its_lease_stays_one_execution(start_agent: StartAgent, sink: Path) -> None:
    first, second = start_agent("alone_async", "long"), start_agent("alone_async", "long")
    assert (first.hear(), second.hear()) == ("1", "1")
    assert effects(sink) == ["slow 1"]


def test_an_owner_that_was_stopped_past_its_lease_heals_when_nobody_took_over(
    service: ServiceProcess, start_agent: StartAgent, sink: Path
) -> None:
    owner = start_agent("pause", "stopped")
    assert owner.hear() == "inside"
    owner.send(signal.SIGSTOP)
    doubtful = wait_for_state(service, "stopped", "in_doubt")
    assert service.begin("stopped", "pausing", {"number": 1}).code == "outcome-in-doubt"
    owner.send(signal.SIGCONT)
    owner.tell()
    owner.hear()
    healed = wait_for_state(service, "stopped", "succeeded")
    assert (healed["key"], healed["outcome"]) == (doubtful["key"], {"result": "by 1"})
    assert effects(sink) == ["pausing 1"]


def test_an_owner_that_was_stopped_while_a_person_settled_overwrites_nothing(
    service: ServiceProcess, start_agent: StartAgent, sink: Path
) -> None:
    owner = start_agent("pause", "settled")
    assert owner.hear() == "inside"
    owner.send(signal.SIGSTOP)
    doubtful = wait_for_state(service, "settled", "in_doubt")
    word = {"as": "applied", "fence": 1, "reason": "seen", "result": "by a person"}
    assert service.ask("POST", f"/v1/effects/{doubtful['key']}/resolve", word).status == 200
    owner.send(signal.SIGCONT)
    owner.tell()
    assert owner.hear() == "Superseded"
    shown = only_effect(service, "settled")
    assert (shown["state"], shown["outcome"]) == ("succeeded", {"result": "by a person"})
    assert effects(sink) == ["pausing 1"]


def test_an_agent_that_is_killed_inside_its_tool_leaves_doubt_and_no_second_execution(
    service: ServiceProcess, start_agent: StartAgent, sink: Path
) -> None:
    owner = start_agent("pause", "killed")
    assert owner.hear() == "inside"
    owner.send(signal.SIGKILL)
    wait_for_state(service, "killed", "in_doubt")
    assert start_agent("pause", "killed").hear() == "RunSuspended"
    assert effects(sink) == ["pausing 1"]
