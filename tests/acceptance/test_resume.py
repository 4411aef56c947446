"""Recorded runs whose agents are killed with kill -9 at random moments, and resumed until they are done."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.keepers import Keepers
from tests.service import ServiceProcess
from twiceshy import Guard
from twiceshy_contract.events import Delivery, Intent

_ROOT = Path(__file__).parents[2]
_KILLS = int(os.environ.get("SOAK", "20"))
_SEED = int(os.environ.get("SOAK_SEED", "5"))
_PASSING = {"GuardUnavailable", "InProgress", "LeaseLost", "RetryLater", "Superseded"}
"""What an agent may end by on a slow machine: it is started again, like one that was killed."""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return tmp_path / "world"


@pytest.fixture
def keepers(service: ServiceProcess, world: Path) -> Iterator[Keepers]:
    started = Keepers("resumed_agents", service.url, str(world))
    yield started
    started.end()


def test_a_run_killed_at_any_moment_is_resumed_with_each_effect_once_and_comes_to_the_same(
    service: ServiceProcess, keepers: Keepers, world: Path
) -> None:
    (whole,) = keepers.play({"whole": 0})
    assert whole["errors"][:1] == []
    assert whole["codes"] == [0]
    assert whole["moments"] > 40
    drawn = random.Random(_SEED)  # noqa: S311 - where it is killed
    moments = {f"run{number:04}"[:7]: drawn.randint(1, whole["moments"]) for number in range(_KILLS)}
    ended = keepers.play(moments)
    odd = [{**one, "moment": moments[one["run"]]} for one in ended if one.get("result") != expected(one["run"])]
    assert odd == []
    assert {error.partition(":")[0] for one in ended for error in one["errors"]} <= _PASSING
    done = Counter(line.rpartition(" ")[0] for line in world.read_text().splitlines())
    assert {what: times for what, times in done.items() if times != 1} == {}
    assert len(done) == 6 * (len(ended) + 1)
    for run in moments:
        assert_whole(service, run)


def expected(run: str) -> list[Any]:
    chosen = len(f"ask {run}-1")
    return [chosen, len(f"pay {run}-{chosen}"), sorted([len(f"ask {run}-tell-ann-") + 2] * 2), True]


def assert_whole(service: ServiceProcess, run: str) -> None:
    """Hold the log to what an undisturbed run has: each call once, and each of them with its outcome."""
    with Guard(service.url, spool=None) as guard, guard.recording(run) as log:
        intents = Counter(event.name for event in log.events if isinstance(event, Intent))
        deliveries = [event.intent for event in log.events if isinstance(event, Delivery)]
        assert intents == {"now": 1, "uuid4": 1, "look": 1, "ask": 5, "Work._model": 1, "pay": 1, "sleep": 1}, run
        assert len(deliveries) == len(set(deliveries)) == intents.total(), run
