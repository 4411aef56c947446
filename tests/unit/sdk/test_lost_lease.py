"""Lost leases: what is doubt, what is not, and what the heartbeat may say of them."""

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
    problem,
)
from twiceshy import (
    CurrentEffect,
    Guard,
    LeaseLost,
    OutcomeInDoubt,
    RunSuspended,
    current_effect,
)
from twiceshy._heartbeat import Heartbeat
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.names import OnDoubt

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection reset")


@pytest.mark.parametrize(
    ("answer", "on_doubt", "raised"),
    [
        (failed("in_doubt"), "suspend", RunSuspended),
        (failed("in_doubt"), "tell", OutcomeInDoubt),
        (SILENCE, "suspend", RunSuspended),
        (problem("lease-lost"), "suspend", RunSuspended),
        (problem("superseded"), "suspend", LeaseLost),
    ],
)
async def test_a_lost_lease_cancels_an_async_tool_and_leaves_doubt_unless_somebody_settled_it(
    serve: Serve, clock: FakeClock, answer: Reply | NoReply, on_doubt: OnDoubt, raised: type[BaseException]
) -> None:
    guard, service = serve(executes())
    service.renewal = problem("superseded")
    seen: list[CurrentEffect] = []

    @guard.tool(on_doubt=on_doubt)
    async def hold() -> None:
        seen.append(current_effect())
        service.always = answer
        clock.now += 29
        heart = guard._environment.heartbeat
        with heart._changed:
            heart._due[seen[0]] = 0.0
        await asyncio.to_thread(heart.run_once)
        guard._environment.clock = lambda: next(ticks)
        await asyncio.Event().wait()

    ticks = iter(range(2000, 9000))
    task = asyncio.current_task()
    assert task is not None
    async with guard.run("booking-42"):
        with pytest.raises(raised) as caught:
            await hold()
    lost = caught.value if raised is LeaseLost else caught.value.__cause__
    assert isinstance(lost, LeaseLost)
    assert isinstance(lost.__cause__, asyncio.CancelledError)
    assert seen[0].lease_lost
    assert task.cancelling() == 0
    assert service.bodies("/fail")[0]["kind"] == "unknown"


def test_a_blocking_tool_that_finds_its_deadline_passed_leaves_doubt(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(executes(), failed("in_doubt"))

    @guard.tool
    def pay(is_careful: bool) -> None:  # noqa: FBT001 - a tool's argument
        clock.now += 31
        if is_careful:
            with current_effect().sending():
                pass

    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        pay(is_careful=True)
    assert isinstance(caught.value.__cause__, LeaseLost)
    assert service.bodies("/fail")[0]["kind"] == "unknown"


@pytest.mark.parametrize("code", ["superseded", "lease-lost", "not-possible"])
def test_a_renewal_refused_while_the_outcome_is_told_is_no_lost_lease(
    serve: Serve, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    heart: Heartbeat
    seen: list[CurrentEffect] = []

    def commits_while_renewing(_: Request) -> Reply | NoReply:
        with heart._changed:
            assert list(heart._due) == seen
            heart._due[seen[0]] = 0.0
        heart.run_once()
        return committed()

    guard, service = serve(executes(), commits_while_renewing)
    service.renewal = problem(code)
    heart = guard._environment.heartbeat

    @guard.tool
    def pay() -> int:
        seen.append(current_effect())
        return 1

    with guard.run("booking-42"):
        assert pay() == 1
    assert service.paths == ["effects", "commit", "renew"]
    assert not seen[0].lease_lost
    assert caplog.records == []


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
