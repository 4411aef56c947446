"""Cancelled callers, lost leases, and concurrent calls: what is reported and what is seen."""

import asyncio
import traceback
from collections.abc import Callable

import pytest

from tests.unit.sdk.scripted import (
    ScriptedService,
    committed,
    executes,
    failed,
    given,
)
from twiceshy import (
    Guard,
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


async def test_a_cancellation_during_the_report_keeps_the_tools_own_exception_visible(serve: Serve) -> None:
    guard, service = serve(executes(), failed("failed"))
    reporting, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> None:
        if request.path.endswith("/fail"):
            reporting.set()
            await go_on.wait()

    service.holding = slow

    @guard.tool(classify=lambda _: "rejected")
    async def hold() -> None:
        raise ValueError("no money")

    async with guard.run("booking-42"):
        task = asyncio.create_task(hold())
    await reporting.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert "no money" in "".join(traceback.format_exception(caught.value))


def _by_path(request: Request) -> Reply | NoReply:
    return given(executes(), request) if request.path == "/v1/effects" else committed()
