"""What a call does while a person thinks, word by word of the service."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.unit.sdk.scripted import (
    KEY,
    FakeClock,
    ScriptedService,
    about,
    answered,
    committed,
    executes,
    payer,
    problem,
    replays,
)
from twiceshy import ApprovalAwaited, ApprovalDenied, Guard, GuardUnavailable, Rejected, RequestRefused
from twiceshy._transports.base import NoReply

Serve = Callable[..., tuple[Guard, ScriptedService]]
APPROVAL = UUID(int=7)
WAITS = answered(
    202,
    about(
        decision="await_approval",
        state="pending",
        fence=0,
        approval=str(APPROVAL),
        summary="pay 7 EUR",
        quorum=1,
        expires_at=None,
    ),
)


def seen(state: str) -> Any:
    """Answer how the approval stands."""
    return answered(200, {"id": str(APPROVAL), "state": state, "added later": True})


def asked(service: ScriptedService) -> list[str]:
    """The paths that were read, in order."""
    return [request.path for request in service.requests if request.method == "GET"]


def test_a_call_that_does_not_wait_says_what_is_asked_and_how_to_decide(serve: Serve) -> None:
    guard, service = serve(WAITS)
    ran: list[int] = []
    with guard.run("booking-42"), pytest.raises(ApprovalAwaited, match=r"about this: pay 7 EUR\.") as waiting:
        payer(guard, ran)(7)
    assert (waiting.value.approval, waiting.value.key, ran, asked(service)) == (APPROVAL, KEY, [], [])
    assert f"twiceshy approvals approve {APPROVAL} --as NAME" in waiting.value.__notes__[0]


def test_a_call_that_waits_asks_until_it_is_decided_and_begins_anew(serve: Serve) -> None:
    guard, service = serve(WAITS, seen("open"), NoReply(reason="gone"), seen("approved"), executes(), committed())
    ran: list[int] = []
    with guard.run("booking-42"):
        payer(guard, ran, on_approval="wait")(7)
    assert ran == [7]
    assert asked(service) == [f"/v1/approvals/{APPROVAL}?wait=2"] * 3
    begun = service.bodies("/v1/effects")
    assert len({body["attempt"] for body in begun}) == 2


def test_a_call_that_waits_gives_up_when_the_service_is_gone_and_nothing_ran(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(WAITS)
    service.answers += [NoReply(reason="gone")] * 50
    ran: list[int] = []
    with guard.run("booking-42"), pytest.raises(GuardUnavailable, match="pay did not run"):
        payer(guard, ran, on_approval="wait")(7)
    assert ran == []


def test_an_approval_that_cannot_be_read_is_said(serve: Serve) -> None:
    guard, _ = serve(WAITS, problem("not-found", 404))
    with guard.run("booking-42"), pytest.raises(RequestRefused, match="pay did not run"):
        payer(guard, [], on_approval="wait")(7)


def test_a_denial_is_an_error_of_its_own_with_who_and_why(serve: Serve) -> None:
    data = {"approval": str(APPROVAL), "by": "bob"}
    guard, _ = serve(replays(error={"type": "ApprovalDenied", "message": "no receipt", "data": data}))
    with guard.run("booking-42"), pytest.raises(ApprovalDenied, match="bob has denied it: no receipt") as denied:
        payer(guard, [])(7)
    assert (denied.value.reason, denied.value.by, denied.value.key) == ("no receipt", "bob", KEY)


@pytest.mark.parametrize("data", [None, {"approval": 7}, "bob"])
def test_an_error_of_the_tool_that_is_called_the_same_stays_the_tools(serve: Serve, data: object) -> None:
    guard, _ = serve(replays(error={"type": "ApprovalDenied", "message": "no receipt", "data": data}))
    with guard.run("booking-42"), pytest.raises(Rejected, match="no receipt"):
        payer(guard, [])(7)
