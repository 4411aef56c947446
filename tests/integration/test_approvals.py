"""Approvals, seen from outside: asked once, and one decision counts."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.approving import APPROVED, approval, decide, declared
from tests.service import Reply, ServiceProcess


@pytest.fixture
def tool(service: ServiceProcess) -> str:
    """A tool that a person must approve."""
    return declared(service)


def test_a_call_that_needs_a_person_waits_for_one_and_then_runs(service: ServiceProcess, run: str, tool: str) -> None:
    waiting = service.begin(run, tool, {"amount": 80, "to": "bob"}, requester="agent-7")
    assert (waiting.status, waiting.body["decision"], waiting.body["state"]) == (202, "await_approval", "pending")
    assert waiting.body["summary"] == f'{tool}(amount=80, to="bob")'
    seen = approval(service, waiting)
    assert (seen["state"], seen["key"], seen["requester"]) == ("open", waiting.body["key"], "agent-7")
    assert seen["arguments"] == {"amount": 80, "to": "bob"}
    assert seen["evidence"] == {"because": "rule", "class": "side_effect"}
    decided = decide(service, waiting, reason="it is the right customer")
    assert (decided.status, decided.body["state"]) == (200, "approved")
    assert decided.body["decisions"][0]["reason"] == "it is the right customer"
    granted = service.begin(run, tool, {"amount": 80, "to": "bob"})
    assert (granted.status, granted.body["key"], granted.body["arguments"]) == (201, waiting.body["key"], None)
    assert service.report("commit", granted, result="r-1").status == 200
    assert service.begin(run, tool, {"amount": 80, "to": "bob"}).body["decision"] == "replay"


def test_it_is_asked_once_however_often_the_call_comes(service: ServiceProcess, run: str, tool: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        waiting = list(pool.map(lambda _: service.begin(run, tool), range(16)))
    assert {reply.status for reply in waiting} == {202}
    assert len({reply.body["approval"] for reply in waiting}) == 1
    listed = service.ask("GET", f"/v1/approvals?state=open&run={run}&tool={tool}").body
    assert [one["id"] for one in listed["items"]] == [waiting[0].body["approval"]]
    assert listed["next"] is None


def test_a_denial_ends_the_effect_and_the_same_is_not_asked_again_in_the_run(
    service: ServiceProcess, run: str, tool: str
) -> None:
    waiting = service.begin(run, tool, {"amount": 80})
    denied = decide(service, waiting, "deny", reason="wrong customer")
    assert (denied.status, denied.body["state"], denied.body["reason"]) == (200, "denied", "wrong customer")
    error = {
        "type": "ApprovalDenied",
        "message": "wrong customer",
        "data": {"approval": waiting.body["approval"], "by": "alice"},
    }
    again = service.begin(run, tool, {"amount": 80})
    assert (again.status, again.body["state"], again.body["outcome"]) == (200, "failed", {"error": error})
    assert service.ask("GET", f"/v1/effects/{again.body['key']}").body["state"] == "failed"
    elsewhere = service.begin(run, tool, {"amount": 80}, step=7)
    assert (elsewhere.status, elsewhere.body["outcome"]) == (200, {"error": error})
    assert elsewhere.body["key"] != again.body["key"]
    assert service.begin(run, tool, {"amount": 81}).status == 202
    assert service.begin(f"{run}-other", tool, {"amount": 80}).status == 202


def test_an_approval_is_decided_once_and_the_rest_hear_why_not(service: ServiceProcess, run: str, tool: str) -> None:
    waiting = service.begin(run, tool)
    assert decide(service, waiting, reason="yes").status == 200
    assert decide(service, waiting, reason="yes").status == 200
    for verdict, by in (("deny", "alice"), ("approve", "bob"), ("deny", "bob")):
        late = decide(service, waiting, verdict, by)
        assert (late.status, late.code) == (409, "decided-already")
        assert "approved already by alice: yes" in late.body["detail"]
    assert len(approval(service, waiting)["decisions"]) == 1


def test_of_two_people_at_once_one_decides(service: ServiceProcess, run: str, tool: str) -> None:
    for number in range(10):
        waiting = service.begin(run, tool, {"number": number})
        words = [("approve", "alice"), ("deny", "bob"), ("approve", "carol"), ("deny", "dave")]
        with ThreadPoolExecutor(4) as pool:
            said = list(pool.map(lambda word, asked=waiting: decide(service, asked, *word), words))
        assert sorted(reply.status for reply in said) == [200, 409, 409, 409]
        assert {reply.code for reply in said if reply.status == 409} == {"decided-already"}
        assert len(approval(service, waiting)["decisions"]) == 1


def test_whoever_asked_does_not_decide(service: ServiceProcess, run: str, tool: str) -> None:
    waiting = service.begin(run, tool, requester="alice", worker="worker-1")
    own = decide(service, waiting, by="alice")
    assert (own.status, own.code) == (403, "forbidden")
    assert "was asked for by alice; with four eyes somebody else decides" in own.body["detail"]
    assert approval(service, waiting)["state"] == "open"
    assert decide(service, waiting, by="bob").status == 200
    unnamed = service.begin(run, tool, {"n": 2}, worker="worker-1")
    assert decide(service, unnamed, by="worker-1").code == "forbidden"


def test_an_approval_that_nobody_decided_in_time_is_expired_and_asked_anew_on_demand(
    service: ServiceProcess, run: str
) -> None:
    tool = declared(service, approval={"deadline_seconds": 1})
    waiting = service.begin(run, tool)
    assert waiting.body["expires_at"] is not None
    seen = service.ask("GET", f"/v1/approvals/{waiting.body['approval']}?wait=10")
    assert (seen.status, seen.body["state"]) == (200, "expired")
    late = decide(service, waiting)
    assert (late.status, late.code) == (409, "approval-expired")
    expired = service.begin(run, tool)
    assert (expired.status, expired.code, expired.body["state"]) == (409, "approval-expired", "pending")
    service.ask("PUT", f"/v1/tools/{tool}", APPROVED | {"approval": {"deadline_seconds": 600}})
    anew = service.begin(run, tool, reopen=True)
    assert (anew.status, anew.body["key"]) == (202, waiting.body["key"])
    assert approval(service, anew)["round"] == 2
    assert approval(service, waiting)["state"] == "expired"
    listed = service.ask("GET", f"/v1/approvals?state=expired&tool={tool}").body["items"]
    assert [one["id"] for one in listed] == [waiting.body["approval"]]
    assert decide(service, anew).status == 200
    assert service.begin(run, tool).status == 201


def test_a_question_that_is_taken_back_ends_the_effect(service: ServiceProcess, run: str, tool: str) -> None:
    waiting = service.begin(run, tool)
    path = f"/v1/approvals/{waiting.body['approval']}/cancel"
    taken = service.ask("POST", path, {"by": "carol", "reason": "the customer called"})
    assert (taken.status, taken.body["state"], taken.body["cancelled_by"]) == (200, "cancelled", "carol")
    assert service.ask("POST", path, {"by": "carol", "reason": "the customer called"}).body["state"] == "cancelled"
    assert decide(service, waiting).code == "decided-already"
    again = service.begin(run, tool)
    assert (again.status, again.body["outcome"]["error"]["type"]) == (200, "Cancelled")
    assert again.body["outcome"]["error"]["message"] == "the customer called"


def test_only_calls_that_the_rule_names_are_asked_for(service: ServiceProcess, run: str) -> None:
    tool = declared(service, approval={"when": "arguments.amount > `50`", "summary": "Refund ${arguments.amount} EUR"})
    assert service.begin(run, tool, {"amount": 50}).status == 201
    asked = service.begin(run, tool, {"amount": 51})
    assert (asked.status, asked.body["summary"]) == (202, "Refund 51 EUR")
    assert approval(service, asked)["evidence"]["when"] == "arguments.amount > `50`"
    failing = declared(service, approval={"when": "length(arguments.amount) > `1`"})
    assert service.begin(run, failing, {"amount": 1}).status == 202


def test_a_rule_of_today_holds_for_a_run_that_is_pinned_to_a_version_without_one(
    service: ServiceProcess, run: str
) -> None:
    tool = declared(service, approval=None)
    assert service.begin(run, tool, {"n": 1}).status == 201
    service.ask("PUT", f"/v1/tools/{tool}", APPROVED)
    assert service.begin(run, tool, {"n": 2}).status == 202


def test_an_intended_repeat_is_asked_for_where_the_tool_says_so(service: ServiceProcess, run: str) -> None:
    tool = declared(service, approval=None, repeat="ask")
    first = service.begin(run, tool)
    assert first.status == 201
    assert service.begin(run, tool).code == "in-progress"
    service.report("commit", first, result=1)
    repeat = service.begin(run, tool)
    assert (repeat.status, repeat.body["generation"]) == (202, 2)
    assert approval(service, repeat)["evidence"] == {
        "because": "repeat",
        "repeats": first.body["key"],
        "class": "side_effect",
    }
    decide(service, repeat)
    second = service.begin(run, tool)
    assert (second.status, second.body["generation"]) == (201, 2)
    service.report("commit", second, result=2)
    assert service.begin(run, tool).body["generation"] == 3


def test_an_approval_covers_all_attempts_until_the_effect_is_final(service: ServiceProcess, run: str) -> None:
    tool = declared(service, backoff_seconds=0)
    waiting = service.begin(run, tool)
    decide(service, waiting)
    error = {"type": "Busy", "message": "later"}
    assert service.report("fail", service.begin(run, tool), kind="not_applied", error=error).status == 200
    third = service.begin(run, tool)
    assert third.status == 201
    assert service.report("fail", third, kind="unknown", error=error).status == 200
    assert service.begin(run, tool).code == "outcome-in-doubt"
    listed = service.ask("GET", f"/v1/approvals?run={run}").body["items"]
    assert [one["id"] for one in listed] == [waiting.body["approval"]]


def test_who_waits_hears_the_decision_at_once(service: ServiceProcess, run: str, tool: str) -> None:
    waiting = service.begin(run, tool)
    heard: list[Reply] = []
    path = f"/v1/approvals/{waiting.body['approval']}?wait=30"
    listener = threading.Thread(target=lambda: heard.append(service.ask("GET", path)))
    listener.start()
    decide(service, waiting)
    listener.join(10)
    assert [reply.body["state"] for reply in heard] == ["approved"]
    assert service.ask("GET", path).body["state"] == "approved"


def test_a_page_of_approvals_goes_on_where_the_last_one_ended(service: ServiceProcess, run: str, tool: str) -> None:
    asked = [service.begin(run, tool, {"n": number}).body["approval"] for number in range(3)]
    first = service.ask("GET", f"/v1/approvals?run={run}&limit=2").body
    second = service.ask("GET", f"/v1/approvals?run={run}&limit=2&after={first['next']}").body
    assert [one["id"] for one in (*first["items"], *second["items"])] == asked[::-1]
    assert second["next"] is None
    foreign = service.ask("GET", f"/v1/flags?after={first['next']}")
    assert (foreign.status, foreign.code) == (400, "invalid-request")


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"verdict": "maybe", "by": "bob"}, "/verdict"),
        ({"verdict": "approve"}, "/by"),
        ({"verdict": "deny", "by": "bob", "arguments": {}}, "/arguments"),
        ({"verdict": "approve", "by": "bob", "arguments": {"when": {"$dt": "yesterday"}}}, "/arguments/when"),
        ({"verdict": "approve", "by": "bob", "because": "x"}, "/because"),
    ],
)
def test_a_word_that_cannot_be_understood_is_refused_with_its_place(
    service: ServiceProcess, run: str, tool: str, said: dict[str, Any], path: str
) -> None:
    waiting = service.begin(run, tool)
    refused = service.ask("POST", f"/v1/approvals/{waiting.body['approval']}/decide", said)
    assert (refused.status, refused.code) == (400, "invalid-request")
    assert refused.body["errors"][0]["path"].startswith(path)
    assert approval(service, waiting)["state"] == "open"


def test_an_approval_that_is_not_there_is_not_found(service: ServiceProcess) -> None:
    for name in (uuid4(), "nothing"):
        assert service.ask("GET", f"/v1/approvals/{name}").status == 404
        said = {"verdict": "approve", "by": "bob"}
        assert service.ask("POST", f"/v1/approvals/{name}/decide", said).status == 404
        assert service.ask("POST", f"/v1/approvals/{name}/cancel", {"reason": "x"}).status == 404


@pytest.mark.parametrize("amount", [{"$dec": "5000"}, "5000", None], ids=["a decimal", "a text", "nothing"])
def test_a_rule_that_cannot_be_judged_or_is_met_by_a_tagged_number_asks_a_person(
    service: ServiceProcess, run: str, amount: object
) -> None:
    tool = declared(service, approval={"when": "arguments.amount > `100`"})
    assert service.begin(run, tool, {"amount": amount}).status == 202
    assert service.begin(run, tool, {"amount": {"$dec": "99.99"}}).status == 201
