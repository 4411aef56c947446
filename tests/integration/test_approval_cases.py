"""Situations from the field in which an approval met the wrong call, or was used twice."""

from uuid import uuid4

from tests.integration.approving import decide, declared
from tests.service import ServiceProcess


def test_an_approved_call_is_consumed_and_a_later_turn_or_a_retry_of_the_run_is_answered_from_the_record(
    service: ServiceProcess, run: str
) -> None:
    """In agent-framework 6851 and 7458, the approval was spent, the run failed, and the tool ran again."""
    tool = declared(service)
    decide(service, service.begin(run, tool, {"amount": 80}))
    granted = service.begin(run, tool, {"amount": 80})
    assert service.report("commit", granted, result="r-1").status == 200
    later_turn = service.begin(run, declared(service, approval=None), {"other": True})
    assert service.report("fail", later_turn, kind="rejected", error={"type": "Boom", "message": "x"}).status == 200
    for _ in range(2):
        again = service.begin(run, tool, {"amount": 80})
        assert (again.body["decision"], again.body["key"]) == ("replay", granted.body["key"])
        assert again.body["outcome"] == {"result": "r-1"}
    assert len(service.ask("GET", f"/v1/approvals?run={run}").body["items"]) == 1


def test_two_deferred_calls_that_share_an_id_have_an_approval_each_and_none_runs_the_wrong_tool(
    service: ServiceProcess, run: str
) -> None:
    """In pydantic-ai 6241, one approval ran the wrong tool, twice."""
    mail, refund = declared(service), declared(service)
    sent = service.begin(run, mail, {"to": "bob"}, step="call_0")
    paid = service.begin(run, refund, {"amount": 80}, step="call_0")
    assert sent.body["approval"] != paid.body["approval"]
    other = service.begin(run, mail, {"to": "eve"}, step="call_0")
    assert (other.status, other.code, other.body["paths"]) == (422, "arguments-changed", ["/arguments/to"])
    decide(service, sent)
    assert service.begin(run, refund, {"amount": 80}, step="call_0").status == 202
    assert service.begin(run, mail, {"to": "eve"}, step="call_0").status == 422
    assert service.begin(run, mail, {"to": "bob"}, step="call_0").status == 201


def test_a_retry_by_an_engine_that_knows_of_no_consumption_does_not_execute_again(
    service: ServiceProcess, run: str
) -> None:
    """In pydantic-ai 5536, an approved call had no consume step."""
    tool = declared(service)
    decide(service, service.begin(run, tool))
    first = service.begin(run, tool)
    assert (first.status, service.begin(run, tool, attempt=str(uuid4())).code) == (201, "in-progress")
    service.report("fail", first, kind="unknown", error={"type": "Timeout", "message": "x"})
    assert service.begin(run, tool).code == "outcome-in-doubt"


def test_a_finished_run_that_is_resumed_runs_nothing_and_asks_nobody_even_after_a_denial(
    service: ServiceProcess, run: str
) -> None:
    """In mastra 24796, resuming a finished run executed the tool, even after a deny."""
    tool = declared(service)
    denied, open_one, approved = (service.begin(run, tool, {"n": number}) for number in range(3))
    decide(service, denied, "deny", reason="no")
    decide(service, approved)
    assert service.ask("POST", f"/v1/runs/{run}/finish", {}).status == 200
    again = service.begin(run, tool, {"n": 0})
    assert (again.body["decision"], again.body["outcome"]["error"]["message"]) == ("replay", "no")
    decide(service, open_one)
    for number in (1, 2, 3):
        refused = service.begin(run, tool, {"n": number})
        assert (refused.status, refused.code) == (409, "run-finished")
    assert len(service.ask("GET", f"/v1/approvals?run={run}").body["items"]) == 3
