"""Release over HTTP: a token that ended gets no lease, however late its begin comes and whatever is over by then."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.forks import until
from tests.integration.test_generations import declare, done
from tests.service import Reply, ServiceProcess


def body(run: str, tool: str, **fields: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": {"to": "bob"}, "run": run, "attempt": str(uuid4())} | fields


def released(service: ServiceProcess, sent: dict[str, Any]) -> Reply:
    answer = service.ask("POST", "/v1/effects/release", sent)
    assert answer.status == 200, answer.body
    return answer


def begun(service: ServiceProcess, sent: dict[str, Any]) -> Reply:
    return service.ask("POST", "/v1/effects", sent)


def test_a_release_takes_what_its_begin_knows_as_the_begin_would(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"switch-{run}", class_="idempotent")
    first = done(service, run, tool)
    sent = body(run, tool, delivered=[first.body["key"]])
    given_up = released(service, sent)
    assert (given_up.body["state"], given_up.body["generation"]) == ("pending", 2)
    late = begun(service, sent)
    assert (late.status, late.code) == (409, "lease-lost")
    assert service.begin(run, tool).body["generation"] == 2


def test_a_token_that_ended_at_a_record_gets_none_of_what_comes_after_it(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"switch-{run}", class_="idempotent")
    first = done(service, run, tool)
    sent = body(run, tool)
    assert released(service, sent).body["state"] == "succeeded"
    assert done(service, run, tool, delivered=[first.body["key"]]).body["generation"] == 2
    late = begun(service, sent)
    assert (late.status, late.body["generation"]) == (200, 1)
    shown = service.ask("GET", f"/v1/effects/{first.body['key']}").body
    assert (shown["state"], shown["fence"], shown["outcome"]) == ("succeeded", 1, {"result": "done"})


@pytest.mark.parametrize("how", ["commit", "rejected"])
def test_a_token_that_ended_within_a_window_gets_no_lease_after_it(service: ServiceProcess, run: str, how: str) -> None:
    tool = declare(service, f"page-{run}", key={"scope": "tenant", "window_seconds": 1})
    first = service.begin(run, tool)
    if how == "commit":
        service.report("commit", first, result="done")
    else:
        service.report("fail", first, kind="rejected", error={"type": "E", "message": "no"})
    sent = body(run, tool)
    released(service, sent)
    until(lambda: service.begin(f"{run}-other", tool).status, 201)
    late = begun(service, sent)
    assert (late.status, late.body["generation"]) == (200, 1)


def test_a_release_that_comes_twice_is_taken_once(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"find-{run}", key={"scope": "tenant"})
    first = done(service, run, tool)
    sent = body(run, tool)
    for _ in range(2):
        assert released(service, sent).body["state"] == "succeeded"
    own = {"attempt": first.body["attempt"]}
    assert released(service, body(run, tool) | own).body["generation"] == 1
    attempts = service.ask("GET", f"/v1/effects/{first.body['key']}").body["attempts"]
    assert [(one["fence"], one["report"]) for one in attempts] == [(0, "released"), (1, "succeeded")]


def test_a_release_beside_its_begin_at_the_end_of_a_window_leaves_no_lease(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"page-{run}", key={"scope": "tenant", "window_seconds": 1})
    done(service, run, tool)
    with ThreadPoolExecutor(2) as pool:
        for number in range(60):
            barrier = Barrier(2)
            sent = body(run, tool)

            def asked(path: str, sent: dict[str, Any] = sent, barrier: Barrier = barrier) -> Reply:
                barrier.wait()
                return service.ask("POST", path, sent)

            begins, releases = pool.map(asked, ("/v1/effects", "/v1/effects/release"))
            assert releases.status == 200, (number, releases.body)
            assert begins.status in (200, 201, 409), (number, begins.body)
            held = service.ask("GET", f"/v1/effects?state=executing&tool={tool}").body["items"]
            assert held == [], (number, begins.body, releases.body)
