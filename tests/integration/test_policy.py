"""Forks over HTTP: what the record, the registry and a simulator answer, and what stops the fork."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.integration.forks import CUT, Recorded, paid, said, until
from tests.service import ServiceProcess


@pytest.fixture
def made(service: ServiceProcess, run: str) -> Recorded:
    """A run that paid Ann and Bob before the cut, and Cid after it."""
    return paid(service, run, "ann", "bob", "cid")


def test_before_the_cut_all_is_from_the_record_and_no_effect_is_written(made: Recorded) -> None:
    fork = made.fork()
    for to in ("ann", "bob", "ann"):
        reply = made.call(fork, {"to": to})
        assert said(reply) == (200, "before the cut")
        assert (reply.body["decision"], reply.body["provenance"]) == ("stub", "recorded")
        assert reply.body["outcome"] == {"result": f"paid {to}"}
    assert made.effects_of(fork) == []
    assert made.service.ask("GET", f"/v1/runs/{fork}").body["effects"] == CUT


def test_after_the_cut_each_effect_of_the_record_is_given_once(made: Recorded) -> None:
    made.did({"to": "cid"}, "paid cid again", occurrence=2)
    fork = made.fork()
    first = made.call(fork, {"to": "cid"}, step="a")
    second = made.call(fork, {"to": "cid"}, step="b")
    third = made.call(fork, {"to": "cid"}, step="c")
    assert [said(first), said(second)] == [(200, "recorded"), (200, "recorded")]
    assert [reply.body["outcome"]["result"] for reply in (first, second)] == ["paid cid", "paid cid again"]
    assert said(third) == (409, "run-suspended")
    assert made.call(fork, {"to": "cid"}, step="a").body["origin"] == first.body["origin"]
    other = made.call(made.fork("other"), {"to": "cid"}, step="c")
    assert other.body["origin"] == first.body["origin"]


def test_the_effect_of_the_same_place_is_given_before_an_earlier_one(made: Recorded) -> None:
    made.did({"to": "cid"}, "paid cid again", occurrence=2)
    fork = made.fork()
    assert made.call(fork, {"to": "cid"}, occurrence=2).body["outcome"] == {"result": "paid cid again"}
    assert made.call(fork, {"to": "cid"}).body["outcome"] == {"result": "paid cid"}
    assert said(made.call(fork, {"to": "cid"}, occurrence=3)) == (409, "run-suspended")


def test_of_many_calls_at_once_each_gets_an_effect_of_its_own(made: Recorded) -> None:
    for occurrence in (2, 3, 4):
        made.did({"to": "cid"}, occurrence, occurrence=occurrence)
    fork = made.fork()
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda step: made.call(fork, {"to": "cid"}, step=f"s{step}"), range(8)))
    origins = [reply.body["origin"] for reply in replies if reply.status == 200]
    assert (len(origins), len(set(origins))) == (4, 4)
    assert [said(reply) for reply in replies if reply.status != 200] == [(409, "run-suspended")] * 4


def test_a_step_before_the_cut_with_other_arguments_stops_the_fork(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare()
    made.did({"to": "ann"}, "paid", step="m1")
    fork = made.fork(at=1, live=[{"tool": made.tool}])
    differs = made.call(fork, {"to": "eve"}, step="m1")
    assert said(differs) == (409, "run-suspended")
    assert "(rule: arguments differ)" in differs.body["detail"]
    assert said(made.call(fork, {"to": "ann"}, step="m1")) == (200, "before the cut")
    assert made.effects_of(fork) == []


def test_an_effect_in_doubt_before_the_cut_stops_the_fork_and_one_after_it_is_no_record(made: Recorded) -> None:
    doubtful = made.service.begin(made.run, made.tool, {"to": "dan"})
    made.service.report("fail", doubtful, kind="unknown", error={"type": "E", "message": "?"})
    reply = made.call(made.fork("before", at=4), {"to": "dan"})
    assert said(reply) == (409, "run-suspended")
    assert "(rule: outcome unknown)" in reply.body["detail"]
    assert "(rule: nothing may answer)" in made.call(made.fork("after"), {"to": "dan"}).body["detail"]


def test_a_recorded_refusal_is_given_as_it_was(made: Recorded) -> None:
    error = {"type": "CardDeclined", "message": "no", "data": {"code": 7}}
    for to in ("dan", "eve"):
        grant = made.service.begin(made.run, made.tool, {"to": to})
        made.service.report("fail", grant, kind="rejected", error=error)
    fork = made.fork(at=4)
    for to, rule in (("dan", "before the cut"), ("eve", "recorded")):
        reply = made.call(fork, {"to": to})
        assert (said(reply), reply.body["outcome"]) == ((200, rule), {"error": error})


def test_content_that_differs_from_the_record_is_said(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(arguments={"content": ["/title"]})
    made.did({"to": "ann", "title": "Hello"}, 1)
    fork = made.fork(at=0)
    reply = made.call(fork, {"to": "ann", "title": "Dear Ann"})
    assert (said(reply), reply.body["drift"]) == ((200, "recorded"), {"content": ["/title"]})


def test_what_nothing_answers_stops_the_fork_without_a_lease(made: Recorded) -> None:
    fork = made.fork()
    reply = made.call(fork, {"to": "dan"})
    assert said(reply) == (409, "run-suspended")
    assert f"fork '{fork}' of run '{made.run}'" in reply.body["detail"]
    assert "retry-after" not in reply.headers
    assert made.effects_of(fork) == []


def test_a_tool_that_nobody_declared_stops_the_fork(made: Recorded) -> None:
    fork = made.fork()
    reply = made.service.begin(fork, f"other-{made.run}")
    assert said(reply) == (409, "run-suspended")
    assert "(rule: not registered)" in reply.body["detail"]


def test_a_simulator_sees_the_downstream_key_that_the_tool_would_send(made: Recorded) -> None:
    made.declare(simulator={"result": "${downstream_key}"})
    fork = made.fork()
    keys = [made.call(fork, {"to": to}).body["outcome"]["result"] for to in ("dan", "dan", "eve")]
    assert [len(key) for key in keys] == [64] * 3
    assert (keys[0] == keys[1], keys[0] == keys[2]) == (True, False)


def test_a_simulator_answers_with_its_template(made: Recorded) -> None:
    made.declare(simulator={"result": {"id": "sim-${arguments.to}", "n": "${length(arguments.to)}"}})
    fork = made.fork()
    reply = made.call(fork, {"to": "dan"})
    assert (said(reply), reply.body["provenance"], reply.body["origin"]) == ((200, "simulator"), "simulator", None)
    assert reply.body["outcome"] == {"result": {"id": "sim-dan", "n": 3}}
    failing = made.call(fork, {"to": 5})
    assert said(failing) == (409, "run-suspended")
    assert "(rule: simulator failed)" in failing.body["detail"]
    assert said(made.call(fork, {"to": "cid"})) == (200, "recorded")


def test_a_read_may_run_without_a_lease_and_is_stopped_where_reads_are_recorded(made: Recorded) -> None:
    lookup = f"lookup-{made.run}"
    made.service.ask("PUT", f"/v1/tools/{lookup}", {"class": "read"})
    live = made.service.begin(made.fork(), lookup)
    assert said(live) == (409, "not-possible")
    assert "(rule: read)" in live.body["detail"]
    stopped = made.service.begin(made.fork("strict", reads="recorded"), lookup)
    assert said(stopped) == (409, "run-suspended")
    assert "(rule: reads: recorded)" in stopped.body["detail"]
    assert said(made.service.begin(made.run, lookup)) == (409, "not-possible")


def test_a_tool_that_is_declared_as_read_just_before_is_still_what_the_record_used(made: Recorded) -> None:
    made.declare(**{"class": "read"})
    fork = made.fork(live=[{"tool": f"other-{made.run}"}])
    reply = made.call(fork, {"to": "dan"})
    assert said(reply) == (409, "run-suspended")
    assert "(rule: nothing may answer)" in reply.body["detail"]
    assert said(made.call(fork, {"to": "cid"})) == (200, "recorded")


def test_todays_registry_denies_and_stops_what_the_record_allowed(made: Recorded) -> None:
    fork = made.fork(live=[{"tool": made.tool}])
    made.declare(fork="deny")
    until(lambda: said(made.call(fork, {"to": "dan"})), (403, "forbidden"))
    assert said(made.call(fork, {"to": "cid"})) == (403, "forbidden")
    assert said(made.call(fork, {"to": "ann"})) == (200, "before the cut")
    made.declare(fork="suspend")
    until(lambda: said(made.call(fork, {"to": "dan"})), (409, "run-suspended"))


def test_the_rule_that_the_record_used_counts_where_it_is_the_stricter_one(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(fork="deny")
    made.did({"to": "ann"}, 1)
    made.declare(fork="live")
    reply = made.call(made.fork(at=1, live=[{"tool": made.tool}]), {"to": "dan"})
    assert said(reply) == (403, "forbidden")
    assert "(rule: registry: deny)" in reply.body["detail"]


def test_a_business_key_of_the_record_is_given_from_it(made: Recorded) -> None:
    key = f"invoice-{made.run}"
    made.did({"to": "dan"}, "paid dan", business_key=key)
    assert said(made.call(made.fork("before", at=4), {"to": "dan"}, business_key=key)) == (200, "before the cut")
    assert said(made.call(made.fork("after"), {"to": "dan"}, business_key=key)) == (200, "recorded")
    differs = made.call(made.fork("before", at=4), {"to": "eve"}, business_key=key)
    assert "(rule: arguments differ)" in differs.body["detail"]


def test_the_states_of_an_idempotent_tool_come_back_in_their_order(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    known: list[str] = []
    for number, state in enumerate(("on", "off", "on")):
        known.append(made.did({"light": state}, number, delivered=known).body["key"])
    fork = made.fork(at=3)
    first = made.call(fork, {"light": "on"})
    assert first.body["outcome"] == {"result": 0}
    assert made.call(fork, {"light": "on"}).body["outcome"] == {"result": 0}
    second = made.call(fork, {"light": "off"}, delivered=[first.body["origin"]])
    third = made.call(fork, {"light": "on"}, delivered=[second.body["origin"]])
    assert (second.body["outcome"], third.body["outcome"]) == ({"result": 1}, {"result": 2})


def test_a_tool_that_may_repeat_gives_one_effect_for_each_call(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(repeat="allow")
    for number in (1, 2, 3):
        made.did({}, number)
    fork = made.fork(at=2)
    attempt = str(uuid4())
    first = [made.call(fork, {}, attempt=attempt).body["outcome"]["result"] for _ in range(2)]
    rest = [made.call(fork, {}) for _ in range(3)]
    assert first == [1, 1]
    assert [said(reply) for reply in rest] == [(200, "before the cut"), (200, "recorded"), (409, "run-suspended")]
    assert [reply.body["outcome"]["result"] for reply in rest[:2]] == [2, 3]


def test_a_fork_of_a_fork_repeats_both(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    for to in ("ann", "bob", "cid"):
        made.did({"to": to}, f"main {to}")
    child = made.fork("child", live=[{"tool": made.tool}])
    for to in ("dan", "eve"):
        made.did({"to": to}, f"child {to}", run=child)
    grandchild = made.fork("grandchild", at=3, of=child)
    answers = {to: made.call(grandchild, {"to": to}) for to in ("ann", "bob", "dan", "eve", "cid", "fay")}
    assert {to: said(reply) for to, reply in answers.items()} == {
        "ann": (200, "before the cut"),
        "bob": (200, "before the cut"),
        "dan": (200, "before the cut"),
        "eve": (200, "recorded"),
        "cid": (200, "recorded"),
        "fay": (409, "run-suspended"),
    }
    early = made.fork("early", at=1, of=child)
    assert said(made.call(early, {"to": "ann"})) == (200, "before the cut")
    assert said(made.call(early, {"to": "bob"})) == (200, "recorded")


def test_durable_19_a_fork_does_not_run_what_the_run_itself_was_denied(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(approval={})
    made.decide(service.begin(run, made.tool, {"to": "ann"}), "deny")
    denied = service.begin(run, made.tool, {"to": "ann"})
    assert denied.body["state"] == "failed"
    made.declare()
    for name, at in (("before", 1), ("after", 0)):
        reply = made.call(made.fork(name, at=at, live=[{"tool": made.tool}]), {"to": "ann"})
        assert (reply.status, reply.body["decision"]) == (200, "stub")
        assert reply.body["outcome"] == denied.body["outcome"]
