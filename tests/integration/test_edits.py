"""What a person puts in the place of the arguments that were asked for: it runs as it is written, and once."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.approving import APPROVED, approval, decide, declared
from tests.service import Reply, ServiceProcess

ABOVE_50: dict[str, Any] = {"when": "arguments.amount > `50`"}


def cancel(service: ServiceProcess, awaiting: Reply, **said: Any) -> Reply:
    """Take the approval back that a begin awaits, or awaited."""
    return service.ask("POST", f"/v1/approvals/{awaiting.body['approval']}/cancel", {"reason": "wrong"} | said)


def test_of_an_edit_and_a_call_of_the_same_arguments_that_needs_nobody_one_runs(
    service: ServiceProcess, run: str
) -> None:
    tool = declared(service, approval=ABOVE_50)
    with ThreadPoolExecutor(2) as pool:
        for number in range(15):
            case = f"{run}-{number}"
            waiting = service.begin(case, tool, {"amount": 100})
            first = pool.submit(decide, service, waiting, arguments={"amount": 40})
            second = pool.submit(service.begin, case, tool, {"amount": 40})
            edited, begun = first.result(), second.result()
            assert (edited.status, begun.status) in ((200, 201), (409, 201))
            again = service.begin(case, tool, {"amount": 100})
            if edited.status == 200:
                assert (again.code, again.body["key"]) == ("in-progress", begun.body["key"])
            else:
                assert (edited.code, edited.body["key"], again.status) == ("edit-refused", begun.body["key"], 202)


def test_an_edit_to_what_differs_in_content_only_is_that_effect_too(service: ServiceProcess, run: str) -> None:
    tool = declared(service, approval=ABOVE_50, arguments={"content": ["/text"]})
    waiting = service.begin(run, tool, {"amount": 100, "text": "a"})
    assert decide(service, waiting, arguments={"amount": 40, "text": "b"}).status == 200
    begun = service.begin(run, tool, {"amount": 40, "text": "c"})
    assert (begun.status, begun.body["key"]) == (201, waiting.body["key"])
    assert begun.body["arguments"] == {"amount": 40, "text": "b"}


def test_an_edit_to_what_is_over_is_taken_and_what_was_edited_gives_way_when_it_is_over(
    service: ServiceProcess, run: str
) -> None:
    tool = declared(service, approval=ABOVE_50, repeat="allow")
    keys = []
    for _ in range(3):
        begun = service.begin(run, tool, {"amount": 40})
        assert service.report("commit", begun, result=1).status == 200
        waiting = service.begin(run, tool, {"amount": 100})
        assert decide(service, waiting, arguments={"amount": 40}).status == 200
        edited = service.begin(run, tool, {"amount": 40})
        assert edited.body["key"] == waiting.body["key"]
        assert service.report("commit", edited, result=2).status == 200
        keys += [begun.body["key"], edited.body["key"]]
    assert len(set(keys)) == 6


@pytest.mark.parametrize(
    ("arguments", "asked", "later"),
    [
        ({"ignored": ["/memo"]}, {"to": "bob", "memo": "salary"}, {"to": "bob", "memo": "a gift"}),
        ({"normalisers": {"/to": "trim_casefold"}}, {"to": "Bob"}, {"to": " bOB "}),
    ],
)
def test_what_is_approved_runs_as_it_is_written_whatever_names_nothing(
    service: ServiceProcess, run: str, arguments: Any, asked: Any, later: Any
) -> None:
    tool = declared(service, arguments=arguments)
    decide(service, service.begin(run, tool, asked))
    granted = service.begin(run, tool, later)
    assert (granted.status, granted.body["arguments"]) == (201, asked)
    other = f"{run}-edited"
    waiting = service.begin(other, tool, asked)
    assert decide(service, waiting, arguments=later).body["edited"] == later
    granted = service.begin(other, tool, asked)
    assert (granted.status, granted.body["arguments"]) == (201, later)


def test_a_redacted_argument_of_what_was_approved_is_the_callers_own(service: ServiceProcess, run: str) -> None:
    tool = declared(service, redacted=["/card"], arguments={"ignored": ["/memo"]})
    decide(service, service.begin(run, tool, {"card": "4242", "memo": "a"}))
    granted = service.begin(run, tool, {"card": "4242", "memo": "b"})
    assert (granted.status, granted.body["arguments"]) == (201, {"card": "4242", "memo": "a"})


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        ({"amount": 40}, "/arguments/to"),
        ({"amount": 40, "to": "bob", "cc": "eve"}, "/arguments/cc"),
        ({"amount": "40", "to": "bob"}, "/arguments/amount"),
        ({"amount": True, "to": "bob"}, "/arguments/amount"),
        ({"amount": [40], "to": "bob"}, "/arguments/amount"),
        ({"amount": 40, "to": {"$dt": "2026-01-01T00:00:00Z"}}, "/arguments/to"),
    ],
)
def test_an_edit_that_the_tool_could_not_take_is_refused_with_its_place(
    service: ServiceProcess, run: str, edit: Any, path: str
) -> None:
    waiting = service.begin(run, declared(service), {"amount": 100, "to": "bob"})
    refused = decide(service, waiting, arguments=edit)
    assert (refused.status, refused.code) == (400, "invalid-request")
    assert [error["path"] for error in refused.body["errors"]] == [path]
    assert approval(service, waiting)["state"] == "open"


def test_an_edit_that_claims_no_time_is_refused(service: ServiceProcess, run: str) -> None:
    resource = {"name": "room-${arguments.room}", "start": "/start", "minutes": "/minutes"}
    tool = declared(service, resource=resource)
    asked = {"room": "blue", "start": "2026-01-01T10:00:00Z", "minutes": 30}
    waiting = service.begin(run, tool, asked)
    refused = decide(service, waiting, arguments=asked | {"minutes": -5})
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, "/arguments/minutes")
    assert decide(service, waiting, arguments=asked | {"minutes": 60}).status == 200
    assert service.begin(run, tool, asked).body["arguments"]["minutes"] == 60


def test_an_approval_is_taken_back_until_the_call_has_begun_and_the_next_call_asks_anew(
    service: ServiceProcess, run: str
) -> None:
    tool = declared(service)
    waiting = service.begin(run, tool, {"amount": 100})
    decide(service, waiting, arguments={"amount": 40})
    taken = cancel(service, waiting, by="alice")
    assert (taken.status, taken.body["state"], taken.body["cancelled_by"]) == (200, "cancelled", "alice")
    assert service.ask("GET", f"/v1/effects/{waiting.body['key']}").body["state"] == "pending"
    anew = service.begin(run, tool, {"amount": 100})
    assert (anew.status, anew.body["key"], approval(service, anew)["round"]) == (202, waiting.body["key"], 2)
    assert service.begin(run, tool, {"amount": 40}).body["key"] != waiting.body["key"]
    decide(service, anew)
    granted = service.begin(run, tool, {"amount": 100})
    assert (granted.status, granted.body["arguments"]) == (201, None)
    late = cancel(service, anew)
    assert (late.status, late.code) == (409, "decided-already")
    assert "has begun" in late.body["detail"]


def test_what_was_begun_and_never_sent_is_taken_back(service: ServiceProcess, run: str) -> None:
    tool = declared(service)
    waiting = service.begin(run, tool)
    decide(service, waiting)
    granted = service.begin(run, tool)
    body = {"tool": tool, "arguments": {"to": "bob"}, "run": run, "attempt": granted.body["attempt"]}
    assert service.ask("POST", "/v1/effects/release", body).status == 200
    assert cancel(service, waiting).status == 200
    assert service.begin(run, tool).status == 202


def test_what_a_stricter_rule_wants_is_asked_anew_while_it_waits(service: ServiceProcess, run: str) -> None:
    tool = declared(service)
    waiting = service.begin(run, tool)
    service.ask("PUT", f"/v1/tools/{tool}", APPROVED | {"approval": {"quorum": 2}})
    anew = service.begin(run, tool)
    assert (anew.status, anew.body["quorum"], anew.body["key"]) == (202, 2, waiting.body["key"])
    assert (approval(service, waiting)["state"], approval(service, anew)["round"]) == ("cancelled", 2)
    assert decide(service, waiting).code == "decided-already"
    service.ask("PUT", f"/v1/tools/{tool}", APPROVED)
    assert service.begin(run, tool).body["approval"] == anew.body["approval"]
