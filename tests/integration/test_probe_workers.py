"""Workers that serve probes: they settle the doubts of agents that are gone, each doubt by one of them at a time."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal

import pytest

from tests.integration.paying import Bank, Guards, effects
from tests.service import ServiceProcess
from twiceshy import RunSuspended


@pytest.fixture
def guards(service: ServiceProcess) -> Iterator[Guards]:
    with ExitStack() as stack:
        yield Guards(service.url, stack)


def test_a_worker_settles_the_doubts_of_agents_that_are_gone(guards: Guards, service: ServiceProcess, run: str) -> None:
    paid, lost = Bank(), Bank(loses=1)
    for number, bank in enumerate((paid, lost)):
        agent, pay = guards.paying(bank, f"{run}-{number}", is_probed=False)
        with agent.run(f"{run}-{number}"), pytest.raises(RunSuspended):
            pay(Decimal(5))
    for number, (bank, state) in enumerate(((paid, "succeeded"), (lost, "pending"))):
        worker, _ = guards.paying(bank, f"{run}-{number}")
        (report,) = worker.probe_once()
        assert (report.outcome, report.tool) == ("settled", f"pay-{run}-{number}")
        assert [effect["state"] for effect in effects(service, f"{run}-{number}")] == [state]
        assert worker.probe_once() == []


def test_a_worker_asks_again_once_word_of_nothing_is_believed(
    guards: Guards, service: ServiceProcess, run: str
) -> None:
    bank = Bank(loses=1)
    agent, pay = guards.paying(bank, run, is_probed=False, settle_seconds=1)
    with agent.run(run), pytest.raises(RunSuspended):
        pay(Decimal(5))
    worker, _ = guards.paying(bank, run, settle_seconds=1)
    (report,) = worker.probe_once()
    assert (report.outcome, report.said) == ("settled", "nothing was applied")
    assert len(bank.asked) == 2


def test_of_many_workers_one_is_given_each_doubt(guards: Guards, run: str) -> None:
    bank = Bank(silent=100)
    agent, pay = guards.paying(bank, run, is_probed=False, identity=["/amount"])
    with agent.run(run):
        for amount in range(8):
            with pytest.raises(RunSuspended):
                pay(Decimal(amount))
    workers = [guards.paying(bank, run, identity=["/amount"])[0] for _ in range(4)]
    reports: list[object] = []
    threads = [threading.Thread(target=lambda worker=worker: reports.extend(worker.probe_once())) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == len(bank.asked) == 8


async def test_workers_serve_probes_until_they_are_stopped(guards: Guards, service: ServiceProcess, run: str) -> None:
    bank = Bank()
    agent, pay = guards.paying(bank, run, is_probed=False)
    worker, _ = guards.paying(bank, run)
    serving = asyncio.ensure_future(worker.serve_probes_async())
    with agent.run(run), pytest.raises(RunSuspended):
        await asyncio.to_thread(pay, Decimal(5))
    await asyncio.to_thread(until_succeeded, service, run)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


def until_succeeded(service: ServiceProcess, run: str) -> None:
    until = time.monotonic() + 20
    while effects(service, run)[0]["state"] != "succeeded":
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_worker_that_blocks_stops_when_it_is_told(guards: Guards, run: str) -> None:
    worker, _ = guards.paying(Bank(), run)
    stop = threading.Event()
    serving = threading.Thread(target=worker.serve_probes, args=(stop,))
    serving.start()
    stop.set()
    serving.join(20)
    assert not serving.is_alive()
