"""Who waits on a replica that is killed hears of it at once, and the next replica answers."""

import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.service import Reply, ServiceProcess
from twiceshy import Guard

BEGIN = {"tool": "pay", "arguments": {"to": "ann"}, "run": "booking-42"}
WAITERS = 20


@pytest.fixture
def backend() -> str:
    """Replicas need a server."""
    return "postgresql"


@pytest.fixture
def replicas(database_url: str) -> Iterator[tuple[ServiceProcess, ServiceProcess]]:
    """Two replicas on one database."""
    with (
        ServiceProcess(database_url, errors=subprocess.DEVNULL) as one,
        ServiceProcess(database_url, errors=subprocess.DEVNULL) as other,
    ):
        yield one, other


def waited(service: ServiceProcess) -> Reply | OSError:
    """Begin, and wait for whoever executes; a connection that is lost is an answer too."""
    try:
        return service.ask("POST", "/v1/effects", BEGIN | {"attempt": str(uuid4()), "wait_seconds": 30})
    except OSError as error:
        return error


def contended(service: ServiceProcess) -> float:
    """Count the begins that found the lease of another."""
    lines = service.ask("GET", "/metrics").body.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("idempotency_lock_contention_total{"))


def until_contended(service: ServiceProcess, times: int) -> None:
    """Wait until so many wait."""
    while contended(service) < times:
        pass


def test_waiters_on_a_killed_replica_hear_it_and_the_other_answers_them(
    replicas: tuple[ServiceProcess, ServiceProcess],
) -> None:
    one, other = replicas
    attempt = str(uuid4())
    grant = one.ask("POST", "/v1/effects", BEGIN | {"attempt": attempt}).body
    with ThreadPoolExecutor(2 * WAITERS) as threads:
        there = [threads.submit(waited, other) for _ in range(WAITERS)]
        until_contended(other, WAITERS)
        other.kill()
        assert all(isinstance(lost.result(20), OSError) for lost in there)
        here = [threads.submit(waited, one) for _ in range(WAITERS)]
        until_contended(one, WAITERS)
        commit = {"attempt": attempt, "fence": grant["fence"], "result": "paid"}
        assert one.ask("POST", f"/v1/effects/{grant['key']}/commit", commit).status == 200
        answers = [answer.result(20) for answer in here]
    said = [(answer.body["decision"], answer.body["outcome"]["result"]) for answer in answers if type(answer) is Reply]
    assert said == [("replay", "paid")] * WAITERS


def test_an_agent_that_waits_on_a_killed_replica_is_answered_once_there_is_one(
    replicas: tuple[ServiceProcess, ServiceProcess],
) -> None:
    one, other = replicas
    attempt = str(uuid4())
    grant = one.ask("POST", "/v1/effects", BEGIN | {"attempt": attempt}).body
    ran: list[str] = []
    said: list[object] = []

    def act() -> None:
        guard = Guard(other.url)

        @guard.tool
        def pay(to: str) -> str:
            ran.append(to)
            return "again"

        with guard, guard.run("booking-42"):
            said.append(pay("ann"))

    agent = threading.Thread(target=act)
    agent.start()
    until_contended(other, 1)
    other.kill()
    commit = {"attempt": attempt, "fence": grant["fence"], "result": "paid"}
    assert one.ask("POST", f"/v1/effects/{grant['key']}/commit", commit).status == 200
    other.start()
    agent.join(30)
    assert (said, ran) == (["paid"], [])
