"""The registry and a tool whose code says that it only reads, and a tool that is corrected and defined again."""

from collections.abc import Iterator

import pytest

from tests.service import ServiceProcess
from twiceshy import ApprovalAwaited, ApprovalRule, Guard, Rejected, RequestRefused


@pytest.fixture
def guard(service: ServiceProcess) -> Iterator[Guard]:
    with Guard(service.url, spool=None) as guard:
        yield guard


def test_a_read_that_a_person_holds_for_approval_is_not_run_unasked(
    guard: Guard, service: ServiceProcess, run: str
) -> None:
    ran: list[int] = []

    @guard.tool(name=f"look-{run}", effect="read")
    def look(number: int) -> int:
        ran.append(number)
        return number

    service.ask("PUT", f"/v1/tools/look-{run}", {"class": "side_effect", "approval": {}})
    for _ in range(2):
        with guard.run(run), pytest.raises(ApprovalAwaited):
            look(7)
    assert ran == []


def test_a_read_that_nobody_holds_stricter_runs_each_time_and_leaves_no_record(
    guard: Guard, service: ServiceProcess, run: str
) -> None:
    ran: list[int] = []

    @guard.tool(name=f"look-{run}", effect="read")
    def look(number: int) -> int:
        ran.append(number)
        return number

    with guard.run(run):
        assert [look(7), look(7)] == [7, 7]
    assert ran == [7, 7]
    assert service.ask("GET", f"/v1/tools/look-{run}").body["declaration"]["class"] == "read"
    assert service.ask("GET", f"/v1/effects?tool=look-{run}").body["items"] == []


def test_an_approval_that_is_added_in_a_corrected_cell_counts_from_the_next_call(guard: Guard, run: str) -> None:
    ran: list[str] = []

    def pay(to: str) -> str:
        ran.append(to)
        return to

    guard.tool(name=f"pay-{run}")(pay)
    with guard.run(run):
        guard.tool(name=f"pay-{run}")(pay)("bob")
        with pytest.raises(ApprovalAwaited):
            guard.tool(name=f"pay-{run}", approval=True)(pay)("eve")
    with guard.run(f"{run}-later"), pytest.raises(ApprovalAwaited):
        guard.tool(name=f"pay-{run}", approval=True)(pay)("eve")
    assert ran == ["bob"]


def test_a_refusal_says_its_flaw_once(guard: Guard, run: str) -> None:
    @guard.tool(name=f"pay-{run}", approval=ApprovalRule(when="arguments.amount > 50"))
    def pay(amount: int) -> None:
        raise Rejected("it ran")

    with guard.run(run), pytest.raises(RequestRefused) as caught:
        pay(7)
    assert str(caught.value).count("numbers stand in backticks: amount > `50`") == 1
    assert str(caught.value).count("/approval/when") == 1
    assert [path for path, _ in caught.value.errors] == ["/approval/when"]
