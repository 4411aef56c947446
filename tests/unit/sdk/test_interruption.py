"""Cancelled callers, lost leases, and concurrent calls: what is reported and what is seen."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from tests.unit.sdk.scripted import (
    FakeClock,
    ScriptedService,
    about,
    answered,
    committed,
    executes,
    failed,
    given,
    problem,
)
from twiceshy import (
    CurrentEffect,
    Guard,
    LeaseLost,
    current_effect,
)
from twiceshy._transports.base import NoReply, Reply, Request

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection reset")


async def test_async_tools_run_once_and_gather_keeps_contexts(serve: Serve) -> None:
    guard, service = serve()
    service.always = _by_path

    @guard.tool
    async def hold(n: int) -> str:
        before = current_effect()
        await asyncio.sleep(0)
        assert current_effect() is before
        return str(before.attempt)

    async with guard.run("booking-42"):
        results = await asyncio.gather(*(hold(n) for n in range(10)))
    assert len(set(results)) == 10


async def test_a_cancelled_tool_is_reported_before_the_cancellation_goes_on(serve: Serve) -> None:
    guard, service = serve(executes(), failed("in_doubt"))
    started = asyncio.Event()

    @guard.tool
    async def hold() -> None:
        started.set()
        await asyncio.Event().wait()

    async with guard.run("booking-42"):
        task = asyncio.create_task(hold())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service.bodies("/fail")[0]["kind"] == "unknown"


async def test_a_cancellation_during_the_commit_waits_for_it(serve: Serve) -> None:
    guard, service = serve(executes(), committed())
    committing, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> None:
        if request.path.endswith("/commit"):
            committing.set()
            await go_on.wait()

    service.holding = slow

    @guard.tool
    async def hold() -> int:
        return 1

    async with guard.run("booking-42"):
        task = asyncio.create_task(hold())
    await committing.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(service.bodies("/commit")) == 1


async def test_a_cancelled_commit_is_given_up_after_the_grace(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twiceshy._drive._GRACE_SECONDS", 0.01)
    guard, service = serve(executes())
    committing = asyncio.Event()

    async def hang(request: Request) -> None:
        if request.path.endswith("/commit"):
            committing.set()
            await asyncio.Event().wait()

    service.holding = hang

    @guard.tool
    async def hold() -> int:
        return 1

    async with guard.run("booking-42"):
        task = asyncio.create_task(hold())
    await committing.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_begin_is_released(serve: Serve) -> None:
    guard, service = serve()
    asked = asyncio.Event()

    async def hang(request: Request) -> None:
        if request.path == "/v1/effects":
            service.requests.append(request)
            asked.set()
            await asyncio.Event().wait()

    service.holding = hang

    @guard.tool
    async def hold() -> int:
        return 1

    async with guard.run("booking-42"):
        task = asyncio.create_task(hold())
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service.paths == ["effects", "release"]


async def test_a_lost_lease_cancels_an_async_tool_and_raises_lease_lost(serve: Serve) -> None:
    guard, service = serve(executes(), failed("in_doubt"))
    service.renewal = problem("superseded")
    seen: list[CurrentEffect] = []

    @guard.tool
    async def hold() -> None:
        seen.append(current_effect())
        heart = guard._environment.heartbeat
        with heart._changed:
            heart._due[seen[0]] = 0.0
        await asyncio.to_thread(heart.run_once)
        await asyncio.Event().wait()

    task = asyncio.current_task()
    assert task is not None
    async with guard.run("booking-42"):
        with pytest.raises(LeaseLost, match="superseded"):
            await hold()
    assert seen[0].lease_lost
    assert task.cancelling() == 0
    assert service.bodies("/fail")[0]["kind"] == "unknown"


def test_a_blocking_tool_that_lost_its_lease_still_commits(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(executes(), committed())

    @guard.tool
    def pay() -> int:
        clock.now += 31
        guard._environment.heartbeat.run_once()
        assert current_effect().lease_lost
        return 1

    with guard.run("booking-42"):
        assert pay() == 1
    assert service.paths == ["effects", "commit"]


def test_the_heartbeat_retries_errors_until_the_deadline(
    serve: Serve, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    guard, service = serve(executes(), committed())
    service.renewal = SILENCE
    heart = guard._environment.heartbeat

    @guard.tool
    def pay() -> int:
        effect = current_effect()
        heart.run_once()
        assert service.paths.count("renew") == 0
        clock.now += 10
        for _ in range(5):
            heart.run_once()
            clock.now += 1
        assert service.paths.count("renew") == 5
        service.renewal = answered(200, about(lease_seconds_left=30.0))
        heart.run_once()
        assert effect.seconds_left == 30
        service.renewal = SILENCE
        clock.now += 31
        heart.run_once()
        assert effect.lease_lost
        return 1

    with guard.run("booking-42"):
        assert pay() == 1


def _by_path(request: Request) -> Reply | NoReply:
    return given(executes(), request) if request.path == "/v1/effects" else committed()
