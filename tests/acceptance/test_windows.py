"""Windows: the same intent of a tenant happens again only once its window has passed, by the database's clock."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.acceptance.machine.clock import Clock, PostgresClock, SqliteClock
from tests.service import Reply, ServiceProcess


@pytest.fixture
def service(shared_service: ServiceProcess) -> ServiceProcess:
    """One service for all of them."""
    return shared_service


@pytest.fixture
def name() -> str:
    """A name that no other test uses: of a tool, and what its runs begin with."""
    return f"digest-{uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def clock(shared_url: str) -> Iterator[Clock]:
    """The clock of the database."""
    is_file = shared_url.startswith("sqlite:///")
    made = SqliteClock(Path(shared_url.removeprefix("sqlite:///"))) if is_file else PostgresClock(shared_url)
    with closing(made) as opened:
        yield opened


@pytest.fixture(scope="module")
def second_service(shared_service: ServiceProcess, shared_url: str) -> Iterator[ServiceProcess]:
    """Another service on the same database."""
    with ServiceProcess(shared_url) as process:
        yield process


def declare(service: ServiceProcess, tool: str, seconds: float | None = 60, **more: Any) -> str:
    key = {"scope": "tenant"} if seconds is None else {"scope": "tenant", "window_seconds": seconds}
    assert service.ask("PUT", f"/v1/tools/{tool}", {"key": key} | more).status == 200
    return tool


def done(service: ServiceProcess, run: str, tool: str) -> Reply:
    grant = service.begin(run, tool)
    assert grant.status == 201, grant.body
    return service.report("commit", grant, result=run)


def test_the_window_slides_from_the_finish(service: ServiceProcess, clock: Clock, name: str) -> None:
    tool = declare(service, name)
    grant = service.begin(f"{name}-monday", tool)
    clock.move([grant.body["key"]], timedelta(seconds=20))
    assert service.report("commit", grant, result=1).status == 200
    clock.move([grant.body["key"]], timedelta(seconds=50))
    assert service.begin(f"{name}-tuesday", tool).body["shared"] == {"run": f"{name}-monday"}
    clock.move([grant.body["key"]], timedelta(seconds=10))
    second = service.begin(f"{name}-tuesday", tool)
    assert (second.status, second.body["generation"], second.body["occurrence"]) == (201, 2, 1)
    assert second.body["key"] != grant.body["key"]
    assert service.report("commit", second, result=2).status == 200
    assert service.begin(f"{name}-monday", tool).body["repeat_of"] == {"run": f"{name}-tuesday", "step": 1}


def test_without_a_window_it_is_for_ever(service: ServiceProcess, clock: Clock, name: str) -> None:
    tool = declare(service, name, seconds=None)
    clock.move([done(service, f"{name}-monday", tool).body["key"]], timedelta(days=300))
    assert service.begin(f"{name}-tuesday", tool).body["decision"] == "replay"


def test_what_is_not_over_has_no_window(service: ServiceProcess, clock: Clock, name: str) -> None:
    tool = declare(service, name)
    grant = service.begin(f"{name}-monday", tool, lease_seconds=1000)
    clock.move([grant.body["key"]], timedelta(seconds=900))
    assert service.begin(f"{name}-tuesday", tool).code == "in-progress"
    clock.move([grant.body["key"]], timedelta(seconds=900))
    assert service.begin(f"{name}-tuesday", tool).code == "outcome-in-doubt"


def test_an_attempt_of_its_own_is_answered_after_the_window_too(
    service: ServiceProcess, clock: Clock, name: str
) -> None:
    tool = declare(service, name)
    grant = service.begin(f"{name}-monday", tool)
    service.report("commit", grant, result=1)
    clock.move([grant.body["key"]], timedelta(hours=1))
    again = service.begin(f"{name}-monday", tool, attempt=grant.body["attempt"])
    assert (again.status, again.body["generation"]) == (200, 1)


def test_a_run_keeps_to_the_window_that_it_began_with(service: ServiceProcess, clock: Clock, name: str) -> None:
    tool = declare(service, name, seconds=60)
    key = done(service, f"{name}-monday", tool).body["key"]
    declare(service, name, seconds=3600)
    clock.move([key], timedelta(seconds=61))
    assert service.begin(f"{name}-tuesday", tool).body["decision"] == "replay"
    assert service.begin(f"{name}-monday", tool).body["generation"] == 2


def test_at_the_windows_edge_many_runs_on_two_services_execute_once(
    service: ServiceProcess, second_service: ServiceProcess, clock: Clock, name: str
) -> None:
    tool = declare(service, name)
    key = done(service, f"{name}-first", tool).body["key"]
    with ThreadPoolExecutor(12) as pool:
        for generation in range(2, 10):
            clock.move([key], timedelta(seconds=61))
            asked = [
                pool.submit((service, second_service)[number % 2].begin, f"{name}-{generation}-{number}", tool)
                for number in range(12)
            ]
            answers = [future.result() for future in asked]
            (grant,) = [answer for answer in answers if answer.status == 201]
            assert grant.body["generation"] == generation
            assert {answer.code for answer in answers if answer.status != 201} == {"in-progress"}
            key = service.report("commit", grant, result=generation).body["key"]


def test_over_the_edge_as_it_passes_every_execution_is_a_window_after_the_last(
    service: ServiceProcess, second_service: ServiceProcess, name: str
) -> None:
    tool = declare(service, name, seconds=1)
    until = time.monotonic() + 2.6

    def hammer(number: int) -> None:
        asked = (service, second_service)[number % 2]
        while time.monotonic() < until:
            answer = asked.begin(f"{name}-{number}", tool)
            if answer.status == 201:
                assert asked.report("commit", answer, result=number).status == 200

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(hammer, range(4)))
    items = service.ask("GET", f"/v1/effects?tool={tool}").body["items"]
    done_in_order = sorted(items, key=lambda item: int(item["generation"]))
    assert [item["generation"] for item in done_in_order] == list(range(1, len(items) + 1))
    assert len(items) >= 3
    for before, after in pairwise(done_in_order):
        assert _instant(after["began_at"]) - _instant(before["ended_at"]) >= timedelta(seconds=1)


def test_the_hundredth_generation_costs_as_many_steps_as_the_third(service: ServiceProcess, name: str) -> None:
    assert service.ask("PUT", f"/v1/tools/{name}", {"repeat": "allow"}).status == 200

    def steps(begins: int) -> int:
        before = _steps(service)
        for _ in range(begins):
            done(service, name, name)
        return _steps(service) - before

    steps(2)
    assert steps(1) == 4
    steps(96)
    assert steps(1) == 4
    assert service.begin(name, name).body["generation"] == 101


def _steps(service: ServiceProcess) -> int:
    """Return how many steps the service has applied."""
    lines = str(service.ask("GET", "/metrics").body).splitlines()
    (summed,) = [line for line in lines if line.startswith("twiceshy_batch_size_sum")]
    return int(float(summed.split()[-1]))


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
