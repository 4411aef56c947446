"""What is asked follows what becomes of the effect and its run; and a repeat is one whatever it is called."""

import threading

import pytest

from tests.integration.approving import approval, decide, declared
from tests.service import Reply, ServiceProcess


def heard(service: ServiceProcess, awaiting: Reply) -> tuple[threading.Thread, list[Reply]]:
    """Wait for a decision, as an agent that has nothing else to do."""
    replies: list[Reply] = []
    path = f"/v1/approvals/{awaiting.body['approval']}?wait=20"
    listener = threading.Thread(target=lambda: replies.append(service.ask("GET", path)))
    listener.start()
    return listener, replies


@pytest.mark.parametrize("how", ["effect", "run"])
def test_what_nobody_need_decide_any_more_leaves_the_queue_and_who_waits_hears_it(
    service: ServiceProcess, run: str, how: str
) -> None:
    tool = declared(service)
    waiting = service.begin(run, tool)
    listener, replies = heard(service, waiting)
    if how == "effect":
        said = {"reason": "not needed", "by": "carol"}
        assert service.ask("POST", f"/v1/effects/{waiting.body['key']}/cancel", said).status == 200
    else:
        assert service.ask("POST", f"/v1/runs/{run}/finish", {}).status == 200
    listener.join(10)
    assert [reply.body["state"] for reply in replies] == ["cancelled"]
    assert replies[0].body["reason"] == ("not needed" if how == "effect" else "its run is over")
    assert service.ask("GET", f"/v1/approvals?state=open&run={run}").body["items"] == []
    again = service.begin(run, tool)
    if how == "effect":
        assert (again.status, again.body["outcome"]["error"]["type"]) == (200, "Cancelled")
    else:
        assert (again.status, again.code) == (409, "run-finished")


def test_an_operator_who_reopens_what_ran_out_asks_anew(service: ServiceProcess, run: str) -> None:
    tool = declared(service, approval={"deadline_seconds": 1})
    waiting = service.begin(run, tool)
    assert service.ask("GET", f"/v1/approvals/{waiting.body['approval']}?wait=10").body["state"] == "expired"
    assert service.begin(run, tool).code == "approval-expired"
    path = f"/v1/effects/{waiting.body['key']}/reopen"
    assert service.ask("POST", path, {"reason": "alice was ill"}).status == 200
    (asked,) = service.ask("GET", f"/v1/approvals?run={run}&state=open").body["items"]
    assert (asked["round"], asked["key"], asked["expires_at"] is None) == (2, waiting.body["key"], False)
    said = {"verdict": "approve", "by": "alice"}
    assert service.ask("POST", f"/v1/approvals/{asked['id']}/decide", said).status == 200
    assert service.begin(run, tool).status == 201


def test_what_still_waits_is_not_asked_anew_by_a_reopening(service: ServiceProcess, run: str) -> None:
    waiting = service.begin(run, declared(service))
    assert service.ask("POST", f"/v1/effects/{waiting.body['key']}/reopen", {"reason": "x"}).status == 200
    assert len(service.ask("GET", f"/v1/approvals?run={run}").body["items"]) == 1


def test_a_repeat_under_another_occurrence_is_asked_for_too(service: ServiceProcess, run: str) -> None:
    tool = declared(service, approval=None, repeat="ask")
    first = service.begin(run, tool)
    meanwhile = service.begin(run, tool, occurrence=2)
    assert (meanwhile.status, approval(service, meanwhile)["evidence"]["repeats"]) == (202, first.body["key"])
    service.report("commit", first, result=1)
    for occurrence in (2, 3, 7):
        repeat = service.begin(run, tool, occurrence=occurrence)
        assert (repeat.status, approval(service, repeat)["evidence"]["because"]) == (202, "repeat")
    decide(service, meanwhile, "deny", reason="no")
    assert service.begin(run, tool, occurrence=4).body["outcome"]["error"]["type"] == "ApprovalDenied"
    assert service.begin(run, tool).body["outcome"]["error"]["type"] == "ApprovalDenied"
    assert service.begin(f"{run}-2", tool, occurrence=2).status == 201


def test_a_repeat_of_what_failed_needs_nobody(service: ServiceProcess, run: str) -> None:
    tool = declared(service, approval=None, repeat="ask")
    first = service.begin(run, tool)
    service.report("fail", first, kind="rejected", error={"type": "Full", "message": "x"})
    assert service.begin(run, tool, occurrence=2).status == 201
