"""Where a fork stops, a person answers: with an outcome, with no, or with yes for this one call."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.fork_driver import Driver
from tests.integration.forks import Recorded, paid, said, until
from tests.service import ServiceProcess


@pytest.fixture
def made(service: ServiceProcess, run: str) -> Recorded:
    """A run that paid Ann and Bob before the cut, and Cid after it."""
    return paid(service, run, "ann", "bob", "cid")


@pytest.fixture
def driver(made: Recorded) -> Driver:
    """A fork in which nothing may run."""
    return Driver(made)


def test_a_stop_is_listed_with_what_stopped_and_why(made: Recorded, driver: Driver) -> None:
    made.declare(redacted=["/card"])
    stopped = driver.begin(driver.fork, {"to": "dan", "card": "4111"})
    assert (stopped.status, stopped.code) == (409, "run-suspended")
    again = driver.begin(driver.fork, {"to": "dan", "card": "4111"})
    assert again.body["pause"] == stopped.body["pause"]
    (pause,) = driver.pauses()
    assert {name: pause[name] for name in ("run", "key", "tool", "state", "rule", "answer", "spent")} == {
        "run": driver.fork, "key": stopped.body["pause"], "tool": made.tool, "state": "open",
        "rule": "nothing may answer", "answer": None, "spent": False,
    }  # fmt: skip
    assert pause["arguments"] == {"to": "dan", "card": "[redacted]"}
    assert driver.ask("GET", f"/v1/runs/{driver.fork}/pauses").body["items"] == [pause]
    assert driver.pauses(made.run) == []


def test_pauses_are_listed_oldest_first_a_page_at_a_time(driver: Driver) -> None:
    keys = [driver.begin(driver.fork, {"to": f"p{number}"}).body["pause"] for number in range(5)]
    driver.service.ask("POST", f"/v1/runs/{driver.fork}/pauses/{keys[1]}", {"answer": "deny", "reason": "no"})
    path = f"/v1/runs/{driver.fork}/pauses"
    page = driver.service.ask("GET", f"{path}?limit=3").body
    rest = driver.service.ask("GET", f"{path}?limit=3&after={page['next']}").body
    assert [item["key"] for item in page["items"] + rest["items"]] == keys
    assert rest["next"] is None
    of_state = {state: driver.service.ask("GET", f"{path}?state={state}").body for state in ("open", "answered")}
    assert [item["key"] for item in of_state["open"]["items"]] == [keys[0], *keys[2:]]
    assert [item["key"] for item in of_state["answered"]["items"]] == [keys[1]]
    assert driver.service.ask("GET", f"{path}?after=nonsense").status == 400
    assert driver.service.ask("GET", f"{path}?state=closed").status == 400


def test_what_a_person_injects_is_answered_and_marked(driver: Driver) -> None:
    stopped = driver.begin(driver.fork, {"to": "dan"})
    injected = driver.answer(stopped, answer="inject", outcome={"result": {"id": 7}}, by="ann")
    assert (injected.status, injected.body["state"], injected.body["by"]) == (200, "answered", "ann")
    reply = driver.begin(driver.fork, {"to": "dan"})
    assert (said(reply), reply.body["provenance"]) == ((200, "injected"), "injected")
    assert reply.body["outcome"] == {"result": {"id": 7}}
    assert driver.made.effects_of(driver.fork) == []
    assert driver.pauses()[0]["spent"] is True
    assert said(driver.begin(driver.fork, {"to": "eve"})) == (409, "run-suspended")


def test_an_error_is_injected_as_the_tool_would_have_refused(driver: Driver) -> None:
    error = {"type": "CardDeclined", "message": "no"}
    driver.answer(driver.begin(driver.fork, {"to": "dan"}), answer="inject", outcome={"error": error})
    assert driver.begin(driver.fork, {"to": "dan"}).body["outcome"]["error"]["type"] == "CardDeclined"


def test_what_a_person_denies_is_refused_with_the_reason(driver: Driver) -> None:
    driver.answer(driver.begin(driver.fork, {"to": "dan"}), answer="deny", reason="Dan is on holiday.")
    reply = driver.begin(driver.fork, {"to": "dan"})
    assert said(reply) == (403, "forbidden")
    assert "Dan is on holiday. " in reply.body["detail"]
    assert "(rule: denied by a person)" in reply.body["detail"]


def test_what_a_person_allows_really_runs_once_without_another_approval(driver: Driver) -> None:
    driver.answer(driver.begin(driver.fork, {"to": "dan"}), answer="allow", reason="ours to pay")
    assert said(driver.begin(driver.fork, {"to": "eve"})) == (409, "run-suspended")
    grant = driver.begin(driver.fork, {"to": "dan"})
    assert grant.status == 201
    assert said(driver.begin(driver.fork, {"to": "dan"})) == (409, "in-progress")
    assert driver.report("commit", grant, result="paid").status == 200
    replay = driver.begin(driver.fork, {"to": "dan"})
    assert (replay.status, replay.body["decision"]) == (200, "replay")
    assert said(driver.begin(driver.fork, {"to": "dan"}, occurrence=2)) == (409, "run-suspended")
    assert len(driver.made.effects_of(driver.fork)) == 1


def test_the_tries_of_an_allowed_call_are_one_chain_and_another_call_is_none_of_it(
    service: ServiceProcess, run: str
) -> None:
    made = Recorded(service, run)
    made.declare(repeat="allow", backoff_seconds=0)
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0)
    driver.answer(driver.begin(driver.fork, {"to": "dan"}), answer="allow", reason="yes")
    first = driver.begin(driver.fork, {"to": "dan"})
    assert first.status == 201
    driver.report("fail", first, kind="not_applied", error={"type": "E", "message": "m"})
    until(lambda: driver.begin(driver.fork, {"to": "dan"}).status, 201)
    second = service.ask("GET", f"/v1/effects/{first.body['key']}").body
    assert second["fence"] == 2
    attempts = [item["report"] for item in second["attempts"]]
    assert attempts == ["not_applied", "none"]


def test_a_tool_that_may_repeat_is_allowed_and_injected_for_one_call_each(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(repeat="allow")
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0)
    driver.answer(driver.begin(driver.fork, {"to": "dan"}), answer="inject", outcome={"result": 1})
    attempt = str(uuid4())
    for _ in range(2):
        assert driver.begin(driver.fork, {"to": "dan"}, attempt=attempt).body["outcome"] == {"result": 1}
    second = driver.begin(driver.fork, {"to": "dan"})
    assert said(second) == (409, "run-suspended")
    driver.answer(second, answer="allow", reason="yes")
    grant = driver.begin(driver.fork, {"to": "dan"})
    assert grant.status == 201
    driver.report("commit", grant, result=2)
    third = driver.begin(driver.fork, {"to": "dan"})
    assert said(third) == (409, "run-suspended")
    assert third.body["pause"] not in (second.body["pause"], None)
    assert len(made.effects_of(driver.fork)) == 1


def test_a_call_that_was_allowed_in_other_words_asks_again(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(arguments={"content": ["/note"]})
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0)
    driver.answer(driver.begin(driver.fork, {"to": "dan", "note": "a"}), answer="allow", reason="yes")
    assert said(driver.begin(driver.fork, {"to": "dan", "note": "b"})) == (409, "run-suspended")
    (asked,) = driver.pauses()
    assert (asked["state"], asked["arguments"]["note"]) == ("open", "b")
    driver.answer(driver.begin(driver.fork, {"to": "dan", "note": "b"}), answer="allow", reason="yes")
    grant = driver.begin(driver.fork, {"to": "dan", "note": "b"})
    driver.report("fail", grant, kind="not_applied", error={"type": "E", "message": "m"})
    assert said(driver.begin(driver.fork, {"to": "dan", "note": "c"})) == (409, "run-suspended")
    until(lambda: driver.begin(driver.fork, {"to": "dan", "note": "b"}).status, 201)


def test_an_injected_outcome_and_a_no_hold_in_other_words_too(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(arguments={"content": ["/note"]})
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0)
    driver.answer(driver.begin(driver.fork, {"to": "dan", "note": "a"}), answer="inject", outcome={"result": 1})
    driver.answer(driver.begin(driver.fork, {"to": "eve", "note": "a"}), answer="deny", reason="no")
    assert said(driver.begin(driver.fork, {"to": "dan", "note": "b"})) == (200, "injected")
    assert said(driver.begin(driver.fork, {"to": "eve", "note": "b"})) == (403, "forbidden")


def test_the_first_answer_counts_and_the_same_again_is_the_same(driver: Driver) -> None:
    stopped = driver.begin(driver.fork, {"to": "dan"})
    first = driver.answer(stopped, answer="inject", outcome={"result": {"a": 1, "b": 2}})
    again = driver.answer(stopped, answer="inject", outcome={"result": {"b": 2, "a": 1}})
    assert (first.status, again.body) == (200, first.body)
    for other in (
        {"answer": "inject", "outcome": {"result": 8}}, {"answer": "deny", "reason": "no"},
        {"answer": "allow", "reason": "yes"},
    ):  # fmt: skip
        refused = driver.answer(stopped, **other)
        assert (refused.status, refused.code) == (409, "decided-already")
    assert said(driver.begin(driver.fork, {"to": "dan"})) == (200, "injected")


def test_live_calls_that_are_used_up_are_allowed_once_more(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0, live=[{"tool": made.tool, "calls": 1}])
    assert driver.begin(driver.fork, {"to": 1}).status == 201
    stopped = driver.begin(driver.fork, {"to": 2})
    assert "(rule: live calls used up)" in stopped.body["detail"]
    driver.answer(stopped, answer="allow", reason="yes")
    assert driver.begin(driver.fork, {"to": 2}).status == 201
    assert said(driver.begin(driver.fork, {"to": 3})) == (409, "run-suspended")


def test_a_state_that_was_let_come_back_is_asked_about_and_each_answer_is_obeyed(
    service: ServiceProcess, run: str
) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0, live=[{"tool": made.tool, "calls": 1}])
    on = driver.begin(driver.fork, {"light": "on"})
    driver.report("commit", on, result=1)
    known: dict[str, Any] = {"delivered": [on.body["key"]]}
    stopped = driver.begin(driver.fork, {"light": "on"}, **known)
    assert (said(stopped), stopped.body["pause"] == on.body["key"]) == ((409, "run-suspended"), False)
    driver.answer(stopped, answer="inject", outcome={"result": 2})
    assert driver.begin(driver.fork, {"light": "on"}, **known).body["outcome"] == {"result": 2}


def test_a_side_effect_whose_tool_asks_for_approval_asks_all_the_same(made: Recorded, driver: Driver) -> None:
    made.declare(approval={})
    stopped = driver.begin(driver.fork, {"to": "dan"})
    assert said(stopped) == (409, "run-suspended")
    driver.answer(stopped, answer="allow", reason="yes")
    asked = driver.begin(driver.fork, {"to": "dan"})
    assert said(asked) == (202, "await_approval")
    made.decide(asked)
    assert driver.begin(driver.fork, {"to": "dan"}).status == 201


def test_what_waits_for_an_approval_is_no_pause(made: Recorded) -> None:
    driver = Driver(made, live=[{"tool": made.tool}])
    assert said(driver.begin(driver.fork, {"to": "dan"})) == (202, "await_approval")
    assert driver.pauses() == []


def test_the_registrys_denial_is_stronger_than_a_persons_yes(made: Recorded, driver: Driver) -> None:
    driver.answer(driver.begin(driver.fork, {"to": "dan"}), answer="allow", reason="yes")
    driver.answer(driver.begin(driver.fork, {"to": "eve"}), answer="inject", outcome={"result": 1})
    made.declare(fork="deny")
    until(lambda: said(driver.begin(driver.fork, {"to": "dan"})), (403, "forbidden"))
    assert said(driver.begin(driver.fork, {"to": "eve"})) == (403, "forbidden")
    assert "(rule: registry: deny)" in driver.begin(driver.fork, {"to": "dan"}).body["detail"]


def test_a_call_before_the_cut_that_differs_is_answered_by_a_person(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare()
    made.did({"to": "ann"}, "paid", step="m1")
    driver = Driver(made, at=1)
    stopped = driver.begin(driver.fork, {"to": "eve"}, step="m1")
    assert "(rule: arguments differ)" in stopped.body["detail"]
    driver.answer(stopped, answer="inject", outcome={"result": "as if"})
    assert driver.begin(driver.fork, {"to": "eve"}, step="m1").body["outcome"] == {"result": "as if"}
    assert said(driver.begin(driver.fork, {"to": "ann"}, step="m1")) == (200, "before the cut")


def test_a_decision_says_what_a_person_answered(made: Recorded, driver: Driver) -> None:
    answers: dict[str, dict[str, Any]] = {
        "dan": {"answer": "inject", "outcome": {"result": 1}}, "eve": {"answer": "deny", "reason": "no"},
        "fay": {"answer": "allow", "reason": "yes"},
    }  # fmt: skip
    for to, answer in answers.items():
        driver.answer(driver.begin(driver.fork, {"to": to}), **answer)
    calls = [{"tool": made.tool, "arguments": {"to": to}} for to in answers]
    decisions = driver.ask("POST", "/v1/policy/decisions", {"run": driver.fork, "calls": calls}).body["decisions"]
    assert [(one["decision"], one["rule"]) for one in decisions] == [
        ("stub", "injected"), ("deny", "denied by a person"), ("live", "allowed once"),
    ]  # fmt: skip
    assert (decisions[0]["provenance"], decisions[0]["outcome"]) == ("injected", {"result": 1})


def test_a_read_is_answered_or_allowed_too(made: Recorded) -> None:
    lookup = f"lookup-{made.run}"
    made.service.ask("PUT", f"/v1/tools/{lookup}", {"class": "read"})
    driver = Driver(made, reads="recorded")
    driver.answer(driver.begin(driver.fork, {"q": 1}, lookup), answer="inject", outcome={"result": []})
    assert driver.begin(driver.fork, {"q": 1}, lookup).body["outcome"] == {"result": []}
    driver.answer(driver.begin(driver.fork, {"q": 2}, lookup), answer="allow", reason="harmless")
    allowed = driver.begin(driver.fork, {"q": 2}, lookup)
    assert (said(allowed), "(rule: allowed once)" in allowed.body["detail"]) == ((409, "not-possible"), True)


def test_of_eight_begins_at_once_of_an_allowed_call_one_runs(driver: Driver) -> None:
    driver.answer(driver.begin(driver.fork, {"to": "dan"}), answer="allow", reason="yes")
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: driver.begin(driver.fork, {"to": "dan"}), range(8)))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 7
    assert {reply.code for reply in replies if reply.status == 409} == {"in-progress"}
