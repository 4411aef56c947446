"""Tools that a person must approve, called through the SDK: suspended or waiting, never run before the word."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.service import ServiceProcess
from twiceshy import (
    ApprovalAwaited,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalRule,
    Guard,
    RecordMismatch,
    Rejected,
    RunFinished,
    RunSuspended,
)


@pytest.fixture
def guard(service: ServiceProcess, tmp_path: Path) -> Iterator[Guard]:
    """A guard of the service."""
    with Guard(service.url, spool=tmp_path / "spool") as made:
        yield made


def refunding(guard: Guard, name: str, made: list[int], **options: Any) -> Any:
    """Make a tool that notes what it refunds."""

    @guard.tool(effect="side_effect", name=f"refund-{name}", **({"approval": True} | options))
    def refund(amount: int) -> str:
        made.append(amount)
        return f"refunded {amount}"

    return refund


def said(service: ServiceProcess, approval: UUID | None, verdict: str = "approve", **words: Any) -> None:
    """Let bob decide."""
    body = {"verdict": verdict, "by": "bob"} | words
    assert service.ask("POST", f"/v1/approvals/{approval}/decide", body).status == 200


def asked(service: ServiceProcess, run: str) -> UUID:
    """Wait until a run has asked, and return the approval."""
    while True:
        items = service.ask("GET", f"/v1/approvals?run={run}&state=open").body["items"]
        if items:
            return UUID(items[0]["id"])


def test_a_run_is_suspended_and_goes_on_when_it_is_run_again(guard: Guard, service: ServiceProcess, run: str) -> None:
    made: list[int] = []
    refund = refunding(guard, run, made, approval=ApprovalRule(summary="Refund ${arguments.amount} EUR"))
    approvals = set()
    for _ in range(2):
        with pytest.raises(ApprovalAwaited, match=r"about this: Refund 80 EUR\.") as waiting, guard.run(run):
            refund(80)
        assert isinstance(waiting.value, RunSuspended)
        assert "twiceshy approvals approve" in waiting.value.__notes__[0]
        approvals.add(waiting.value.approval)
    assert (len(approvals), made) == (1, [])
    said(service, approvals.pop(), arguments={"amount": 60})
    for _ in range(2):
        with guard.run(run):
            assert refund(80) == "refunded 60"
            assert refund(60) == "refunded 60"
    assert made == [60]


def test_a_denial_reaches_the_agent_with_who_and_why(guard: Guard, service: ServiceProcess, run: str) -> None:
    made: list[int] = []
    refund = refunding(guard, run, made)
    with pytest.raises(ApprovalAwaited) as waiting, guard.run(run):
        refund(80)
    said(service, waiting.value.approval, "deny", reason="no receipt")
    for _ in range(2):
        with pytest.raises(ApprovalDenied, match="bob has denied it: no receipt") as denied, guard.run(run):
            refund(80)
        assert (denied.value.reason, denied.value.by) == ("no receipt", "bob")
    assert made == []


def test_an_approval_that_ran_out_is_no_denial_and_is_asked_anew(
    guard: Guard, service: ServiceProcess, run: str
) -> None:
    refund = refunding(guard, run, [], approval=ApprovalRule(deadline_seconds=1), on_approval="wait")
    with pytest.raises(ApprovalExpired, match=r"with_key\(reopen=True\)"), guard.run(run):
        refund(80)
    suspending = refunding(guard, f"{run}-2", [], approval=ApprovalRule(deadline_seconds=1))
    with pytest.raises(ApprovalAwaited) as first, guard.run(run):
        suspending(80)
    assert service.ask("GET", f"/v1/approvals/{first.value.approval}?wait=30").body["state"] == "expired"
    with pytest.raises(ApprovalExpired), guard.run(run):
        suspending(80)
    with pytest.raises(ApprovalAwaited) as second, guard.run(run):
        suspending.with_key(reopen=True)(80)
    assert first.value.approval != second.value.approval


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_a_call_that_waits_goes_on_with_the_word(guard: Guard, service: ServiceProcess, run: str, verdict: str) -> None:
    made: list[int] = []
    refund = refunding(guard, run, made, on_approval="wait")

    def call() -> str:
        with guard.run(run):
            return str(refund(80))

    with ThreadPoolExecutor(1) as pool:
        called: Future[str] = pool.submit(call)
        said(service, asked(service, run), verdict, reason="as it is")
        if verdict == "approve":
            assert (called.result(20), made) == ("refunded 80", [80])
        else:
            with pytest.raises(ApprovalDenied):
                called.result(20)
            assert made == []


async def test_an_async_call_waits_and_may_be_cancelled(guard: Guard, service: ServiceProcess, run: str) -> None:
    made: list[int] = []

    @guard.tool(effect="side_effect", name=f"refund-{run}", approval=True, on_approval="wait")
    async def refund(amount: int) -> int:
        made.append(amount)
        return amount

    async def call() -> int:
        async with guard.run(run):
            return await refund(80)

    waiting = asyncio.create_task(call())
    approval = await asyncio.to_thread(asked, service, run)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert made == []
    waiting = asyncio.create_task(call())
    await asyncio.to_thread(said, service, approval)
    assert (await waiting, made) == (80, [80])


def test_an_embedded_guard_asks_too(tmp_path: Path, run: str) -> None:
    made: list[int] = []
    with Guard(f"sqlite:///{tmp_path / 'twiceshy.db'}", spool=None) as guard:
        refund = refunding(guard, run, made)
        with pytest.raises(ApprovalAwaited), guard.run(run):
            refund(80)
    assert made == []


def test_parallel_calls_have_an_approval_each_and_an_answer_goes_to_its_own_call(
    guard: Guard, service: ServiceProcess, run: str
) -> None:
    made: list[int] = []
    lock = threading.Lock()

    @guard.tool(effect="side_effect", name=f"refund-{run}", approval=True)
    def refund(amount: int) -> int:
        with lock:
            made.append(amount)
        return amount

    approvals: dict[int, UUID | None] = {}
    for amount in (10, 20, 30):
        with pytest.raises(ApprovalAwaited) as waiting, guard.run(run):
            refund(amount)
        approvals[amount] = waiting.value.approval
    assert len(set(approvals.values())) == 3
    said(service, approvals[20])
    said(service, approvals[30], "deny", reason="no")
    with guard.run(run):
        with pytest.raises(ApprovalAwaited):
            refund(10)
        assert refund(20) == 20
        with pytest.raises(ApprovalDenied):
            refund(30)
    assert made == [20]


def test_a_call_that_waits_ends_with_its_effect_and_with_its_run(
    guard: Guard, service: ServiceProcess, run: str
) -> None:
    made: list[int] = []
    refund = refunding(guard, run, made, on_approval="wait")

    def call(name: str) -> str:
        with guard.run(name):
            return str(refund(80))

    with ThreadPoolExecutor(2) as pool:
        for name, error in ((f"{run}-1", Rejected), (f"{run}-2", RunFinished)):
            called: Future[str] = pool.submit(call, name)
            approval = asked(service, name)
            key = service.ask("GET", f"/v1/approvals/{approval}").body["key"]
            if error is Rejected:
                service.ask("POST", f"/v1/effects/{key}/cancel", {"reason": "not needed"})
            else:
                service.ask("POST", f"/v1/runs/{name}/finish", {})
            with pytest.raises(error):
                called.result(20)
    assert made == []


def test_arguments_that_were_approved_and_do_not_fit_send_nothing_and_are_taken_back(
    guard: Guard, service: ServiceProcess, run: str
) -> None:
    made: list[int] = []
    refund = refunding(guard, run, made)
    with pytest.raises(ApprovalAwaited) as first, guard.run(run):
        refund(80)
    said(service, first.value.approval, arguments={"amount": None})
    with pytest.raises(RecordMismatch, match=r"Nothing was sent.*twiceshy approvals cancel"), guard.run(run):
        refund(80)
    path = f"/v1/approvals/{first.value.approval}/cancel"
    assert service.ask("POST", path, {"reason": "no amount", "by": "bob"}).status == 200
    with pytest.raises(ApprovalAwaited) as second, guard.run(run):
        refund(80)
    said(service, second.value.approval)
    with guard.run(run):
        assert refund(80) == "refunded 80"
    assert (first.value.approval != second.value.approval, made) == (True, [80])
