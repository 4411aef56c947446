"""A tool is declared anew while runs are open and effects execute: who obeys what."""

import time
from typing import Any

import pytest

from tests.integration.test_registry import declare
from tests.service import Reply, ServiceProcess


def code(reply: Reply) -> str:
    return str(reply.body["decision"]) if reply.status < 300 else reply.code


def when_its_lease_has_ended(service: ServiceProcess, run: str | None, tool: str, **fields: Any) -> str:
    """Begin beside an attempt, wait until its lease has run out, and begin anew where one may; return the answer."""
    heard = service.begin(run, tool, wait_seconds=20, **fields)
    return code(service.begin(run, tool, **fields)) if code(heard) == "retry-later" else code(heard)


def test_a_key_rule_that_changes_while_a_run_is_open_is_for_later_runs(service: ServiceProcess, run: str) -> None:
    tool, later = f"tool-{run}", f"later-{run}"
    declare(service, tool)
    first = service.begin(run, tool, {"to": "bob", "note": "a"})
    service.report("commit", first, result=1)
    declare(service, tool, key={"rule": "step"}, arguments={"content": ["/note"]})
    same = service.begin(run, tool, {"to": "bob", "note": "a"})
    assert (same.body["decision"], same.body["key"], same.body["tool_version"]) == ("replay", first.body["key"], 1)
    other = service.begin(run, tool, {"to": "bob", "note": "b"})
    assert (other.body["decision"], other.body["tool_version"]) == ("execute", 1)
    unnamed = service.begin(later, tool, {"to": "bob", "note": "a"})
    assert (unnamed.status, "to be named by a step" in unnamed.body["detail"]) == (400, True)
    named = service.begin(later, tool, {"to": "bob", "note": "a"}, step=1)
    assert (named.body["decision"], named.body["tool_version"]) == ("execute", 2)


def test_a_class_that_is_lowered_while_an_effect_executes_is_for_new_effects(service: ServiceProcess, run: str) -> None:
    tool, later = f"tool-{run}", f"later-{run}"
    declare(service, tool)
    executing = service.begin(run, tool, lease_seconds=1)
    declare(service, tool, class_="idempotent")
    service.begin(later, tool, lease_seconds=1)
    assert when_its_lease_has_ended(service, run, tool) == "outcome-in-doubt"
    assert when_its_lease_has_ended(service, later, tool) == "execute"
    shown = service.ask("GET", f"/v1/effects/{executing.body['key']}").body
    assert (shown["state"], shown["tool_version"]) == ("in_doubt", 1)


def test_the_sweep_keeps_the_stricter_class_as_well(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    declare(service, tool)
    executing = service.begin(run, tool, lease_seconds=1)
    declare(service, tool, class_="idempotent")
    listed: list[dict[str, Any]] = []
    until = time.monotonic() + 15
    while not listed and time.monotonic() < until:
        listed = service.ask("GET", f"/v1/effects?run={run}&state=in_doubt").body["items"]
    assert [item["key"] for item in listed] == [executing.body["key"]]


@pytest.mark.parametrize("lower", ["idempotent", "read"])
def test_an_attempt_that_does_not_know_leaves_doubt_although_its_class_was_lowered(
    service: ServiceProcess, run: str, lower: str
) -> None:
    tool = f"tool-{run}"
    declare(service, tool)
    grant = service.begin(run, tool)
    declare(service, tool, class_=lower)
    error = {"type": "TimeoutError", "message": "no answer"}
    assert service.report("fail", grant, kind="unknown", error=error).body["state"] == "in_doubt"
    assert code(service.begin(run, tool)) == "outcome-in-doubt"
    assert service.report("commit", grant, result={"id": 7}).body["state"] == "succeeded"
    assert service.begin(run, tool).body["outcome"]["result"] == {"id": 7}


def test_an_effect_of_a_business_key_keeps_the_class_that_it_began_under_in_all_runs(
    service: ServiceProcess, run: str
) -> None:
    tool, invoice, voucher = f"tool-{run}", f"invoice-{run}", f"voucher-{run}"
    declare(service, tool)
    service.begin(None, tool, business_key=invoice, lease_seconds=1)
    declare(service, tool, class_="idempotent")
    service.begin(None, tool, business_key=voucher, lease_seconds=1)
    declare(service, tool, class_="idempotent", attempts=9)
    for later in (None, f"later-{run}"):
        assert when_its_lease_has_ended(service, later, tool, business_key=invoice) == "outcome-in-doubt"
    assert when_its_lease_has_ended(service, None, tool, business_key=voucher) == "execute"


def test_an_effect_of_a_tool_that_nobody_had_declared_began_as_a_side_effect(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    service.begin(run, tool, lease_seconds=1)
    declare(service, tool, class_="idempotent", declared_by="code")
    assert when_its_lease_has_ended(service, run, tool) == "outcome-in-doubt"


def test_a_class_that_is_raised_while_an_effect_executes_is_for_all_effects(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    declare(service, tool, class_="idempotent")
    service.begin(run, tool, lease_seconds=1)
    declare(service, tool, class_="side_effect")
    assert when_its_lease_has_ended(service, run, tool) == "outcome-in-doubt"
