"""Generations over HTTP: across runs, repeats, what is known, siblings in doubt, and loops."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from tests.service import Reply, ServiceProcess

ERROR = {"type": "Timeout", "message": "no answer"}


def declare(service: ServiceProcess, tool: str, **declared: Any) -> str:
    named = {name.replace("class_", "class"): value for name, value in declared.items()}
    answer = service.ask("PUT", f"/v1/tools/{tool}", named)
    assert answer.status == 200, answer.body
    return tool


def done(service: ServiceProcess, run: str | None, tool: str, arguments: object = None, **fields: Any) -> Reply:
    """Begin, which must execute, and commit."""
    grant = service.begin(run, tool, arguments, **fields)
    assert grant.status == 201, grant.body
    assert service.report("commit", grant, result="done").status == 200
    return grant


def test_an_intent_of_the_tenant_happens_once_for_all_runs(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"page-{run}", key={"scope": "tenant"})
    grant = done(service, run, tool)
    other = service.begin(f"{run}-other", tool)
    assert (other.status, other.body["key"], other.body["shared"]) == (200, grant.body["key"], {"run": run})
    assert other.body["repeat_of"] == {"run": run, "step": 1}
    own = service.begin(run, tool)
    assert (own.status, own.body["shared"]) == (200, None)
    previewed = service.ask("POST", "/v1/keys", {"tool": tool, "arguments": {"to": "bob"}, "run": f"{run}-third"})
    assert previewed.body["key"] == grant.body["key"]
    assert service.begin(run, tool, {"to": "eve"}).status == 201


def test_a_business_key_is_shared_across_runs_too(service: ServiceProcess, run: str) -> None:
    grant = done(service, run, "pay", business_key=f"invoice-{run}")
    assert service.begin(run, business_key=f"invoice-{run}").body["shared"] is None
    for other in (f"{run}-other", None):
        assert service.begin(other, business_key=f"invoice-{run}").body["shared"] == {"run": run}
    assert grant.body["run"] == run


def test_what_another_run_executes_or_left_in_doubt_says_whose_it_is(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"page-{run}", key={"scope": "tenant"})
    grant = service.begin(run, tool)
    other = service.begin(f"{run}-other", tool)
    assert (other.code, other.body["run"]) == ("in-progress", run)
    assert f"It is of run {run!r}." in other.body["detail"]
    assert "It is of run" not in service.begin(run, tool).body["detail"]
    service.report("fail", grant, kind="unknown", error=ERROR)
    doubtful = service.begin(f"{run}-other", tool)
    assert (doubtful.code, doubtful.body["run"]) == ("outcome-in-doubt", run)
    assert f"It is of run {run!r}." in doubtful.body["detail"]


def test_a_run_keeps_to_the_scope_that_it_began_with(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"page-{run}")
    first = done(service, run, tool)
    declare(service, tool, key={"scope": "tenant", "window_seconds": 60})
    assert service.begin(run, tool).body["key"] == first.body["key"]
    tenants = service.begin(f"{run}-later", tool)
    assert (tenants.status, tenants.body["generation"]) == (201, 1)
    assert tenants.body["key"] != first.body["key"]


def test_of_many_runs_that_act_on_one_event_one_executes(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"page-{run}", key={"scope": "tenant", "window_seconds": 60})
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: service.begin(f"{run}-{number}", tool), range(16)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 15
    (holder,) = {answer.body["run"] for answer in answers}
    assert holder.startswith(run)


def test_an_intended_repeat_may_be_allowed_by_the_tool(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"beep-{run}", repeat="allow")
    keys = [done(service, run, tool).body for _ in range(3)]
    assert [body["generation"] for body in keys] == [1, 2, 3]
    assert [body["occurrence"] for body in keys] == [1, 1, 1]
    assert len({body["key"] for body in keys}) == 3
    again = done(service, run, tool, occurrence=2)
    assert (again.body["occurrence"], again.body["generation"]) == (2, 2)
    assert again.body["key"] not in {body["key"] for body in keys}
    assert done(service, run, tool, occurrence=2).body["generation"] == 3
    assert service.ask("GET", f"/v1/runs/{run}").body["effects"] == 5


def test_an_attempt_whose_answer_was_lost_never_makes_a_new_generation(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"beep-{run}", repeat="allow")
    second: str = ""
    for number in range(4):
        grant = done(service, run, tool)
        if number == 1:
            second = grant.body["attempt"]
    late = service.begin(run, tool, attempt=second)
    assert (late.status, late.body["generation"]) == (200, 2)
    body = {"tool": tool, "arguments": {"to": "bob"}, "run": run, "attempt": second}
    assert service.ask("POST", "/v1/effects/release", body).body["generation"] == 2
    assert service.begin(run, tool).body["generation"] == 5


def test_a_released_attempt_gets_nothing_when_it_comes_after_all(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"beep-{run}", repeat="allow")
    done(service, run, tool)
    attempt = str(uuid4())
    body = {"tool": tool, "arguments": {"to": "bob"}, "run": run, "attempt": attempt}
    released = service.ask("POST", "/v1/effects/release", body)
    assert (released.status, released.body["generation"], released.body["state"]) == (200, 2, "pending")
    assert service.begin(run, tool, attempt=attempt).code == "lease-lost"
    assert done(service, run, tool).body["generation"] == 2


def test_a_wait_for_a_later_generation_is_answered_by_that_one(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"lamp-{run}", class_="idempotent")
    first = done(service, run, tool)
    second = service.begin(run, tool, delivered=[first.body["key"]])
    assert second.body["generation"] == 2
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(service.begin, run, tool, wait_seconds=20)
        service.report("commit", second, result="second")
        answer = waiting.result(timeout=20)
    assert (answer.body["generation"], answer.body["outcome"]) == (2, {"result": "second"})


def test_on_off_on_are_three_intents_once_each_outcome_is_known(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"lamp-{run}", class_="idempotent")
    on = done(service, run, tool, {"on": True})
    off = done(service, run, tool, {"on": False}, delivered=[on.body["key"]])
    again = service.begin(run, tool, {"on": True})
    assert (again.status, again.body["generation"], again.body["step"]) == (201, 2, 3)
    assert off.body["generation"] == 1


def test_a_worker_that_crashed_before_it_told_anybody_is_answered_from_the_record(
    service: ServiceProcess, run: str
) -> None:
    tool = declare(service, f"lamp-{run}", class_="idempotent")
    done(service, run, tool)
    assert service.begin(run, tool).body["decision"] == "replay"


def test_what_is_not_known_to_be_the_runs_is_not_delivered(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"lamp-{run}", class_="idempotent")
    mine = done(service, run, tool)
    foreign = done(service, f"{run}-other", tool)
    known = [foreign.body["key"], "0" * 64]
    assert service.begin(run, tool, delivered=known).body["decision"] == "replay"
    assert service.begin(f"{run}-other", tool).body["decision"] == "replay"
    assert service.begin(run, tool, delivered=[*known, mine.body["key"]]).body["generation"] == 2


def test_a_begin_that_is_asked_again_delivers_no_more_than_once(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"lamp-{run}", class_="idempotent")
    mine = done(service, run, tool)
    attempt = str(uuid4())
    asked = [service.begin(run, tool, delivered=[mine.body["key"]], attempt=attempt) for _ in range(3)]
    assert [(answer.status, answer.body["generation"], answer.body["fence"]) for answer in asked] == [(201, 2, 1)] * 3
    assert service.ask("GET", f"/v1/runs/{run}").body["effects"] == 2


def test_what_is_no_key_is_refused_with_its_place(service: ServiceProcess, run: str) -> None:
    for text in ("zz", "A" * 64, "0" * 62):
        refused = service.begin(run, delivered=["0" * 64, text])
        assert (refused.status, refused.body["errors"][0]["path"]) == (400, "/delivered/1")


def test_a_rephrased_retry_of_a_doubtful_call_is_refused_and_names_it(service: ServiceProcess, run: str) -> None:
    doubt = service.begin(run, "send", {"text": "The meeting is at 2."})
    service.report("fail", doubt, kind="unknown", error=ERROR)
    refused = service.begin(run, "send", {"text": "We meet at two."})
    assert (refused.status, refused.code) == (409, "sibling-in-doubt")
    assert (refused.body["key"], refused.body["state"]) == (doubt.body["key"], "in_doubt")
    assert doubt.body["key"] in refused.body["detail"]
    assert service.ask("GET", f"/v1/runs/{run}").body["effects"] == 1
    assert service.begin(run, "send", {"text": "We meet at two."}, distinct=True).status == 201


def test_what_cannot_be_the_same_intent_in_other_words_is_begun(service: ServiceProcess, run: str) -> None:
    doubt = service.begin(run, "send", {"text": "The meeting is at 2."})
    service.report("fail", doubt, kind="unknown", error=ERROR)
    declared = declare(service, f"write-{run}", arguments={"content": ["/text"]})
    assert service.begin(run, declared, {"to": "bob", "text": "a"}).status == 201
    assert service.begin(run, "send", {"text": "a"}, step="s").status == 201
    assert service.begin(run, "send", {"text": "a"}, business_key=f"mail-{run}").status == 201
    assert service.begin(f"{run}-other", "send", {"text": "a"}).status == 201
    body = {"as": "closed", "fence": 1, "reason": "nobody will ever know"}
    assert service.ask("POST", f"/v1/effects/{doubt.body['key']}/resolve", body).status == 200
    assert service.begin(run, "send", {"text": "b"}).status == 201


def test_a_call_that_was_given_up_before_it_began_is_not_let_past_a_doubt(service: ServiceProcess, run: str) -> None:
    body = {"tool": "send", "arguments": {"text": "We meet at two."}, "run": run, "attempt": str(uuid4())}
    assert service.ask("POST", "/v1/effects/release", body).body["state"] == "pending"
    doubt = service.begin(run, "send", {"text": "The meeting is at 2."})
    service.report("fail", doubt, kind="unknown", error=ERROR)
    refused = service.begin(run, "send", {"text": "We meet at two."})
    assert (refused.code, refused.body["key"]) == ("sibling-in-doubt", doubt.body["key"])


def test_a_run_that_goes_in_circles_is_stopped_and_flagged_once(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"find-{run}", loop_limit=3)
    first = done(service, run, tool)
    answers = [service.begin(run, tool) for _ in range(5)]
    assert [answer.status for answer in answers] == [200, 200, 409, 409, 409]
    assert (answers[-1].code, answers[-1].body["key"]) == ("loop-limit", first.body["key"])
    assert service.begin(run, tool, attempt=first.body["attempt"]).status == 200
    assert service.begin(run, tool, {"to": "eve"}).status == 201
    assert service.begin(f"{run}-other", tool).status == 201
    flags = service.ask("GET", "/v1/flags?kind=loop&limit=500").body["items"]
    (flag,) = [flag for flag in flags if flag["run"] == run]
    assert (flag["tool"], flag["key"], flag["state"]) == (tool, first.body["key"], "open")
    shown = service.ask("GET", f"/v1/effects/{first.body['key']}").body
    assert (shown["state"], shown["outcome"], len(shown["attempts"])) == ("succeeded", {"result": "done"}, 1)


def test_a_repeat_that_needs_a_person_waits_for_one_and_a_denial_does_not_hide_the_success(
    service: ServiceProcess, run: str
) -> None:
    roles = {"identity": ["/to"], "content": ["/note"]}
    tool = declare(service, f"refund-{run}", repeat="ask", arguments=roles)
    first = done(service, run, tool, {"to": "bob", "note": "a"})
    asked = service.begin(run, tool, {"to": "bob", "note": "a"})
    assert (asked.status, asked.body["decision"], asked.body["generation"]) == (202, "await_approval", 2)
    decided = {"verdict": "deny", "by": "ann", "reason": "once is enough"}
    answer = service.ask("POST", f"/v1/approvals/{asked.body['approval']}/decide", decided)
    assert answer.status == 200, answer.body
    denied = service.begin(run, tool, {"to": "bob", "note": "a"})
    assert (denied.status, denied.body["generation"]) == (200, 2)
    assert "error" in denied.body["outcome"]
    in_other_words = service.begin(run, tool, {"to": "bob", "note": "b"})
    assert (in_other_words.status, in_other_words.body["generation"]) == (202, 3)
    assert service.ask("GET", f"/v1/effects/{first.body['key']}").body["state"] == "succeeded"


def test_a_repeat_that_a_person_approved_runs_once(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"refund-{run}", repeat="ask")
    done(service, run, tool)
    asked = service.begin(run, tool)
    decided = {"verdict": "approve", "by": "ann"}
    path = f"/v1/approvals/{asked.body['approval']}/decide"
    assert service.ask("POST", path, decided).status == 200
    assert done(service, run, tool).body["generation"] == 2
    assert service.begin(run, tool).body["generation"] == 3
    assert service.begin(run, tool).status == 202


def test_trying_again_what_was_not_applied_and_waiting_for_it_are_no_circle(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"pay-{run}", loop_limit=2, attempts=9)
    for number in range(4):
        grant = service.begin(run, tool)
        assert grant.status == 201, (number, grant.body)
        assert [service.begin(run, tool).code for _ in range(2)] == ["in-progress"] * 2
        service.report("fail", grant, kind="not_applied", error=ERROR, retry_after=0)
    done(service, run, tool)
    answers = [service.begin(run, tool) for _ in range(2)]
    assert [(answer.status, answer.body.get("decision")) for answer in answers] == [(200, "replay"), (409, None)]
    assert answers[-1].code == "loop-limit"


def test_asking_how_an_approval_stands_is_no_circle(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"pay-{run}", loop_limit=1, approval={})
    assert [service.begin(run, tool).status for _ in range(4)] == [202] * 4


def test_beyond_the_limit_a_call_still_waits_for_what_is_executed(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"find-{run}", loop_limit=1, repeat="allow")
    done(service, run, tool)
    assert service.begin(run, tool).code == "loop-limit"
    other = declare(service, f"page-{run}", loop_limit=1, key={"scope": "tenant"})
    grant = service.begin(run, other)
    assert service.begin(run, other).code == "in-progress"
    service.report("commit", grant, result="done")
    assert service.begin(run, other).code == "loop-limit"
