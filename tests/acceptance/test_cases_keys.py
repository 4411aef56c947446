"""Situations from the field about keys: what makes two calls the same, and what a second one hears."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.service import Reply, ServiceProcess

ERROR = {"type": "Unavailable", "message": "503"}


@pytest.fixture
def service(shared_service: ServiceProcess) -> ServiceProcess:
    """One service for all of them."""
    return shared_service


@pytest.fixture
def run() -> str:
    """A run that no other test uses."""
    return f"run-{uuid4().hex[:12]}"


def declare(service: ServiceProcess, tool: str, **declared: Any) -> str:
    assert service.ask("PUT", f"/v1/tools/{tool}", declared).status == 200
    return tool


def done(service: ServiceProcess, run: str, tool: str, arguments: object, **fields: Any) -> Reply:
    grant = service.begin(run, tool, arguments, **fields)
    assert grant.status == 201, grant.body
    assert service.report("commit", grant, result={"id": grant.body["key"][:6]}).status == 200
    return grant


def test_a_task_retry_that_words_its_arguments_anew_is_answered_by_its_step(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"mail-{run}", arguments={"identity": ["/to"], "content": ["/body"]})
    first = done(service, run, tool, {"to": "bob", "body": "Dear Bob"}, step="task-3")
    reworded = service.begin(run, tool, {"to": "bob", "body": "Hello Bob"}, step="task-3")
    assert (reworded.status, reworded.body["key"]) == (200, first.body["key"])
    assert reworded.body["drift"] == {"content": ["/body"]}
    drifted = service.begin(run, tool, {"to": "eve", "body": "Dear Bob"}, step="task-3")
    assert (drifted.status, drifted.body["paths"]) == (422, ["/arguments/to"])


def test_a_payment_whose_reason_a_model_rewords_is_made_once(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"pay-{run}", arguments={"content": ["/reason"]})
    reasons = ("as agreed", "per agreement", "agreed upon earlier")
    answers = [service.begin(run, tool, {"to": "0xab", "wei": 7, "reason": reasons[0]})]
    service.report("commit", answers[0], result="0x1")
    answers += [service.begin(run, tool, {"to": "0xab", "wei": 7, "reason": reason}) for reason in reasons]
    assert [answer.body["decision"] for answer in answers] == ["execute", "replay", "replay", "replay"]
    assert len({answer.body["key"] for answer in answers}) == 1


def test_a_key_whose_owner_failed_or_never_came_back_is_not_taken_for_ever(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"pay-{run}", backoff_seconds=0, settle_seconds=0)
    failed = service.begin(run, tool, {"n": 1}, business_key=f"{run}-1")
    service.report("fail", failed, kind="not_applied", error=ERROR)
    assert service.begin(run, tool, {"n": 1}, business_key=f"{run}-1").body["fence"] == 2
    service.begin(run, tool, {"n": 2}, business_key=f"{run}-2", lease_seconds=1)
    doubtful = service.begin(run, tool, {"n": 2}, business_key=f"{run}-2", wait_seconds=20)
    assert doubtful.code == "outcome-in-doubt"
    settled = {"as": "not_applied", "fence": 1, "reason": "the provider has nothing"}
    assert service.ask("POST", doubtful.body["resolve"], settled).status == 200
    assert service.begin(run, tool, {"n": 2}, business_key=f"{run}-2").status == 201


def test_a_transient_error_is_not_the_answer_for_ever(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"transfer-{run}", backoff_seconds=0)
    down = service.begin(run, tool, {"n": 1})
    service.report("fail", down, kind="not_applied", error=ERROR)
    up = service.begin(run, tool, {"n": 1})
    assert (up.status, up.body["decision"]) == (201, "execute")
    assert up.body["downstream_key"] != down.body["downstream_key"]
    service.report("commit", up, result="sent")
    assert service.begin(run, tool, {"n": 1}).body["outcome"] == {"result": "sent"}


def test_an_honest_replay_succeeds_and_other_arguments_are_refused_wherever_the_record_comes_from(
    service: ServiceProcess, shared_url: str, run: str
) -> None:
    name, asked, other = f"order-{run}", {"to": "bob", "n": [1, 2]}, {"to": "bob", "n": [2, 1]}
    grant = service.begin(run, "order", asked, business_key=name)

    def refused(by: ServiceProcess) -> bool:
        answer = by.begin(run, "order", other, business_key=name)
        is_named = name in answer.body["detail"]
        return (answer.code, answer.body["paths"], is_named) == (
            "arguments-changed", ["/arguments/n/0", "/arguments/n/1"], True,
        )  # fmt: skip

    assert refused(service)
    service.report("commit", grant, result="o-1")
    for _ in range(2):
        assert service.begin(run, "order", asked, business_key=name).body["outcome"] == {"result": "o-1"}
        assert refused(service)
    with ServiceProcess(shared_url) as elsewhere:
        assert refused(elsewhere)
        assert elsewhere.begin(run, "order", asked, business_key=name).body["outcome"] == {"result": "o-1"}


def test_order_of_members_and_ways_to_write_an_instant_or_an_id_do_not_break_the_key(
    service: ServiceProcess, run: str
) -> None:
    number = "0192f5b0-7c3a-7000-8000-00000000000f"
    spellings = [
        f'{{"at": {{"$dt": "2026-10-12T14:00:00Z"}}, "id": {{"$uuid": "{number}"}}, "n": 1}}',
        f'{{"n": 1.0, "id": {{"$uuid": "{number.upper()}"}}, "at": {{"$dt": "2026-10-12T16:00:00+02:00"}}}}',
        f'{{"id": {{"$uuid": "{number}"}}, "at": {{"$dt": "2026-10-12T14:00:00.000Z"}}, "n": 1e0}}',
    ]
    keys = set()
    for spelling in spellings:
        body = f'{{"tool": "book", "run": "{run}", "attempt": "{uuid4()}", "arguments": {spelling}}}'
        keys.add(service.ask("POST", "/v1/effects", body.encode()).body["key"])
    assert len(keys) == 1


def test_an_agents_retry_with_new_tool_call_ids_is_answered_from_the_record(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"mail-{run}", arguments={"ignored": ["/tool_call_id"]})
    first = done(service, run, tool, {"to": "bob", "tool_call_id": "call_Xa1"}, worker="attempt-1")
    again = service.begin(run, tool, {"to": "bob", "tool_call_id": "call_9Qz"}, worker="attempt-2")
    assert (again.body["decision"], again.body["key"]) == ("replay", first.body["key"])


def test_calls_that_share_one_constant_tool_call_id_do_not_collapse(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"mail-{run}", arguments={"ignored": ["/tool_call_id"]})
    for to in ("bob", "eve"):
        assert done(service, run, tool, {"to": to, "tool_call_id": "0"}).body["generation"] == 1
    as_step = done(service, run, tool, {"to": "ann", "tool_call_id": "0"}, step="0")
    other = service.begin(run, tool, {"to": "joe", "tool_call_id": "0"}, step="0")
    assert (other.status, other.body["key"]) == (422, as_step.body["key"])


@pytest.mark.parametrize(
    ("repeat", "decisions"),
    [
        ("replay", ["replay", "replay", "replay"]),
        ("ask", ["await_approval", "await_approval", "await_approval"]),
        ("allow", ["execute", "in-progress", "in-progress"]),
    ],
)
def test_identical_parallel_calls_of_one_message_are_shared_asked_for_or_allowed(
    service: ServiceProcess, run: str, repeat: str, decisions: list[str]
) -> None:
    tool = declare(service, f"mail-{run}", repeat=repeat)
    grant = service.begin(run, tool, {"to": "bob"})

    def sibling(_: int) -> str:
        waited = service.begin(run, tool, {"to": "bob"}, wait_seconds=20)
        answer = service.begin(run, tool, {"to": "bob"}) if waited.status == 409 else waited
        return str(answer.body["decision"] if answer.status < 400 else answer.code)

    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(sibling, number) for number in range(3)]
        service.report("commit", grant, result="sent")
        assert sorted(future.result(timeout=30) for future in waiting) == decisions


def test_a_replan_that_asks_each_turn_for_what_was_done_hears_so_each_turn(service: ServiceProcess, run: str) -> None:
    done(service, run, "refund", {"order": 7})
    turns = [service.begin(run, "refund", {"order": 7}) for _ in range(3)]
    assert {turn.body["decision"] for turn in turns} == {"replay"}
    assert {turn.body["said"].split(",")[0] for turn in turns} == {f"done at step 1 of run {run}"}
    assert service.ask("GET", f"/v1/runs/{run}").body["effects"] == 1
