"""Children of a fork: they may do no more than the fork, and have the record of their counterparts."""

import pytest

from tests.integration.fork_driver import Driver
from tests.integration.forks import Recorded, said, until
from tests.service import ServiceProcess


@pytest.fixture
def made(service: ServiceProcess, run: str) -> Recorded:
    """A run that paid Ann, with a child that paid Bob and a grandchild that paid Cid."""
    made = Recorded(service, run)
    made.declare()
    made.did({"to": "ann"}, "paid ann")
    for child, parent, to in ((f"{run}.sub", run, "bob"), (f"{run}.sub.sub", f"{run}.sub", "cid")):
        assert service.ask("POST", "/v1/runs", {"run": child, "parent": parent}).status < 300
        made.did({"to": to}, f"paid {to}", run=child)
    return made


def test_a_child_of_a_fork_says_that_it_is_one_on_the_forks_terms(made: Recorded) -> None:
    live = [{"tool": "mail", "calls": 2}]
    driver = Driver(made, at=1, reads="recorded", live=live)
    view = driver.child("sub").body
    assert {name: view[name] for name in ("run", "parent", "fork_of", "at", "reads", "live", "effects")} == {
        "run": f"{driver.fork}.sub", "parent": driver.fork, "fork_of": f"{made.run}.sub", "at": 0,
        "reads": "recorded", "live": live, "effects": 0,
    }  # fmt: skip
    assert "credential" not in view
    other = driver.child("new").body
    assert (other["parent"], other["live"], "fork_of" in other) == (driver.fork, live, False)
    assert driver.child("sub").body == view


def test_a_child_is_served_from_the_record_of_its_counterpart_and_a_new_one_from_none(made: Recorded) -> None:
    driver = Driver(made, at=1)
    child = str(driver.child("sub").body["run"])
    grandchild = str(driver.child("sub", child).body["run"])
    new = str(driver.child("new").body["run"])
    assert said(driver.begin(child, {"to": "bob"})) == (200, "recorded")
    assert said(driver.begin(grandchild, {"to": "cid"})) == (200, "recorded")
    for run, to in ((child, "ann"), (child, "cid"), (grandchild, "bob"), (new, "bob"), (new, "ann")):
        assert said(driver.begin(run, {"to": to})) == (409, "run-suspended"), (run, to)
    assert said(driver.begin(driver.fork, {"to": "bob"})) == (409, "run-suspended")


def test_a_run_that_only_has_the_name_of_a_counterpart_is_no_record(made: Recorded) -> None:
    secret = f"{made.run}.secret"
    made.did({"to": "eve"}, "not yours", run=secret)
    driver = Driver(made, at=1)
    child = driver.child("secret").body
    assert "fork_of" not in child
    assert said(driver.begin(str(child["run"]), {"to": "eve"})) == (409, "run-suspended")


def test_a_child_runs_live_only_what_the_fork_may_and_its_calls_count_there(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0, live=[{"tool": made.tool, "when": "arguments.n < `10`", "calls": 2}])
    first, second = (str(driver.child(name).body["run"]) for name in ("a", "b"))
    assert driver.begin(first, {"n": 1}).status == 201
    assert "(rule: arguments not allowed)" in driver.begin(first, {"n": 99}).body["detail"]
    assert driver.begin(driver.fork, {"n": 1}).status == 201
    assert "(rule: live calls used up)" in driver.begin(second, {"n": 1}).body["detail"]
    assert driver.begin(first, {"n": 1}).code == "in-progress"


def test_a_child_obeys_the_rule_that_the_forks_record_used_where_that_is_stricter(
    service: ServiceProcess, run: str
) -> None:
    made = Recorded(service, run)
    made.declare(fork="deny")
    made.did({"to": "ann"}, 1)
    made.declare(fork="live")
    driver = Driver(made, at=1, live=[{"tool": made.tool}])
    child = str(driver.child("new").body["run"])
    until(lambda: said(driver.begin(child, {"to": "dan"})), (403, "forbidden"))
    assert "(rule: registry: deny)" in driver.begin(child, {"to": "dan"}).body["detail"]


def test_a_child_reports_under_its_own_grant_and_stops_at_pauses_of_its_own(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0, live=[{"tool": made.tool, "calls": 1}])
    child = str(driver.child("a").body["run"])
    grant = driver.begin(child, {"to": "dan"})
    assert driver.report("commit", grant, result=1).status == 200
    stopped = driver.begin(child, {"to": "eve"})
    assert (len(driver.pauses(child)), driver.pauses()) == (1, [])
    driver.answer(stopped, child, answer="inject", outcome={"result": 2})
    assert driver.begin(child, {"to": "eve"}).body["outcome"] == {"result": 2}
    assert said(driver.begin(driver.fork, {"to": "eve"})) == (409, "run-suspended")
    assert driver.ask("POST", f"/v1/runs/{child}/finish", {}).body["state"] == "finished"


def test_an_ordinary_run_does_not_become_a_child_of_a_fork(made: Recorded) -> None:
    driver = Driver(made, at=1)
    made.service.ask("POST", "/v1/runs", {"run": f"{driver.fork}.sub"})
    refused = made.service.ask("POST", "/v1/runs", {"run": f"{driver.fork}.sub", "parent": driver.fork})
    assert (refused.status, refused.code) == (409, "name-taken")
    assert driver.begin(f"{driver.fork}.sub", {"to": "bob"}).status == 403


def test_a_fork_of_a_fork_finds_its_children_in_either_record(made: Recorded) -> None:
    driver = Driver(made, at=1)
    made.service.ask("POST", f"/v1/runs/{driver.fork}/forks", {"fork": f"{driver.fork}-2", "at": 1})
    child = made.service.ask("POST", "/v1/runs", {"run": f"{driver.fork}-2.sub", "parent": f"{driver.fork}-2"}).body
    assert child["fork_of"] == f"{made.run}.sub"
    assert said(made.call(str(child["run"]), {"to": "bob"})) == (200, "recorded")


def test_durable_31_two_forks_of_one_run_share_neither_child_nor_approval(made: Recorded) -> None:
    one, two = Driver(made, "one", at=1, live=[{"tool": made.tool}]), Driver(made, "two", at=1)
    first, second = one.child("sub").body, two.child("sub").body
    assert (first["id"] == second["id"], first["fork_of"]) == (False, second["fork_of"])
    asked = one.begin(str(first["run"]), {"to": "dan"})
    assert said(asked) == (202, "await_approval")
    made.decide(asked)
    assert said(two.begin(str(second["run"]), {"to": "dan"})) == (409, "run-suspended")
    assert two.begin(str(first["run"]), {"to": "dan"}).status == 403
    assert one.begin(str(first["run"]), {"to": "dan"}).status == 201


def test_so_many_runs_lie_within_each_other_in_a_fork_and_no_more(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(**{"class": "idempotent"})
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0, live=[{"tool": made.tool}])
    around = driver.fork
    for depth in range(32):
        child = driver.ask("POST", "/v1/runs", {"run": f"{driver.fork}.{depth}", "parent": around})
        assert child.status == 200, (depth, child.body)
        around = str(child.body["run"])
    assert driver.begin(around, {"to": "dan"}).status == 201
    deeper = driver.child("deeper", around)
    assert (deeper.status, deeper.body["errors"][0]["path"]) == (400, "/parent")
    assert "32 runs of a fork lie around this one already" in deeper.body["detail"] + str(deeper.body["errors"])
    assert service.ask("GET", f"/v1/runs/{around}.deeper").status == 404
