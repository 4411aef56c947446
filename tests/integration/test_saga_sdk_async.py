"""Sagas on an event loop: `async with guard.saga(...)`, against a real service."""

import asyncio

import pytest

from tests.integration.saga_tools import BACK, Trip, notes, state
from tests.service import ServiceProcess
from twiceshy import Compensation, Rejected, RunSuspended


async def test_an_async_block_takes_back_with_tools_of_both_kinds(service: ServiceProcess, run: str) -> None:
    trip = Trip(service.url)
    did: list[str] = []

    @trip.guard.tool(compensation=Compensation(tool="unbook", arguments={"seat": "${arguments.seat}"}))
    async def book_seat(seat: int) -> None:
        did.append(f"book {seat}")

    @trip.guard.tool
    async def unbook(seat: int) -> None:
        await asyncio.sleep(0)
        did.append(f"unbook {seat}")

    async def block() -> None:
        async with trip.guard.saga(run):
            await book_seat(3)
            trip.hold("12")
            raise Rejected("no visa")

    async def blocking() -> None:
        with trip.guard.saga(f"{run}-3"):
            await book_seat(5)
            raise ValueError("sync")

    with pytest.raises(Rejected) as raised:
        await block()
    assert (trip.did, did) == (["hold 12", BACK[1]], ["book 3", "unbook 3"])
    assert "taken back with release, unbook" in notes(raised.value)
    async with trip.guard.saga(f"{run}-2"):
        await book_seat(4)
    assert state(service, f"{run}-2") == "completed"
    assert all(report.saga != run for report in await trip.guard.recover_sagas_async())

    with pytest.raises(ValueError, match="sync") as left:
        await blocking()
    assert "unbook is an `async def` function: use `async with guard.saga(...)`" in notes(left.value)
    assert did[-1] == "book 5"
    reports = {report.saga: report for report in await trip.guard.recover_sagas_async()}
    assert str(reports[f"{run}-3"]) == f"saga {run}-3 is compensated: taken back with unbook"
    await trip.guard.close_async()


async def test_siblings_of_a_step_that_was_interrupted_are_answered_from_the_record(
    service: ServiceProcess, run: str
) -> None:
    """Idempotency 5, frameworks 4 and 5: all of a step runs again on resume, and only what was not done is done."""
    trip = Trip(service.url)
    did: list[int] = []
    doubtful = {2}

    @trip.guard.tool(identity=["/number"], settle_seconds=0)
    async def send(number: int) -> int:
        did.append(number)
        if number in doubtful:
            raise TimeoutError
        return number

    async def work() -> list[int | BaseException]:
        async with trip.guard.saga(run):
            outcomes = await asyncio.gather(*(send(number) for number in (1, 2, 3)), return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
            return outcomes
        raise AssertionError

    with pytest.raises(RunSuspended) as raised:
        await work()
    assert sorted(did) == [1, 2, 3]
    trip.settle(service.ask, raised.value.key, "not_applied")
    doubtful.clear()
    assert await work() == [1, 2, 3]
    assert sorted(did) == [1, 2, 2, 3]
    await trip.guard.close_async()
