"""The service's own events: whoever asks for them is told what a person is asked, and what became of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.approving import decide
from tests.integration.approving import declared as approved_tool
from tests.integration.staging import HOOK, act, declared, shown, staged
from tests.service import Reply, ServiceProcess

BOTH = ["approval.requested", "approval.decided"]


@pytest.fixture
def hook(service: ServiceProcess) -> Iterator[str]:
    """A destination that asks for all events, for as long as the test lasts."""
    name = declared(service, HOOK, events=BOTH)
    yield name
    act(service, name, "remove")


def told(service: ServiceProcess, run: str, hook: str) -> list[dict[str, Any]]:
    """Read what was told of a run at a destination, in its order."""
    lines = staged(service, run, destination=hook)
    bodies = []
    for line in lines:
        assert (line["key"], line["state"], line["run"], line["epoch"]) == (None, "pending", run, 1)
        body = json.loads(shown(service, line["id"])["body"])
        assert body["type"] == line["type"]
        bodies.append(body)
    return bodies


def asked(service: ServiceProcess, run: str, **rule: Any) -> Reply:
    """Begin what a person must approve."""
    waiting = service.begin(run, approved_tool(service, approval=rule), {"amount": 80})
    assert waiting.status == 202
    return waiting


def test_a_question_is_told_once(service: ServiceProcess, run: str, hook: str) -> None:
    tool = approved_tool(service, approval={"summary": "Refund ${arguments.amount} EUR"})
    waiting, again = (service.begin(run, tool, {"amount": 80}) for _ in range(2))
    assert again.body["approval"] == waiting.body["approval"]
    [event] = told(service, run, hook)
    assert (event["type"], event["at"][-1]) == ("approval.requested", "Z")
    assert event["data"] == {
        "approval": waiting.body["approval"], "key": waiting.body["key"], "tool": tool, "run": run,
        "summary": "Refund 80 EUR", "state": "open", "decided_by": [], "reason": None,
    }  # fmt: skip


@pytest.mark.parametrize(("verdict", "state", "reason"), [("approve", "approved", None), ("deny", "denied", "no")])
def test_a_decision_is_told_once(
    service: ServiceProcess, run: str, verdict: str, state: str, reason: str | None
) -> None:
    hook = declared(service, HOOK, events=BOTH)
    waiting = asked(service, run)
    for _ in range(2):
        assert decide(service, waiting, verdict, reason="no").status == 200
    _, event = told(service, run, hook)
    assert event["type"] == "approval.decided"
    data = event["data"]
    assert (data["approval"], data["state"]) == (waiting.body["approval"], state)
    assert (data["decided_by"], data["reason"]) == (["alice"], reason)
    act(service, hook, "remove")


def test_a_quorum_is_told_when_it_has_agreed(service: ServiceProcess, run: str, hook: str) -> None:
    waiting = asked(service, run, quorum=2)
    decide(service, waiting, by="alice")
    assert len(told(service, run, hook)) == 1
    decide(service, waiting, by="bob")
    assert told(service, run, hook)[1]["data"]["decided_by"] == ["alice", "bob"]


def test_what_is_taken_back_is_told_whoever_takes_it_back(service: ServiceProcess, run: str, hook: str) -> None:
    waiting = asked(service, run)
    service.ask("POST", f"/v1/approvals/{waiting.body['approval']}/cancel", {"reason": "wrong", "by": "ann"})
    asked(service, run)
    service.ask("POST", f"/v1/runs/{run}/finish", {})
    data = [event["data"] for event in told(service, run, hook)]
    assert [one["state"] for one in data] == ["open", "cancelled", "open", "cancelled"]
    assert [one["decided_by"] for one in data] == [[], ["ann"], [], []]
    assert (data[1]["reason"], data[3]["reason"]) == ("wrong", "its run is over")


def test_an_approval_that_is_taken_back_is_told_after_it_was_given(
    service: ServiceProcess, run: str, hook: str
) -> None:
    waiting = asked(service, run)
    decide(service, waiting)
    service.ask("POST", f"/v1/approvals/{waiting.body['approval']}/cancel", {"reason": "wrong"})
    assert [event["data"]["state"] for event in told(service, run, hook)] == ["open", "approved", "cancelled"]


def test_only_who_asks_is_told_and_while_paused_it_waits(service: ServiceProcess, run: str, hook: str) -> None:
    other, deaf = declared(service, HOOK, events=["approval.decided"]), declared(service)
    act(service, hook, "pause")
    decide(service, asked(service, run))
    assert [event["type"] for event in told(service, run, hook)] == BOTH
    assert [event["type"] for event in told(service, run, other)] == BOTH[1:]
    assert told(service, run, deaf) == []
    act(service, other, "remove")
