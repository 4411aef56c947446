"""Staging passes what a begin passes: approvals, forks, doubt, the writer of a recorded run, sagas."""

from typing import Any
from uuid import uuid4

from tests.integration.approving import decide
from tests.integration.approving import declared as approved_tool
from tests.integration.fork_driver import Driver
from tests.integration.forks import Recorded
from tests.integration.staging import declared, message, shown, stage, staged
from tests.service import Reply, ServiceProcess

ERROR = {"type": "Lost", "message": "no answer"}


def test_a_person_is_asked_before_anything_is_staged(service: ServiceProcess, run: str) -> None:
    hook, tool = declared(service), approved_tool(service)
    waiting = stage(service, run, message(hook), tool=tool)
    assert (waiting.status, waiting.body["decision"], staged(service, run)) == (202, "await_approval", [])
    decide(service, waiting)
    reply = stage(service, run, message(hook), tool=tool)
    assert (reply.status, [line["id"] for line in staged(service, run)]) == (201, reply.body["messages"])


def test_what_is_denied_stages_nothing(service: ServiceProcess, run: str) -> None:
    hook, tool = declared(service), approved_tool(service)
    decide(service, stage(service, run, message(hook), tool=tool), "deny", reason="no")
    reply = stage(service, run, message(hook), tool=tool)
    assert (reply.status, reply.body["outcome"]["error"]["type"]) == (200, "ApprovalDenied")
    assert staged(service, run) == []


def test_a_misfit_is_refused_before_a_person_is_asked(service: ServiceProcess, run: str) -> None:
    tool = approved_tool(service)
    assert stage(service, run, message("nowhere-at-all"), tool=tool).status == 400
    assert service.ask("GET", f"/v1/approvals?tool={tool}").body["items"] == []


def test_arguments_that_a_person_put_in_are_rendered_by_the_caller_and_then_staged(
    service: ServiceProcess, run: str
) -> None:
    hook, tool = declared(service), approved_tool(service)
    own, edited = {"amount": 80}, {"amount": 50}
    waiting = stage(service, run, message(hook, own), tool=tool, arguments=own)
    decide(service, waiting, arguments=edited)
    for rendered_from in ({}, {"rendered_from": own}, {"rendered_from": {"amount": 51}}):
        reply = stage(service, run, message(hook, own), tool=tool, arguments=own, **rendered_from)
        assert (reply.status, reply.body["decision"], reply.body["arguments"]) == (200, "render", edited)
        assert (reply.body["state"], staged(service, run)) == ("pending", [])
    done = stage(service, run, message(hook, edited), tool=tool, arguments=own, rendered_from=edited)
    assert (done.status, shown(service, done.body["messages"][0])["body"]) == (201, '{"amount":50}')
    again = stage(service, run, message(hook, own), tool=tool, arguments=own)
    assert (again.status, len(staged(service, run))) == (200, 1)


def test_messages_of_other_arguments_than_the_calls_own_are_not_staged(service: ServiceProcess, run: str) -> None:
    reply = stage(service, run, message(declared(service)), arguments={"a": 1}, rendered_from={"a": 2})
    assert (reply.status, reply.body["decision"], reply.body["arguments"]) == (200, "render", {"a": 1})
    assert service.ask("GET", f"/v1/effects/{reply.body['key']}").status == 404
    refused = stage(service, run, message(declared(service)), rendered_from={"a": {"$dec": "x"}})
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, "/rendered_from/a/$dec")


def test_what_is_executing_or_in_doubt_is_not_staged_beside(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    grant = service.begin(run, "notify", {"to": "bob"})
    busy = stage(service, run, message(hook))
    assert (busy.status, busy.code) == (409, "in-progress")
    service.report("fail", grant, kind="unknown", error=ERROR)
    doubtful = stage(service, run, message(hook))
    assert (doubtful.status, doubtful.code, staged(service, run)) == (409, "outcome-in-doubt", [])


def test_a_providers_window_does_not_cover_a_message(service: ServiceProcess, run: str) -> None:
    """The provider would know the downstream key of what was sent before; it does not know the message's id."""
    hook, tool = declared(service), f"window-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"provider_window_seconds": 3600})
    grant = service.begin(run, tool, {"to": "bob"})
    service.report("fail", grant, kind="unknown", error=ERROR)
    doubtful = stage(service, run, message(hook), tool=tool)
    assert (doubtful.status, doubtful.code, staged(service, run)) == (409, "outcome-in-doubt", [])
    assert service.begin(run, tool, {"to": "bob"}).status == 201


def test_what_was_not_applied_is_staged(service: ServiceProcess, run: str) -> None:
    hook, tool = declared(service), f"tried-{run}"
    grant = service.begin(run, tool, {"to": "bob"})
    service.report("fail", grant, kind="not_applied", error=ERROR, retry_after=0)
    reply = stage(service, run, message(hook), tool=tool)
    assert (reply.status, reply.body["fence"], len(staged(service, run))) == (201, 2, 1)


def test_who_asks_again_with_the_attempt_of_a_begin_stages(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run, "notify", {"to": "bob"})
    reply = stage(service, run, message(declared(service)), attempt=grant.body["attempt"])
    assert (reply.status, reply.body["fence"], len(staged(service, run))) == (201, 1, 1)


def did(service: ServiceProcess, run: str, hook: str) -> tuple[Recorded, Reply]:
    """Return a run that has staged one message, and the answer."""
    made = Recorded(service, run)
    made.declare()
    reply = stage(service, run, message(hook), tool=made.tool)
    assert reply.status == 201
    return made, reply


def test_a_fork_is_answered_from_the_record_and_stages_nothing(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    made, first = did(service, run, hook)
    fork = made.fork(at=1)
    reply = stage(service, fork, message(hook), tool=made.tool)
    assert (reply.status, reply.body["decision"], reply.body["provenance"]) == (200, "stub", "recorded")
    assert reply.body["outcome"] == {"result": {"staged": first.body["messages"]}}
    stopped = stage(service, fork, message(hook), tool=made.tool, arguments={"to": "eve"})
    assert (stopped.status, stopped.code, staged(service, fork)) == (409, "run-suspended", [])


def test_what_a_fork_is_let_stage_is_delivered(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    made, _ = did(service, run, hook)
    fork = made.fork(at=1, live=[{"tool": made.tool, "calls": 1}])
    waiting = stage(service, fork, message(hook), tool=made.tool, arguments={"to": "eve"})
    assert waiting.status == 202
    made.decide(waiting)
    reply = stage(service, fork, message(hook), tool=made.tool, arguments={"to": "eve"})
    assert (reply.status, [line["state"] for line in staged(service, fork)]) == (201, ["pending"])
    beyond = stage(service, fork, message(hook), tool=made.tool, arguments={"to": "cid"})
    assert (beyond.status, len(staged(service, fork))) == (409, 1)


def test_the_credential_of_a_fork_stages_and_lists_in_its_own_runs_alone(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    made, first = did(service, run, hook)
    driver = Driver(made, at=1)
    call: dict[str, Any] = {"tool": made.tool, "arguments": {"to": "bob"}, "attempt": str(uuid4())}
    call |= {"messages": [message(hook)]}
    assert driver.ask("POST", "/v1/outbox", call | {"run": driver.fork}).body["decision"] == "stub"
    assert driver.ask("POST", "/v1/outbox", call | {"run": run}).status == 403
    assert driver.ask("GET", f"/v1/outbox?run={driver.fork}").body["items"] == []
    for path in ("/v1/outbox", f"/v1/outbox?run={run}", f"/v1/outbox/{first.body['messages'][0]}", "/v1/destinations"):
        assert driver.ask("GET", path).status == 403
    for path in ("/v1/outbox/redrive", f"/v1/outbox/{first.body['messages'][0]}/cancel"):
        assert driver.ask("POST", path, {"reason": "r"}).status == 403


def test_what_a_recorded_run_brings_is_kept_first(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    epoch = service.ask("POST", "/v1/runs", {"run": run, "record": True}).body["epoch"]
    intent = {"phase": "intent", "seq": 1, "at": 1, "kind": "tool_call", "name": "notify", "digest": "0" * 64}
    reply = stage(service, run, message(hook), epoch=epoch, events=[intent])
    assert (reply.status, reply.body.get("next_seq")) == (201, 2), reply.body
    service.ask("POST", "/v1/runs", {"run": run, "record": True})
    late = stage(service, run, message(hook), epoch=epoch, arguments={"to": "eve"})
    assert (late.status, late.code, len(staged(service, run))) == (409, "run-taken-over", 1)


def test_a_step_of_a_saga_that_stages_is_a_step_of_it(service: ServiceProcess, run: str) -> None:
    hook, saga = declared(service), f"saga-{run}"
    service.ask("POST", "/v1/sagas", {"saga": saga, "run": run})
    reply = stage(service, run, message(hook), saga=saga)
    steps = service.ask("GET", f"/v1/sagas/{saga}").body["steps"]
    assert (reply.status, [step["key"] for step in steps]) == (201, [reply.body["key"]])
    service.ask("POST", f"/v1/sagas/{saga}/complete")
    over = stage(service, run, message(hook), saga=saga, arguments={"to": "eve"})
    assert (over.status, over.code, len(staged(service, run))) == (409, "saga-over", 1)
