"""A restart in turn, of workers or of replicas: no request fails, no lease is lost, and nothing is executed twice."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.calling import Callers, World
from tests.acceptance.workers import TWO, assert_nothing_is_left, assert_readable, is_gone, wait_until, workers_of
from tests.service import ServiceProcess


@pytest.fixture
def backend() -> str:
    """Several processes need a server."""
    return "postgresql"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Where effects show."""
    made = World(tmp_path / "world.db")
    yield made
    made.close()


def test_a_restart_of_the_workers_in_turn_fails_no_request(database_url: str, world: World) -> None:
    with ServiceProcess(database_url, options=TWO, errors=subprocess.DEVNULL) as service:
        held = service.begin("held", lease_seconds=3600)
        before = workers_of(service)
        with Callers([service.port], 4, world, agents=2) as callers:
            callers.wait_for(30)
            os.kill(service.pid, signal.SIGHUP)
            wait_until(lambda: len(workers_of(service) - before) == 2 and all(map(is_gone, before)))
            callers.wait_for(30)
        assert callers.failures == []
        assert callers.acted > 0
        assert world.twice() == []
        assert service.report("commit", held, result="kept").status == 200
        assert_readable(service, callers.committed)
        assert_nothing_is_left(service)


def test_replicas_that_are_restarted_in_turn_fail_no_request(database_url: str, world: World) -> None:
    """Callers know both, and agents one each, which they wait for. A change of the registry is obeyed by both."""
    with (
        ServiceProcess(database_url, errors=subprocess.DEVNULL) as one,
        ServiceProcess(database_url, errors=subprocess.DEVNULL) as other,
    ):
        with Callers([one.port, other.port], 4, world, agents=2) as callers:
            for replica in (one, other):
                callers.wait_for(20)
                replica.stop()
                replica.start()
            callers.wait_for(20)
        assert callers.failures == []
        assert callers.acted > 0
        assert world.twice() == []
        assert_nothing_is_left(one)
        _obeys_within_a_second(one, other)


def _obeys_within_a_second(one: ServiceProcess, other: ServiceProcess) -> None:
    assert other.begin("before", tool="lookup").status == 201
    assert one.ask("PUT", "/v1/tools/lookup", {"class": "read"}).status == 200
    time.sleep(1)  # the bound that is promised: no event says when it is over
    refused = other.begin("after", tool="lookup")
    assert (refused.status, refused.code) == (409, "not-possible")
