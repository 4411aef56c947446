"""Runs, tools, the key preview, listings and health over HTTP."""

import time

from tests.service import ServiceProcess


def test_a_run_is_opened_once_read_listed_and_finished(service: ServiceProcess, run: str) -> None:
    opened = service.ask("POST", "/v1/runs", {"run": run})
    assert (opened.status, opened.body["state"], opened.body["effects"]) == (200, "open", 0)
    assert service.ask("POST", "/v1/runs", {"run": run}).body["id"] == opened.body["id"]
    service.begin(run)
    assert service.ask("GET", f"/v1/runs/{run}").body["effects"] == 1
    assert run in [item["run"] for item in service.ask("GET", "/v1/runs?state=open&limit=500").body["items"]]
    finished = service.ask("POST", f"/v1/runs/{run}/finish", {"as": "failed"})
    assert (finished.body["state"], finished.body["ended_at"] is None) == ("failed", False)
    assert service.ask("POST", f"/v1/runs/{run}/finish", {"as": "failed"}).body == finished.body
    assert service.ask("POST", f"/v1/runs/{run}/finish").code == "run-finished"


def test_a_run_that_nobody_opened_is_not_found(service: ServiceProcess, run: str) -> None:
    assert service.ask("GET", f"/v1/runs/{run}").code == "not-found"
    assert service.ask("POST", f"/v1/runs/{run}/finish").code == "not-found"


def test_code_may_raise_a_class_and_never_lower_it(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    first = service.ask("PUT", f"/v1/tools/{tool}", {"class": "idempotent", "declared_by": "code"})
    assert (first.body["version"], first.body["declaration"]["class"]) == (1, "idempotent")
    same = service.ask("PUT", f"/v1/tools/{tool}", {"class": "idempotent", "declared_by": "code"})
    assert same.body["version"] == 1
    raised = service.ask("PUT", f"/v1/tools/{tool}", {"class": "side_effect", "declared_by": "code"})
    assert (raised.body["version"], raised.body["declaration"]["class"]) == (2, "side_effect")
    lowered = service.ask("PUT", f"/v1/tools/{tool}", {"class": "idempotent", "declared_by": "code"})
    assert (lowered.body["version"], lowered.body["declaration"]["class"]) == (2, "side_effect")
    person = service.ask("PUT", f"/v1/tools/{tool}", {"class": "idempotent"})
    assert (person.body["version"], person.body["declaration"]["class"]) == (3, "idempotent")
    assert service.ask("GET", f"/v1/tools/{tool}").body["version"] == 3
    assert tool in [item["name"] for item in service.ask("GET", "/v1/tools").body["items"]]


def test_one_path_has_one_role(service: ServiceProcess, run: str) -> None:
    reply = service.ask("PUT", f"/v1/tools/t-{run}", {"arguments": {"content": ["/a"], "ignored": ["/a"]}})
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, "/arguments/ignored/0")


def test_an_undeclared_tool_is_not_found(service: ServiceProcess, run: str) -> None:
    assert service.ask("GET", f"/v1/tools/none-{run}").code == "not-found"


def test_the_preview_names_the_key_that_begin_then_uses_and_stores_nothing(service: ServiceProcess, run: str) -> None:
    call = {"tool": "pay", "arguments": {"b": 1.0, "a": {"$dec": "2.50"}}, "run": run}
    unknown = service.ask("POST", "/v1/keys", call)
    assert (unknown.status, unknown.body["key"], unknown.body["rule"]) == (200, None, "once")
    assert unknown.body["identity"] == '{"a":{"$dec":"2.5"},"b":1}'
    assert service.ask("GET", f"/v1/runs/{run}").status == 404
    service.ask("POST", "/v1/runs", {"run": run})
    key = service.ask("POST", "/v1/keys", call).body["key"]
    assert service.begin(run, arguments=call["arguments"]).body["key"] == key


def test_effects_are_listed_by_state_tool_and_run_a_page_at_a_time(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    grants = [service.begin(run, tool, {"n": n}) for n in range(5)]
    service.report("commit", grants[0], result=0)
    first = service.ask("GET", f"/v1/effects?run={run}&limit=3").body
    second = service.ask("GET", f"/v1/effects?run={run}&limit=3&after={first['next']}").body
    assert [item["step"] for item in first["items"] + second["items"]] == [5, 4, 3, 2, 1]
    assert second["next"] is None
    assert len(service.ask("GET", f"/v1/effects?tool={tool}&state=executing").body["items"]) == 4
    settled = service.ask("GET", f"/v1/effects?tool={tool}&state=succeeded").body["items"]
    assert [item["key"] for item in settled] == [grants[0].body["key"]]


def test_the_sweep_shows_doubt_without_anybody_asking(service: ServiceProcess, run: str) -> None:
    service.begin(run, lease_seconds=1)
    deadline = time.monotonic() + 15
    listed: list[dict[str, object]] = []
    while not listed and time.monotonic() < deadline:
        listed = service.ask("GET", f"/v1/effects?run={run}&state=in_doubt").body["items"]
    assert [item["state"] for item in listed] == ["in_doubt"]


def test_the_service_is_alive_ready_and_describes_itself(service: ServiceProcess) -> None:
    assert service.ask("GET", "/health/live").body == {"status": "live"}
    assert service.ask("GET", "/health/ready").body == {"status": "ready"}
    schema = service.ask("GET", "/schema/openapi.json").body
    begin = schema["paths"]["/v1/effects"]["post"]
    assert set(begin["responses"]) == {
        "200",
        "201",
        "202",
        "400",
        "401",
        "403",
        "404",
        "409",
        "410",
        "413",
        "415",
        "422",
        "503",
    }
    body = begin["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert body == "#/components/schemas/BeginRequest"
    assert schema["components"]["schemas"]["BeginRequest"]["required"] == ["tool", "arguments", "attempt"]
