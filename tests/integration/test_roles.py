"""Roles that are declared anew: what was named stays named, and honest replays succeed."""

from collections.abc import Mapping

from tests.service import ServiceProcess

CONTENT = {"arguments": {"content": ["/title"]}}


def declare(service: ServiceProcess, tool: str, declaration: Mapping[str, object]) -> int:
    return int(service.ask("PUT", f"/v1/tools/{tool}", declaration).body["version"])


def test_a_run_keeps_to_the_roles_that_it_began_with(service: ServiceProcess, run: str) -> None:
    tool = f"hold-{run}"
    first = service.begin(run, tool, {"at": 1, "title": "a"})
    service.report("fail", first, kind="unknown", error={"type": "E", "message": "m"})
    declare(service, tool, CONTENT)
    again = service.begin(run, tool, {"at": 1, "title": "a"})
    assert (again.code, again.body["key"]) == ("outcome-in-doubt", first.body["key"])
    later = service.begin(f"{run}-later", tool, {"at": 1, "title": "a"})
    service.report("commit", later, result=1)
    assert service.begin(f"{run}-later", tool, {"at": 1, "title": "b"}).body["drift"] == {"content": ["/title"]}


def test_a_deploy_that_is_rolled_back_holds_again(service: ServiceProcess, run: str) -> None:
    tool = f"hold-{run}"
    old, new = CONTENT | {"declared_by": "code"}, {"declared_by": "code"}
    assert [declare(service, tool, declared) for declared in (old, new, old)] == [1, 2, 1]
    service.report("commit", service.begin(run, tool, {"at": 1, "title": "a"}), result=1)
    assert service.begin(run, tool, {"at": 1, "title": "b"}).status == 200


def test_a_business_key_agrees_with_its_record_under_todays_roles(service: ServiceProcess, run: str) -> None:
    tool, name = f"hold-{run}", f"key-{run}"
    first = service.begin(None, tool, {"at": 1, "title": "a"}, business_key=name)
    service.report("commit", first, result=1)
    refused = service.begin(None, tool, {"at": 1, "title": "b"}, business_key=name)
    assert (refused.code, refused.body["paths"]) == ("arguments-changed", ["/arguments/title"])
    declare(service, tool, CONTENT)
    assert service.begin(None, tool, {"at": 1, "title": "a"}, business_key=name).body["drift"] is None
    assert service.begin(None, tool, {"at": 1, "title": "b"}, business_key=name).body["drift"] == {
        "content": ["/title"]
    }


def test_a_class_that_is_raised_finds_the_doubt_that_was_harmless_before(service: ServiceProcess, run: str) -> None:
    tool = f"set-{run}"
    declare(service, tool, {"class": "idempotent"})
    first = service.begin(run, tool, lease_seconds=1)
    assert service.begin(run, tool, wait_seconds=10).code == "retry-later"
    declare(service, tool, {"class": "side_effect"})
    doubtful = service.begin(run, tool)
    assert (doubtful.code, doubtful.body["state"]) == ("outcome-in-doubt", "in_doubt")
    assert service.report("commit", first, result="late").body["state"] == "succeeded"


def test_the_run_that_is_asked_for_must_be_open_not_the_one_that_began(service: ServiceProcess, run: str) -> None:
    name, other = f"key-{run}", f"{run}-other"
    error = {"type": "E", "message": "m"}
    first = service.begin(run, business_key=name)
    service.report("fail", first, kind="not_applied", error=error, retry_after=0)
    service.ask("POST", f"/v1/runs/{run}/finish")
    assert service.begin(run, business_key=name).code == "run-finished"
    second = service.begin(other, business_key=name)
    assert (second.status, second.body["fence"]) == (201, 2)
    service.report("fail", second, kind="not_applied", error=error, retry_after=0)
    assert service.begin(None, business_key=name).status == 201


def test_a_window_that_is_declared_later_promises_nothing_of_an_earlier_attempt(
    service: ServiceProcess, run: str
) -> None:
    tool, error = f"pay-{run}", {"type": "E", "message": "m"}
    first = service.begin(run, tool)
    service.report("fail", first, kind="unknown", error=error)
    elsewhere = service.begin(None, tool, business_key=f"key-{run}")
    service.report("fail", elsewhere, kind="unknown", error=error)
    declare(service, tool, {"provider_window_seconds": 86_400, "declared_by": "code"})
    assert service.begin(run, tool).code == "outcome-in-doubt"
    assert service.begin(None, tool, business_key=f"key-{run}").code == "outcome-in-doubt"


def test_a_finished_call_is_replayed_whatever_is_declared_since(service: ServiceProcess, run: str) -> None:
    tool = f"hold-{run}"
    service.report("commit", service.begin(run, tool, {"at": "noon"}), result=1)
    declare(service, tool, {"key": {"rule": "step"}, "arguments": {"normalisers": {"/at": "utc"}}})
    assert service.begin(run, tool, {"at": "noon"}).body["outcome"] == {"result": 1}
    assert service.begin(f"{run}-later", tool, {"at": "noon"}).status == 400


def test_a_new_attempt_is_compared_by_the_roles_that_it_ran_under(service: ServiceProcess, run: str) -> None:
    tool, name = f"hold-{run}", f"key-{run}"
    call = {"at": 1, "title": "a"}
    first = service.begin(None, tool, call, business_key=name)
    error = {"type": "E", "message": "m"}
    service.report("fail", first, kind="not_applied", error=error, retry_after=0)
    declare(service, tool, CONTENT)
    service.report("commit", service.begin(None, tool, call, business_key=name), result=1)
    assert service.begin(None, tool, call, business_key=name).body["drift"] is None


def test_a_lapsed_attempt_is_settled_only_after_its_time_and_may_have_applied(
    service: ServiceProcess, run: str
) -> None:
    tool = f"set-{run}"
    declare(service, tool, {"class": "idempotent"})
    first = service.begin(run, tool, lease_seconds=1)
    assert service.begin(run, tool, wait_seconds=10).code == "retry-later"
    path = f"/v1/effects/{first.body['key']}"
    early = service.ask("POST", f"{path}/resolve", {"as": "not_applied", "fence": 1, "reason": "r"})
    assert (early.code, service.ask("GET", path).body["settles_at"] is None) == ("not-possible", False)
    applied = {"as": "applied", "fence": 1, "reason": "r", "result": 1}
    assert service.ask("POST", f"{path}/resolve", applied).body["state"] == "succeeded"
