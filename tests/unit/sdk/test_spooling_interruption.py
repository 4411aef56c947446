"""Interruptions while an outcome is told: it is heard or on disk, never lost."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.sdk.scripted import ScriptedService, committed, executes, failed
from tests.unit.sdk.spooled import files
from twiceshy import Guard
from twiceshy._spool_list import look
from twiceshy._transports.base import NoReply, Reply, Request

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection refused")


def waiting(folder: Path) -> list[tuple[str, str]]:
    """What waits: the tool and the kind of outcome."""
    return [(entry.tool, entry.kind) for entry in look(folder)]


@pytest.mark.parametrize("is_told", [True, False])
def test_ctrl_c_in_a_tool_is_reported_or_waits(serve: Serve, tmp_path: Path, is_told: bool) -> None:  # noqa: FBT001
    guard, service = serve(executes(), failed("in_doubt"), spool=tmp_path)

    @guard.tool
    def pay() -> None:
        service.always = None if is_told else SILENCE
        raise KeyboardInterrupt

    with guard.run("booking-42"), pytest.raises(KeyboardInterrupt) as caught:
        pay()
    said = "was reported as unknown" if is_told else "could not be told that the outcome is unknown"
    assert said in caught.value.__notes__[0]
    assert waiting(tmp_path) == ([] if is_told else [("pay", "unknown")])


def test_ctrl_c_while_the_outcome_is_told_leaves_it_on_disk(serve: Serve, tmp_path: Path) -> None:
    def interrupted(_: Request) -> Reply:
        raise KeyboardInterrupt

    guard, service = serve(executes(), interrupted, spool=tmp_path)

    @guard.tool
    def pay() -> int:
        return 14

    with guard.run("booking-42"), pytest.raises(KeyboardInterrupt):
        pay()
    assert waiting(tmp_path) == [("pay", "succeeded")]
    service.always = committed()
    guard.close()
    assert files(tmp_path) == []


async def test_a_cancellation_that_outlasts_the_grace_leaves_the_outcome_on_disk(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("twiceshy._drive._GRACE_SECONDS", 0.01)
    guard, service = serve(executes(), spool=tmp_path)
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
    assert waiting(tmp_path) == [("hold", "succeeded")]
    service.always = committed()
    await guard.close_async()
    assert files(tmp_path) == []


async def test_an_async_outcome_waits_without_holding_up_the_loop(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    guard, service = serve(executes(), SILENCE, committed(), spool=tmp_path)
    threads: list[object] = []
    to_thread = asyncio.to_thread

    async def noted(work: Callable[[], None]) -> None:
        threads.append(work)
        await to_thread(work)

    monkeypatch.setattr("twiceshy._drive.asyncio.to_thread", noted)

    @guard.tool
    async def pay() -> int:
        return 14

    async with guard.run("booking-42"):
        assert await pay() == 14
    assert len(threads) == 2, "one to keep it, one to settle it"
    assert service.paths == ["effects", "commit", "commit"]
