"""Interruptions around tries: none is tried again, each ends the call at once, and nothing is reported twice."""

import asyncio
from collections.abc import Callable

import pytest

from tests.unit.sdk.scripted import (
    FakeClock,
    ScriptedService,
    answered,
    committed,
    executes,
    failed,
    problem,
)
from twiceshy import Guard, LeaseLost, NotApplied, current_effect
from twiceshy._transports.base import Reply, Request

Serve = Callable[..., tuple[Guard, ScriptedService]]


def pending(seconds: float) -> Reply:
    return failed("pending", retry_after_seconds=seconds)


async def test_an_async_tool_is_tried_again_in_its_callers_own_task(serve: Serve) -> None:
    guard, service = serve(executes(), pending(0.01), executes(), committed())
    tasks: list[asyncio.Task[object] | None] = []

    @guard.tool
    async def pay() -> int:
        tasks.append(asyncio.current_task())
        if len(tasks) == 1:
            raise NotApplied
        return 14

    async with guard.run("booking-42"):
        assert await pay() == 14
    assert tasks == [asyncio.current_task()] * 2
    assert service.paths == ["effects", "fail", "effects", "commit"]


@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt(), SystemExit(1), asyncio.CancelledError()], ids=lambda error: type(error).__name__
)
def test_an_interruption_is_never_tried_again(serve: Serve, raised: BaseException) -> None:
    guard, service = serve(executes(), pending(0.0))
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})

    @guard.tool(effect="idempotent")
    def switch_on() -> None:
        raise raised

    with guard.run("booking-42"), pytest.raises(type(raised)):
        switch_on()
    assert service.paths == ["effects", "fail"]


def test_a_lost_lease_is_never_tried_again(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(executes(), pending(0.0))
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})

    @guard.tool(effect="idempotent")
    def switch_on() -> None:
        clock.now += 31
        with current_effect().sending():
            pass

    with guard.run("booking-42"), pytest.raises(LeaseLost):
        switch_on()
    assert service.paths == ["effects", "fail"]


async def test_a_cancellation_ends_the_wait_at_once_and_nothing_is_reported_twice(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard, service = serve(executes(), pending(30.0))
    waits: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def sleep(seconds: float) -> None:
        waits.set_result(seconds)
        await asyncio.Event().wait()

    monkeypatch.setattr("twiceshy._drive.asyncio.sleep", sleep)

    @guard.tool
    async def pay() -> None:
        raise NotApplied("the bank is busy")

    async with guard.run("booking-42"):
        task = asyncio.create_task(pay())
    assert await waits == 30
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await asyncio.wait_for(task, 1)
    assert isinstance(caught.value.__context__, NotApplied)
    assert service.paths == ["effects", "fail"]


async def test_a_cancellation_while_the_outcome_is_told_ends_the_call_there(serve: Serve) -> None:
    guard, service = serve(executes(), pending(0.0))
    telling, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> None:
        if request.path.endswith("/fail"):
            telling.set()
            await go_on.wait()

    service.holding = slow

    @guard.tool
    async def pay() -> None:
        raise NotApplied("the bank is busy")

    async with guard.run("booking-42"):
        task = asyncio.create_task(pay())
    await telling.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert isinstance(caught.value.__context__, NotApplied)
    assert service.paths == ["effects", "fail"]


async def test_a_cancellation_inside_a_later_try_is_reported(serve: Serve) -> None:
    guard, service = serve(executes(), pending(0.0), executes(), failed("in_doubt"))
    tries: list[int] = []
    again = asyncio.Event()

    @guard.tool
    async def pay() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise NotApplied
        again.set()
        await asyncio.Event().wait()

    async with guard.run("booking-42"):
        task = asyncio.create_task(pay())
    await again.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [body["kind"] for body in service.bodies("/fail")] == ["not_applied", "unknown"]


def test_a_tools_error_keeps_what_it_was_raised_from(serve: Serve) -> None:
    guard, _ = serve(executes(), pending(1.0), problem("attempts-exhausted"))

    def connect() -> None:
        raise ConnectionError("refused")

    @guard.tool
    def pay() -> None:
        try:
            connect()
        except ConnectionError:
            raise NotApplied  # noqa: B904 - only its context says why

    with guard.run("booking-42"), pytest.raises(NotApplied) as caught:
        pay()
    assert isinstance(caught.value.__context__, ConnectionError)
    assert caught.value.__cause__ is None
