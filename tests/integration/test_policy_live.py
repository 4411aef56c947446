"""Forks over HTTP: what may really run there, how often, and that nothing else ever gets a lease."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.integration.forks import CUT, Recorded, paid, said, until
from tests.service import Reply, ServiceProcess


@pytest.fixture
def made(service: ServiceProcess, run: str) -> Recorded:
    """A run that paid Ann and Bob before the cut, and Cid after it."""
    return paid(service, run, "ann", "bob", "cid")


def test_an_idempotent_tool_that_the_fork_names_really_runs_once(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    fork = made.fork_of_nothing(live=[{"tool": made.tool}])
    grant = made.did({"to": "dan"}, "really", run=fork)
    assert (grant.body["step"], grant.body["run"]) == (1, fork)
    again = made.call(fork, {"to": "dan"})
    assert (again.status, again.body["decision"], again.body["outcome"]) == (200, "replay", {"result": "really"})


def test_steps_of_a_fork_go_on_from_its_cut(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    for to in ("ann", "bob", "cid"):
        made.did({"to": to}, to)
    fork = made.fork(live=[{"tool": made.tool}])
    assert made.did({"to": "dan"}, 1, run=fork).body["step"] == CUT + 1
    assert made.service.ask("GET", f"/v1/runs/{fork}").body["effects"] == CUT + 1


def test_the_terms_say_with_which_arguments_a_tool_may_run(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    fork = made.fork_of_nothing(live=[{"tool": made.tool, "when": "arguments.amount < `10`"}])
    assert made.call(fork, {"amount": 5}).status == 201
    reply = made.call(fork, {"amount": 50})
    assert said(reply) == (409, "run-suspended")
    assert "(rule: arguments not allowed)" in reply.body["detail"]


def test_of_eight_begins_at_once_one_gets_the_only_live_call(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    fork = made.fork_of_nothing(live=[{"tool": made.tool, "calls": 1}])
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: made.call(fork, {"to": number}), range(8)))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 7
    assert {reply.code for reply in replies if reply.status == 409} == {"run-suspended"}
    (grant,) = (reply for reply in replies if reply.status == 201)
    assert len(made.effects_of(fork)) == 1
    not_applied = {"kind": "not_applied", "error": {"type": "E", "message": "m"}}
    made.service.report("fail", grant, **not_applied)
    number = replies.index(grant)
    until(lambda: made.call(fork, {"to": number}).status, 201)
    refused = made.call(fork, {"to": 99})
    assert "(rule: live calls used up)" in refused.body["detail"]


def test_a_side_effect_that_the_fork_names_waits_for_an_approval_of_its_arguments(made: Recorded) -> None:
    fork = made.fork(live=[{"tool": made.tool, "calls": 1}])
    asked = made.call(fork, {"to": "dan"})
    assert said(asked) == (202, "await_approval")
    assert said(made.call(fork, {"to": "dan"})) == (202, "await_approval")
    made.decide(asked)
    other = made.call(fork, {"to": "eve"})
    assert (said(other), other.body["approval"] == asked.body["approval"]) == ((202, "await_approval"), False)
    grant = made.call(fork, {"to": "dan"})
    assert grant.status == 201
    made.decide(other)
    used_up = made.call(fork, {"to": "eve"})
    assert said(used_up) == (409, "run-suspended")
    assert made.service.report("commit", grant, result=1).status == 200
    assert made.call(fork, {"to": "dan"}).body["decision"] == "replay"


def test_a_side_effect_that_a_person_denied_does_not_run_in_the_fork(made: Recorded) -> None:
    fork = made.fork(live=[{"tool": made.tool}])
    made.decide(made.call(fork, {"to": "dan"}), "deny")
    denied = made.call(fork, {"to": "dan"})
    assert (denied.status, denied.body["decision"], denied.body["state"]) == (200, "replay", "failed")


def test_without_the_run_a_business_key_is_outside_of_the_fork_and_within_it_is_not(made: Recorded) -> None:
    fork = made.fork()
    key = f"invoice-{made.run}"
    assert said(made.call(fork, {"to": "dan"}, business_key=key)) == (409, "run-suspended")
    assert made.service.begin(None, made.tool, {"to": "dan"}, business_key=key).status == 201


def test_a_live_call_in_a_fork_meets_the_row_of_its_business_key(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    key = f"invoice-{run}"
    grant = service.begin(None, made.tool, {"to": "dan"}, business_key=key)
    service.report("commit", grant, result="real")
    fork = made.fork_of_nothing(live=[{"tool": made.tool, "calls": 1}])
    met = made.call(fork, {"to": "dan"}, business_key=key)
    assert (met.status, met.body["decision"], met.body["outcome"]) == (200, "replay", {"result": "real"})
    assert made.call(fork, {"to": "eve"}).status == 201


def test_a_finished_fork_serves_its_record_and_runs_nothing(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    made.did({"to": "ann"}, 1)
    fork = made.fork(at=1, live=[{"tool": made.tool}])
    service.ask("POST", f"/v1/runs/{fork}/finish", {})
    assert said(made.call(fork, {"to": "ann"})) == (200, "before the cut")
    assert said(made.call(fork, {"to": "dan"})) == (409, "run-finished")


def test_a_release_in_a_fork_gives_no_lease_and_stops_none(made: Recorded) -> None:
    fork = made.fork()
    body = {"tool": made.tool, "arguments": {"to": "dan"}, "run": fork, "attempt": str(uuid4())}
    released = made.service.ask("POST", "/v1/effects/release", body)
    assert said(released) == (409, "not-possible")
    assert said(made.service.ask("POST", "/v1/effects", body)) == (409, "run-suspended")
    assert not made.service.ask("GET", f"/v1/effects?run={fork}").body["items"]


def test_a_release_of_a_call_that_a_fork_lets_run_keeps_it_from_a_lease(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    fork = made.fork_of_nothing(live=[{"tool": made.tool}])
    body = {"tool": made.tool, "arguments": {"to": "dan"}, "run": fork, "attempt": str(uuid4())}
    assert service.ask("POST", "/v1/effects/release", body).body["state"] == "pending"
    assert said(service.ask("POST", "/v1/effects", body)) == (409, "lease-lost")
    assert made.call(fork, {"to": "dan"}).status == 201


def test_durable_11_a_fork_asks_again_for_what_was_approved_behind_its_cut(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(approval={})
    for to in ("ann", "bob"):
        made.decide(service.begin(run, made.tool, {"to": to}))
    made.did({"to": "ann"}, "paid ann")
    asked = service.begin(run, made.tool, {"to": "bob"}, worker="nobody else")
    assert asked.status == 201, "the run itself may pay Bob"
    service.report("fail", asked, kind="not_applied", error={"type": "E", "message": "m"})
    fork = made.fork(at=1, live=[{"tool": made.tool}])
    assert said(made.call(fork, {"to": "ann"})) == (200, "before the cut")
    assert said(made.call(fork, {"to": "bob"})) == (202, "await_approval")


def test_durable_31_two_forks_of_one_run_share_no_key_and_no_approval(made: Recorded) -> None:
    one, other = (made.fork(name, live=[{"tool": made.tool}]) for name in ("one", "other"))
    asked: list[Reply] = [made.call(fork, {"to": "dan"}) for fork in (one, other)]
    assert len({reply.body["key"] for reply in asked}) == 2
    assert len({reply.body["approval"] for reply in asked}) == 2
    made.decide(asked[0])
    assert made.call(one, {"to": "dan"}).status == 201
    assert said(made.call(other, {"to": "dan"})) == (202, "await_approval")


def test_a_lapsed_effect_of_another_caller_is_no_way_around_the_number_of_calls(
    service: ServiceProcess, run: str
) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    fork = made.fork_of_nothing(live=[{"tool": made.tool, "calls": 1}])
    assert made.call(fork, {"to": "ann"}).status == 201
    key = f"invoice-{run}"
    lapsing = service.begin(None, made.tool, {"to": "dan"}, business_key=key, lease_seconds=1)
    path = f"/v1/effects/{lapsing.body['key']}"
    until(lambda: service.ask("GET", path).body["state"], "pending")
    assert said(made.call(fork, {"to": "dan"}, business_key=key)) == (409, "run-suspended")
    assert service.ask("GET", path).body["fence"] == 1


def test_an_effect_in_doubt_of_another_caller_is_not_run_again_without_an_approval(made: Recorded) -> None:
    tool = f"send-{made.run}"
    fork = made.fork(live=[{"tool": tool}])
    made.service.ask("PUT", f"/v1/tools/{tool}", {"class": "side_effect", "provider_window_seconds": 3600})
    key = f"mail-{made.run}"
    doubtful = made.service.begin(None, tool, business_key=key)
    made.service.report("fail", doubtful, kind="unknown", error={"type": "E", "message": "?"})
    stopped = made.service.begin(fork, tool, business_key=key)
    assert said(stopped) == (409, "outcome-in-doubt")
    assert f"/v1/effects/{doubtful.body['key']}/resolve" in stopped.body["detail"], "nobody can approve it before"
    assert made.service.begin(None, tool, business_key=key).status == 201


def test_the_version_that_the_parent_comes_to_use_after_the_fork_was_made_counts_too(
    service: ServiceProcess, run: str
) -> None:
    made = Recorded(service, run)
    made.declare(fork="deny")
    fork = made.fork_of_nothing(live=[{"tool": made.tool}])
    grandchild = made.fork("of-the-fork", at=0, of=fork, live=[{"tool": made.tool}])
    made.did({"to": "ann"}, "paid ann")
    made.declare(**{"class": "idempotent", "fork": "live"})
    for forked in (fork, grandchild):
        assert said(made.call(forked, {"to": "bob"})) == (403, "forbidden")


def test_a_side_effect_of_the_parents_version_needs_an_approval_in_the_fork(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(approval={"quorum": 2})
    fork = made.fork_of_nothing(live=[{"tool": made.tool}])
    made.decide(made.service.begin(run, made.tool, {"to": "ann"}))
    made.declare(**{"class": "idempotent"})
    asked = made.call(fork, {"to": "bob"})
    assert (asked.status, asked.body["quorum"]) == (202, 2)
    assert service.begin(f"{run}-other", made.tool, {"to": "bob"}).status == 201
