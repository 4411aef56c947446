"""Begin over HTTP: one execution, and an honest answer to everybody else."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from tests.service import ServiceProcess


def test_the_first_call_executes_and_a_committed_one_is_replayed_marked(service: ServiceProcess, run: str) -> None:
    first = service.begin(run)
    assert first.status == 201
    assert first.body["decision"] == "execute"
    assert (first.body["state"], first.body["step"], first.body["generation"]) == ("executing", 1, 1)
    assert (first.body["fence"], first.body["arguments"], first.body["lease_seconds"]) == (1, None, 30.0)
    assert len(first.body["key"]) == len(first.body["downstream_key"]) == 64

    committed = service.report("commit", first, result={"charged": 5.0})
    assert (committed.status, committed.body["state"]) == (200, "succeeded")

    again = service.begin(run)
    assert again.status == 200
    assert again.headers["idempotent-replayed"] == "true"
    assert again.body["decision"] == "replay"
    assert again.body["outcome"] == {"result": {"charged": 5.0}}
    assert again.body["repeat_of"] == {"run": run, "step": 1}
    assert again.body["drift"] is None


def test_an_intended_repeat_says_so_and_runs(service: ServiceProcess, run: str) -> None:
    first = service.begin(run)
    service.report("commit", first, result=1)
    second = service.begin(run, occurrence=2)
    assert (second.status, second.body["generation"], second.body["step"]) == (201, 2, 2)
    assert second.body["key"] != first.body["key"]
    service.report("commit", second, result=2)
    assert service.begin(run, occurrence=2).body["outcome"] == {"result": 2}
    assert service.begin(run).body["outcome"] == {"result": 1}


def test_numbers_beyond_the_doubles_stay_apart(service: ServiceProcess, run: str) -> None:
    one = service.begin(run, arguments={"n": 2**53})
    other = service.begin(run, arguments={"n": 2**53 + 1})
    assert (one.status, other.status) == (201, 201)
    assert one.body["key"] != other.body["key"]


def test_one_and_one_point_zero_are_one_call(service: ServiceProcess, run: str) -> None:
    assert service.begin(run, arguments={"n": 1}).status == 201
    assert service.begin(run, arguments={"n": 1.0}).code == "in-progress"


def test_another_attempt_hears_that_the_effect_is_executing(service: ServiceProcess, run: str) -> None:
    service.begin(run)
    other = service.begin(run)
    assert (other.status, other.code, other.headers["retry-after"]) == (409, "in-progress", "1")
    assert (other.body["state"], other.body["fence"]) == ("executing", 1)


def test_the_same_attempt_gets_its_lease_again_renewed(service: ServiceProcess, run: str) -> None:
    attempt = str(uuid4())
    first = service.begin(run, attempt=attempt)
    again = service.begin(run, attempt=attempt)
    assert (again.status, again.body["fence"], again.body["key"]) == (201, 1, first.body["key"])
    assert again.body["lease_expires_at"] > first.body["lease_expires_at"]


def test_a_step_with_other_arguments_is_refused_with_the_paths(service: ServiceProcess, run: str) -> None:
    service.begin(run, arguments={"to": "bob", "amount": 5}, step="msg-7:0")
    other = service.begin(run, arguments={"to": "bob", "amount": 6, "note": "x"}, step="msg-7:0")
    assert (other.status, other.code) == (422, "arguments-changed")
    assert other.body["paths"] == ["/arguments/note", "/arguments/amount"]
    assert "they differ at /arguments/note, /arguments/amount" in other.body["detail"]


def test_a_business_key_is_one_across_runs_and_belongs_to_one_tool(service: ServiceProcess, run: str) -> None:
    name = f"invoice/{run}"
    first = service.begin(run, business_key=name)
    service.report("commit", first, result="paid")
    elsewhere = service.begin(f"{run}-other", business_key=name)
    assert (elsewhere.status, elsewhere.body["repeat_of"]) == (200, {"run": run, "step": 1})
    without_run = service.begin(None, business_key=name)
    assert without_run.body["outcome"] == {"result": "paid"}
    other_tool = service.begin(run, tool="refund", business_key=name)
    assert (other_tool.status, other_tool.code) == (422, "key-used-by-another-tool")
    other_arguments = service.begin(run, arguments={"to": "eve"}, business_key=name)
    assert (other_arguments.code, other_arguments.body["paths"]) == ("arguments-changed", ["/arguments/to"])


def test_the_business_key_may_come_in_the_header_quoted_or_bare(service: ServiceProcess, run: str) -> None:
    body = {"tool": "pay", "arguments": {}, "attempt": str(uuid4())}
    bare = service.ask("POST", "/v1/effects", body, Idempotency_Key=f"k-{run}")
    quoted = service.ask("POST", "/v1/effects", body, Idempotency_Key=f'"k-{run}"')
    assert (bare.status, quoted.status) == (201, 201)
    assert bare.body["key"] == quoted.body["key"]
    differing = service.ask("POST", "/v1/effects", body | {"business_key": "other"}, Idempotency_Key="k")
    assert (differing.status, differing.body["errors"][0]["path"]) == (400, "/business_key")


def test_content_may_be_rephrased_and_is_reported_as_drift(service: ServiceProcess, run: str) -> None:
    tool = f"hold-{run}"
    roles = {"content": ["/title"], "ignored": ["/rationale"], "normalisers": {"/start": "utc", "/guest": "email"}}
    assert service.ask("PUT", f"/v1/tools/{tool}", {"arguments": roles}).status == 200
    first = service.begin(
        run,
        tool,
        {"start": "2026-10-12T14:00:00Z", "guest": "Alex@Example.com", "title": "Strategy Sync", "rationale": "a"},
    )
    service.report("commit", first, result="hold-1")
    rephrased = service.begin(
        run,
        tool,
        {"start": "2026-10-12T16:00:00+02:00", "guest": "alex@example.COM", "title": "Sync", "rationale": "b"},
    )
    assert rephrased.status == 200
    assert rephrased.body["drift"] == {"content": ["/title"]}
    only_ignored = service.begin(
        run,
        tool,
        {"start": "2026-10-12T14:00:00Z", "guest": "Alex@Example.com", "title": "Strategy Sync", "rationale": "c"},
    )
    assert (only_ignored.status, only_ignored.body["drift"]) == (200, None)


def test_a_tool_that_only_reads_takes_no_lease(service: ServiceProcess, run: str) -> None:
    tool = f"look-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"class": "read"})
    assert service.begin(run, tool).code == "not-possible"


def test_a_finished_run_serves_its_record_and_takes_nothing_new(service: ServiceProcess, run: str) -> None:
    first = service.begin(run)
    service.report("commit", first, result="done")
    assert service.ask("POST", f"/v1/runs/{run}/finish").body["state"] == "finished"
    assert service.begin(run).body["outcome"] == {"result": "done"}
    new = service.begin(run, arguments={"to": "eve"})
    assert (new.status, new.code) == (409, "run-finished")


def test_a_waiting_begin_is_answered_when_the_holder_commits(service: ServiceProcess, run: str) -> None:
    holder = service.begin(run)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(service.begin, run, wait_seconds=20) for _ in range(8)]
        service.report("commit", holder, result="ok")
        answers = [future.result(timeout=20) for future in waiting]
    assert [answer.body.get("outcome") for answer in answers] == [{"result": "ok"}] * 8


def test_a_waiting_begin_is_answered_when_the_holder_is_in_doubt(service: ServiceProcess, run: str) -> None:
    service.begin(run, lease_seconds=1)
    answer = service.begin(run, wait_seconds=20)
    assert (answer.status, answer.code) == (409, "outcome-in-doubt")
    assert "retry-after" not in answer.headers
    assert answer.body["resolve"] == f"/v1/effects/{answer.body['key']}/resolve"


def test_a_wait_that_ends_says_that_the_effect_is_still_executing(service: ServiceProcess, run: str) -> None:
    service.begin(run)
    assert service.begin(run, wait_seconds=0.2).code == "in-progress"
