"""An attack on the service with nothing but the credential of a fork: no tool runs live that is not allowed."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.integration.fork_driver import Driver
from tests.integration.forks import Recorded, paid, said
from tests.service import ServiceProcess

LIVE = "idempotent"


@pytest.fixture
def made(service: ServiceProcess, run: str) -> Recorded:
    """A run that paid Ann and Bob before the cut, and Cid after it."""
    return paid(service, run, "ann", "bob", "cid")


@pytest.fixture
def driver(made: Recorded) -> Driver:
    """Who has the credential of a fork in which nothing may run."""
    return Driver(made)


@pytest.fixture
def allowed(service: ServiceProcess, run: str) -> Driver:
    """Who has the credential of a fork in which one call of an idempotent tool may run."""
    made = Recorded(service, run)
    made.declare(**{"class": LIVE})
    service.ask("POST", "/v1/runs", {"run": run})
    return Driver(made, at=0, live=[{"tool": made.tool, "calls": 1}])


@pytest.fixture(scope="module")
def guarded_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that has tokens."""
    path = tmp_path_factory.mktemp("guarded") / "guard.db"
    with ServiceProcess(f"sqlite:///{path}", TWICESHY_TOKENS="s3cret", TWICESHY_APPROVERS="ann:ann-token") as process:
        yield process


def test_the_same_terms_again_give_the_same_credential_and_another_fork_another_one(made: Recorded) -> None:
    first, again, other = Driver(made), Driver(made), Driver(made, "g")
    assert re.fullmatch(r"fork\.[0-9a-f]{32}\.[0-9a-f]{64}", first.credential)
    assert (again.credential == first.credential, other.credential == first.credential) == (True, False)
    assert "credential" not in made.service.ask("GET", f"/v1/runs/{first.fork}").body


def test_with_the_credential_the_fork_is_driven(driver: Driver) -> None:
    assert said(driver.begin(driver.fork, {"to": "ann"})) == (200, "before the cut")
    assert said(driver.begin(driver.fork, {"to": "cid"})) == (200, "recorded")
    assert said(driver.begin(driver.fork, {"to": "dan"})) == (409, "run-suspended")
    assert driver.ask("GET", f"/v1/runs/{driver.fork}").body["effects"] == 2
    assert len(driver.ask("GET", f"/v1/effects?run={driver.made.run}").body["items"]) == 3
    assert driver.ask("POST", f"/v1/runs/{driver.fork}/finish", {}).body["state"] == "finished"


def test_what_the_fork_was_granted_is_renewed_committed_and_failed_with_the_credential(allowed: Driver) -> None:
    grant = allowed.begin(allowed.fork, {"to": "dan"})
    assert grant.status == 201
    assert allowed.report("renew", grant).status == 200
    failed = allowed.report("fail", grant, kind="not_applied", error={"type": "E", "message": "m"})
    assert (failed.status, failed.body["state"]) == (200, "pending")
    released = {"tool": allowed.made.tool, "arguments": {"to": "dan"}, "run": allowed.fork, "attempt": str(uuid4())}
    assert allowed.ask("POST", "/v1/effects/release", released).status == 200


def test_a_forged_credential_is_refused_whatever_it_is_a_forgery_of(made: Recorded, driver: Driver) -> None:
    _, run, proof = driver.credential.split(".")
    other = Driver(made, "g").credential.split(".")[1]
    for forged in (f"fork.{other}.{proof}", f"fork.{run}.{'0' * 64}", f"fork.{run}", "fork.", f"{driver.credential}x"):
        reply = made.service.ask("GET", f"/v1/runs/{driver.fork}", Authorization=f"Bearer {forged}")
        assert (reply.status, reply.code) == (401, "unauthorized")


def test_where_there_are_tokens_the_credential_is_one_and_a_forged_one_is_none(
    guarded_service: ServiceProcess, run: str
) -> None:
    token = {"Authorization": "Bearer s3cret"}
    guarded_service.ask("POST", "/v1/runs", {"run": run}, **token)
    fork = guarded_service.ask("POST", f"/v1/runs/{run}/forks", {"fork": f"{run}-f", "at": 0}, **token).body
    mine = {"Authorization": f"Bearer {fork['credential']}"}
    assert guarded_service.ask("GET", f"/v1/runs/{run}-f", **mine).status == 200
    assert guarded_service.ask("GET", f"/v1/runs/{run}-f").status == 401
    forged = {"Authorization": f"Bearer {fork['credential'][:-1]}0"}
    other = {"Authorization": f"Bearer {fork['credential'][:-1]}1"}
    assert 401 in {guarded_service.ask("GET", f"/v1/runs/{run}-f", **one).status for one in (forged, other)}
    decided = guarded_service.ask("GET", f"/v1/runs/{run}-f", Authorization="Bearer ann-token")
    assert decided.status == 200


def test_no_begin_passes_that_is_not_in_the_fork(made: Recorded, driver: Driver) -> None:
    other = made.fork("other", live=[{"tool": made.tool}])
    for run in (None, made.run, other, f"new-{made.run}", f"{driver.fork}.unopened"):
        for scope in ({}, {"business_key": f"key-{made.run}"}):
            reply = driver.begin(run, {"to": "dan"}, **scope)
            assert (reply.status, reply.code) == (403, "forbidden"), run
    assert made.service.ask("GET", f"/v1/runs/new-{made.run}").status == 404
    keyed = driver.begin(None, {"to": "dan"}, Idempotency_Key=f"key-{made.run}")
    assert keyed.status in (400, 403)
    assert made.service.begin(None, made.tool, {"to": "dan"}, business_key=f"key-{made.run}").status == 201


def test_a_release_of_what_another_run_holds_is_refused(made: Recorded, driver: Driver) -> None:
    grant = made.service.begin(made.run, made.tool, {"to": "dan"})
    body = {"tool": made.tool, "arguments": {"to": "dan"}, "run": made.run, "attempt": grant.body["attempt"]}
    assert driver.ask("POST", "/v1/effects/release", body).status == 403
    reports = (
        driver.report("commit", grant, result=1),
        driver.report("renew", grant),
        driver.report("fail", grant, kind="not_applied", error={"type": "E", "message": "m"}),
    )
    assert [(reply.status, reply.code) for reply in reports] == [(403, "forbidden")] * 3
    assert made.service.report("commit", grant, result=1).status == 200


def test_each_request_of_a_batch_is_admitted_alone(made: Recorded, driver: Driver) -> None:
    def item(run: str | None, to: str) -> dict[str, object]:
        scope = {"business_key": f"k-{made.run}"} if run is None else {"run": run}
        body = {"tool": made.tool, "arguments": {"to": to}, "attempt": str(uuid4())} | scope
        return {"path": "/v1/effects", "body": body}

    grant = made.service.begin(made.run, made.tool, {"to": "eve"})
    held = {"attempt": grant.body["attempt"], "fence": grant.body["fence"], "result": 1}
    commit = {"path": f"/v1/effects/{grant.body['key']}/commit", "body": held}
    nested = {"path": "/v1/batch", "body": {"requests": [item(None, "dan")]}}
    wanted = [item(driver.fork, "ann"), item(made.run, "dan"), item(None, "dan"), commit, nested]
    answers = driver.ask("POST", "/v1/batch", {"requests": wanted}).body["answers"]
    assert [answer["status"] for answer in answers] == [200, 403, 403, 403, 404]


def test_a_declaration_writes_nothing_and_is_answered_with_what_holds(made: Recorded, driver: Driver) -> None:
    lookup = f"lookup-{made.run}"
    for tool, version in ((made.tool, 1), (lookup, 0)):
        for declared_by in ("person", "code", "hint"):
            reply = driver.ask("PUT", f"/v1/tools/{tool}", {"class": "read", "declared_by": declared_by})
            assert (reply.status, reply.body["version"]) == (200, version)
            assert reply.body["declaration"]["class"] == "side_effect"
    assert made.service.ask("GET", f"/v1/tools/{lookup}").status == 404
    assert made.service.ask("GET", f"/v1/tools/{made.tool}").body["version"] == 1
    assert said(driver.begin(driver.fork, {}, lookup)) == (409, "run-suspended")
    apply = {"tools": {lookup: {"class": "read"}}}
    for verb in ("plan", "apply"):
        assert driver.ask("POST", f"/v1/tools/{verb}", apply).status == 403
    held = made.service.ask("GET", "/v1/tools/plan").body.get("version", 0)  # others may have declared one of that name
    assert driver.ask("PUT", "/v1/tools/plan", {"class": "read"}).body["version"] == held


def test_no_run_is_opened_but_a_child_and_no_fork_is_made(made: Recorded, driver: Driver) -> None:
    assert driver.ask("POST", "/v1/runs", {"run": f"new-{made.run}"}).status == 403
    assert driver.ask("POST", "/v1/runs", {"run": made.run, "record": True}).status == 403
    assert driver.ask("POST", "/v1/runs", {"run": f"new-{made.run}", "parent": made.run}).status == 403
    assert driver.ask("POST", "/v1/runs", {"run": made.run, "parent": driver.fork}).status == 403
    assert driver.ask("POST", "/v1/runs", {"run": f"new-{made.run}", "parent": f"none-{made.run}"}).status == 403
    wider = {"fork": f"wide-{made.run}", "at": 0, "live": [{"tool": made.tool}]}
    for parent in (made.run, driver.fork):
        assert driver.ask("POST", f"/v1/runs/{parent}/forks", wider).status == 403
    for name in (f"new-{made.run}", f"wide-{made.run}"):
        assert made.service.ask("GET", f"/v1/runs/{name}").status == 404
    assert made.service.ask("GET", f"/v1/runs/{made.run}").body["epoch"] == 0


def test_many_children_get_no_more_live_calls_than_their_fork(allowed: Driver) -> None:
    children = [str(allowed.child(f"c{number}").body["run"]) for number in range(3)]
    runs = [allowed.fork, *children, str(allowed.child("d", children[0]).body["run"])]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: allowed.begin(runs[number % 5], {"to": number}), range(15)))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 14
    assert {reply.code for reply in replies if reply.status == 409} == {"run-suspended"}


def test_another_tenant_or_method_in_a_header_changes_nothing(made: Recorded, driver: Driver) -> None:
    body = {"tool": made.tool, "arguments": {"to": "dan"}, "attempt": str(uuid4()), "run": made.run}
    for headers in (
        {"Twiceshy_Tenant": "2"}, {"X_Tenant": "other"}, {"X_HTTP_Method_Override": "GET"}, {"Twiceshy_Contract": "99"},
    ):  # fmt: skip
        assert driver.ask("POST", "/v1/effects", body, **headers).status == 403


def test_a_field_that_only_a_later_contract_knows_does_not_hide_the_run(made: Recorded, driver: Driver) -> None:
    wanted = {"run": f"new-{made.run}", "later": 1}
    for headers in ({}, {"Twiceshy_Contract": "99"}):
        assert driver.ask("POST", "/v1/runs", wanted, **headers).status in (400, 403)
    assert driver.ask("POST", "/v1/runs", b'{"run": "a", "run": "b"}').status == 400
    assert made.service.ask("GET", f"/v1/runs/new-{made.run}").status == 404


def test_a_saga_of_the_fork_enlists_and_takes_back_only_what_the_policy_lets_run(allowed: Driver) -> None:
    service, made = allowed.service, allowed.made
    service.ask("PUT", f"/v1/tools/refund-{made.run}", {"class": "side_effect"})
    made.declare(
        **{"class": LIVE, "compensation": {"tool": f"refund-{made.run}", "arguments": {"of": "${arguments.to}"}}}
    )
    saga = allowed.ask("POST", "/v1/sagas", {"saga": f"s-{made.run}", "run": allowed.fork}).body["saga"]
    grant = allowed.begin(allowed.fork, {"to": "dan"}, saga=saga)
    assert grant.status == 201
    assert allowed.report("commit", grant, result=1).status == 200
    assert said(allowed.begin(allowed.fork, {"to": "eve"}, saga=saga)) == (409, "run-suspended")
    assert allowed.ask("POST", f"/v1/sagas/{saga}/fail", {"reason": "no"}).status == 200
    due = allowed.ask("POST", f"/v1/sagas/{saga}/next").body
    back = allowed.begin(
        allowed.fork, {"of": "dan"}, f"refund-{made.run}", saga=saga, compensates=grant.body["key"],
        step=f"compensate:{grant.body['key']}",
    )  # fmt: skip
    assert back.status in (400, 409), (due, back.body)
    items = service.ask("GET", f"/v1/effects?tool=refund-{made.run}").body["items"]
    assert [item["state"] for item in items] == []
    assert allowed.ask("POST", f"/v1/sagas/{saga}/resume", {"by": "x", "reason": "y"}).status == 403


def test_a_saga_of_another_run_is_out_of_reach(made: Recorded, driver: Driver) -> None:
    name = f"s-{made.run}"
    made.service.ask("POST", "/v1/sagas", {"saga": name, "run": made.run})
    assert driver.ask("POST", "/v1/sagas", {"saga": name, "run": made.run}).status == 403
    for verb in ("complete", "fail", "next", "resume"):
        assert driver.ask("POST", f"/v1/sagas/{name}/{verb}", {"reason": "no"}).status == 403
    assert driver.ask("GET", f"/v1/sagas/{name}").status == 403
    assert made.service.ask("GET", f"/v1/sagas/{name}").body["state"] == "running"


def test_no_hold_is_placed_or_changed_and_nobody_places_one_in_the_name_of_a_fork(
    made: Recorded, driver: Driver
) -> None:
    wish = {"resource": f"room-{made.run}", "start": "2030-01-01T10:00:00Z", "end": "2030-01-01T11:00:00Z",
            "holder": "me", "hold_seconds": 60}  # fmt: skip
    mine = wish | {"id": str(uuid4())}
    placed = made.service.ask("POST", "/v1/holds", wish | {"id": str(uuid4())})
    assert placed.status == 201, placed.body
    assert driver.ask("POST", "/v1/holds", mine).status == 403
    for verb in ("release", "commit", "renew"):
        assert driver.ask("POST", f"/v1/holds/{placed.body['id']}/{verb}", {"holder": "me"}).status == 403
    named = made.service.ask("POST", "/v1/holds", mine | {"run": driver.fork, "resource": f"other-{made.run}"})
    assert (named.status, named.code) == (403, "forbidden")
    child = str(driver.child("c").body["run"])
    in_child = made.service.ask("POST", "/v1/holds", mine | {"run": child, "resource": f"other-{made.run}"})
    assert in_child.status == 403
    assert made.service.ask("GET", f"/v1/holds?resource=other-{made.run}").body["items"] == []


def test_a_person_decides_and_the_fork_does_not(made: Recorded) -> None:
    driver = Driver(made, live=[{"tool": made.tool}])
    asked = driver.begin(driver.fork, {"to": "dan"})
    assert said(asked) == (202, "await_approval")
    approval = asked.body["approval"]
    assert driver.ask("GET", f"/v1/approvals/{approval}").body["state"] == "open"
    assert len(driver.ask("GET", f"/v1/approvals?run={driver.fork}").body["items"]) == 1
    for verb, body in (("decide", {"verdict": "approve", "by": "me"}), ("cancel", {"reason": "no"})):
        assert driver.ask("POST", f"/v1/approvals/{approval}/{verb}", body).status == 403
    for verb in ("resolve", "cancel", "reopen"):
        key = asked.body["key"]
        assert driver.ask("POST", f"/v1/effects/{key}/{verb}", {"by": "me", "reason": "r"}).status == 403
    assert said(driver.begin(driver.fork, {"to": "dan"})) == (202, "await_approval")
    made.decide(asked)
    assert driver.begin(driver.fork, {"to": "dan"}).status == 201


def test_other_runs_are_neither_read_nor_ended_and_ancestors_are_read_only(made: Recorded, driver: Driver) -> None:
    other, sibling = f"other-{made.run}", made.fork("sibling")
    made.did({"to": "x"}, 1, run=other)
    made.service.ask("POST", "/v1/runs", {"run": f"{made.run}.sub", "parent": made.run})
    for run in (other, sibling):
        for path in (f"/v1/runs/{run}", f"/v1/runs/{run}/events", f"/v1/effects?run={run}", f"/v1/events?run={run}"):
            assert driver.ask("GET", path).status == 403, path
    assert driver.ask("GET", f"/v1/effects?run={made.run}&run={other}").status == 403
    assert driver.ask("GET", "/v1/effects").status == 403
    (effect,) = made.effects_of(other)
    assert driver.ask("GET", f"/v1/effects/{effect['key']}").status == 403
    for run in (made.run, f"{made.run}.sub"):
        assert driver.ask("GET", f"/v1/runs/{run}").status == 200
        assert driver.ask("GET", f"/v1/runs/{run}/events").status == 200
        for verb, body in (("finish", {}), ("facts", {"facts": {"a": 1}}), ("events", {"epoch": 1, "events": []})):
            assert driver.ask("POST", f"/v1/runs/{run}/{verb}", body).status == 403
    assert driver.ask("GET", f"/v1/effects/{made.effects_of(made.run)[0]['key']}").status == 200
    for run in (made.run, other):
        assert made.service.ask("GET", f"/v1/runs/{run}").body["state"] == "open"
