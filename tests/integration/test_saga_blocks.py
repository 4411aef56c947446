"""Blocks of a saga within each other, and blocks that end while not all of their steps have."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator

import pytest

from tests.integration.saga_tools import BACK, BOOKED, Trip, notes, state
from tests.service import ServiceProcess
from twiceshy import (
    AttemptsExhausted,
    Compensation,
    InProgress,
    NotApplied,
    Rejected,
    RetryLater,
    RunSuspended,
)


@pytest.fixture
def trip(service: ServiceProcess) -> Iterator[Trip]:
    """A trip whose guard is closed with the test."""
    made = Trip(service.url)
    yield made
    made.guard.close()


def test_a_block_of_the_same_saga_joins_the_one_around_it_which_alone_completes_it(
    service: ServiceProcess, run: str, trip: Trip
) -> None:
    saga = trip.guard.saga(run)
    with saga:
        trip.hold("12")
        with trip.guard.saga(run), saga:
            trip.pay(9900)
        assert state(service, run) == "running"
        trip.confirm("12")
    assert (trip.did, state(service, run)) == (BOOKED, "completed")


def test_a_failure_after_a_block_within_takes_all_of_it_back(service: ServiceProcess, run: str, trip: Trip) -> None:
    def book() -> None:
        with trip.guard.saga(run):
            trip.book(run)
            raise ValueError("a second thought")

    with pytest.raises(ValueError, match="a second thought"):
        book()
    assert (trip.did, state(service, run)) == ([*BOOKED, *BACK], "compensated")


def test_a_failure_that_the_outer_block_catches_fails_nothing(service: ServiceProcess, run: str, trip: Trip) -> None:
    trip.breaks["confirm"] = Rejected("full")
    with trip.guard.saga(run):
        with pytest.raises(Rejected):
            trip.book(run)
        trip.confirm("13")
    assert (trip.did, state(service, run)) == ([*BOOKED, "confirm 13"], "completed")


def test_a_saga_within_another_one_ends_by_itself(service: ServiceProcess, run: str, trip: Trip) -> None:
    with trip.guard.saga(run):
        with trip.guard.saga(f"{run}-inner"):
            trip.hold("12")
        assert (state(service, run), state(service, f"{run}-inner")) == ("running", "completed")
        trip.confirm("12")
    assert state(service, run) == "completed"


async def test_tasks_of_a_block_join_its_saga(service: ServiceProcess, run: str, trip: Trip) -> None:
    async def part(room: str) -> None:
        async with trip.guard.saga(run):
            await asyncio.to_thread(trip.hold, room)

    async with trip.guard.saga(run):
        await asyncio.gather(part("12"), part("13"))
        assert await asyncio.to_thread(state, service, run) == "running"
    assert await asyncio.to_thread(state, service, run) == "completed"
    assert sorted(trip.did) == ["hold 12", "hold 13"]


def test_doubt_that_the_agent_has_swallowed_suspends_the_block_at_its_end(
    service: ServiceProcess, run: str, trip: Trip
) -> None:
    def book() -> None:
        with trip.guard.saga(run):
            trip.hold("12")
            with contextlib.suppress(RunSuspended):
                trip.pay(9900)

    trip.breaks["pay"] = TimeoutError()
    with pytest.raises(RunSuspended, match=f"The saga {run} runs on: .* tool 'pay', which is in doubt") as raised:
        book()
    assert state(service, run) == "running"
    trip.settle(service.ask, raised.value.key, "applied", result={"id": "pay-9900"})
    book()
    assert state(service, run) == "completed"


def test_a_step_that_may_still_be_tried_is_not_left_out_silently(service: ServiceProcess, run: str, trip: Trip) -> None:
    def book() -> None:
        with trip.guard.saga(run), contextlib.suppress(AttemptsExhausted, NotApplied):
            trip.hold("12")

    trip.lasting["hold"] = NotApplied("busy")
    with pytest.raises(RetryLater, match="tool 'hold', which is not applied, and may still be tried") as raised:
        book()
    assert state(service, run) == "running"
    service.ask("POST", f"/v1/effects/{raised.value.key}/cancel", {"reason": "not needed any more"})
    with pytest.raises(Rejected, match="not needed any more"):
        book()


def test_a_block_that_ends_before_a_thread_of_it_does_not_complete_the_saga(
    service: ServiceProcess, run: str, trip: Trip
) -> None:
    is_inside, may_end = threading.Event(), threading.Event()

    @trip.guard.tool(settle_seconds=0)
    def slow() -> None:
        is_inside.set()
        assert may_end.wait(30)

    async def book() -> None:
        async with trip.guard.saga(run):
            task = asyncio.create_task(asyncio.to_thread(slow))
            tasks.append(task)
            await asyncio.to_thread(is_inside.wait, 30)

    async def story() -> None:
        with pytest.raises(InProgress, match="tool 'slow', which is being executed"):
            await book()
        assert await asyncio.to_thread(state, service, run) == "running"
        may_end.set()
        await tasks[0]
        await book()

    tasks: list[asyncio.Task[None]] = []
    asyncio.run(story())
    assert state(service, run) == "completed"


@pytest.mark.parametrize("beside", [asyncio.CancelledError(), KeyboardInterrupt(), None])
def test_a_refusal_within_a_group_fails_the_saga_whatever_is_beside_it(
    service: ServiceProcess, run: str, trip: Trip, beside: BaseException | None
) -> None:
    def book() -> None:
        with trip.guard.saga(run, wait_seconds=0):
            trip.hold("12")
            other = beside
            if beside is None:
                with pytest.raises(RunSuspended) as suspended:
                    trip.pay(9900)
                other = suspended.value
            assert other is not None
            raise BaseExceptionGroup("two", [other, BaseExceptionGroup("one", [Rejected("full")])])

    trip.breaks["pay"] = TimeoutError()
    with pytest.raises(BaseExceptionGroup) as raised:
        book()
    if beside is None:
        assert "the step may or may not have happened" in notes(raised.value)
        assert (trip.did, state(service, run)) == (["hold 12", "pay 9900"], "compensating")
    else:
        assert (trip.did, state(service, run)) == (["hold 12", BACK[1]], "compensated")


def test_a_group_without_a_failure_fails_nothing(service: ServiceProcess, run: str, trip: Trip) -> None:
    error = BaseExceptionGroup("two", [asyncio.CancelledError(), KeyboardInterrupt()])
    with pytest.raises(BaseExceptionGroup):
        trip.break_off(run, error)
    assert (trip.did, state(service, run)) == (["hold 12"], "running")


def test_a_template_that_does_not_fit_the_tool_that_takes_back_is_flagged_at_once(
    service: ServiceProcess, run: str, trip: Trip
) -> None:
    @trip.guard.tool(compensation=Compensation(tool="release", arguments={"hodl": "${result}"}))
    def take(room: str) -> str:
        return room

    def book() -> None:
        with trip.guard.saga(run):
            take("12")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no") as raised:
        book()
    assert "the call of release that is due does not fit it: hold is missing, there is no hodl" in notes(raised.value)
    assert state(service, run) == "stuck"
    flags = service.ask("GET", "/v1/flags?kind=saga-stuck&state=open&limit=500").body["items"]
    assert [run in flag["detail"] and "there is no hodl" in flag["detail"] for flag in flags if flag["run"] == run] == [
        True
    ]
