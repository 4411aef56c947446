"""Sagas whose agents are killed with kill -9 at every moment of their lives."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.keepers import Keepers
from tests.service import ServiceProcess

_ROOT = Path(__file__).parents[2]
_KILLED = -9
_TAKEN_BACK = 3


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A provider that refuses confirmations: its address and its ledger."""
    ledger = tmp_path / "ledger"
    command = [sys.executable, "-m", "examples.provider", str(ledger), "--refuse", "confirm"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], ledger
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def keepers(service: ServiceProcess, provider: tuple[str, Path], tmp_path: Path) -> Iterator[Keepers]:
    """What starts agents."""
    started = Keepers("saga_agents", service.url, provider[0])
    yield started
    started.end()


def test_a_saga_killed_at_any_moment_does_each_step_once_and_takes_it_back_once(
    service: ServiceProcess, provider: tuple[str, Path], keepers: Keepers
) -> None:
    (whole,) = keepers.play({"whole": 0})
    assert whole["codes"] == [_TAKEN_BACK]
    moments = {f"trip-{moment}": moment for moment in range(1, whole["moments"] + 1)}
    assert len(moments) > 40
    ended = keepers.play(moments)
    assert {tuple(one["codes"]) for one in ended} == {(_KILLED, _TAKEN_BACK)}
    actions = _actions_by_saga(provider[1])
    assert set(actions) == {"whole", *moments}
    assert {tuple(done) for done in actions.values()} == {("hold", "pay", "refund", "release")}
    sagas = service.ask("GET", "/v1/sagas?limit=500").body["items"]
    assert {saga["saga"]: saga["state"] for saga in sagas} == dict.fromkeys(actions, "compensated")
    assert service.ask("GET", "/v1/flags").body["items"] == []


def _actions_by_saga(ledger: Path) -> dict[str, list[str]]:
    """Follow what was done for each saga from the room that it held."""
    saga_of: dict[str, str] = {}
    actions: dict[str, list[str]] = {}
    for line in ledger.read_text().splitlines():
        done = json.loads(line)
        arguments = done["arguments"]
        earlier = arguments.get("hold") or arguments.get("payment")
        saga = arguments["room"] if done["action"] == "hold" else saga_of[earlier]
        saga_of[done["id"]] = saga
        actions.setdefault(saga, []).append(done["action"])
    return actions
