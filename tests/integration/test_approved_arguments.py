"""What an approval covers: the effect, the arguments and the version of the tool that a person has seen."""

from typing import Any
from uuid import uuid4

import pytest

from tests.integration.approving import APPROVED, approval, decide, declared
from tests.service import ServiceProcess


@pytest.fixture
def tool(service: ServiceProcess) -> str:
    """A tool that a person must approve."""
    return declared(service)


def test_a_quorum_of_two_is_two_persons_who_mean_the_same(service: ServiceProcess, run: str) -> None:
    tool = declared(service, approval={"quorum": 2})
    waiting = service.begin(run, tool, {"amount": 80})
    assert waiting.body["quorum"] == 2
    assert decide(service, waiting, by="alice", arguments={"amount": 60}).body["state"] == "open"
    assert service.begin(run, tool, {"amount": 80}).status == 202
    words: tuple[dict[str, Any], ...] = ({}, {"arguments": {"amount": 70}})
    for others in words:
        differs = decide(service, waiting, by="bob", **others)
        assert (differs.status, differs.code) == (409, "edit-refused")
    assert decide(service, waiting, by="bob", arguments={"amount": 60}).body["state"] == "approved"
    assert service.begin(run, tool, {"amount": 80}).body["arguments"] == {"amount": 60}


def test_an_approver_may_change_the_arguments_and_these_run_once(service: ServiceProcess, run: str, tool: str) -> None:
    waiting = service.begin(run, tool, {"amount": 100, "to": "bob"})
    edited = decide(service, waiting, arguments={"amount": 80, "to": "bob"})
    assert edited.body["edited"] == {"amount": 80, "to": "bob"}
    granted = service.begin(run, tool, {"amount": 100, "to": "bob"})
    assert (granted.status, granted.body["arguments"]) == (201, {"amount": 80, "to": "bob"})
    assert service.report("commit", granted, result="r-1").status == 200
    for arguments in ({"amount": 100, "to": "bob"}, {"amount": 80, "to": "bob"}):
        again = service.begin(run, tool, arguments)
        assert (again.status, again.body["decision"], again.body["key"]) == (200, "replay", granted.body["key"])
    assert service.begin(run, tool, {"amount": 80, "to": "bob"}, occurrence=2).status == 202


def test_a_call_with_the_edited_arguments_gets_the_lease_of_the_edited_effect(
    service: ServiceProcess, run: str, tool: str
) -> None:
    waiting = service.begin(run, tool, {"amount": 100})
    decide(service, waiting, arguments={"amount": 80})
    granted = service.begin(run, tool, {"amount": 80})
    assert (granted.status, granted.body["key"]) == (201, waiting.body["key"])
    assert granted.body["arguments"] == {"amount": 80}
    assert service.begin(run, tool, {"amount": 100}).code == "in-progress"
    stepped = service.begin(run, tool, {"amount": 100}, step=3)
    decide(service, stepped, arguments={"amount": 70})
    assert service.begin(run, tool, {"amount": 70}, step=3).body["arguments"] == {"amount": 70}


def test_edited_arguments_that_name_another_effect_are_refused_with_its_key(
    service: ServiceProcess, run: str, tool: str
) -> None:
    done = service.begin(run, tool, {"amount": 80})
    decide(service, done)
    assert service.report("commit", service.begin(run, tool, {"amount": 80}), result=1).status == 200
    waiting = service.begin(run, tool, {"amount": 100})
    collided = decide(service, waiting, arguments={"amount": 80})
    assert (collided.status, collided.code, collided.body["key"]) == (409, "edit-refused", done.body["key"])
    other = service.begin(run, tool, {"amount": 120})
    assert decide(service, other, arguments={"amount": 60}).status == 200
    collided = decide(service, waiting, arguments={"amount": 60})
    assert (collided.status, collided.code, collided.body["key"]) == (409, "edit-refused", other.body["key"])
    assert decide(service, waiting, arguments={"amount": 100}).body["edited"] is None


def test_what_runs_is_what_was_approved_in_whatever_words_the_call_comes_back(
    service: ServiceProcess, run: str
) -> None:
    tool = declared(service, arguments={"content": ["/text"]})
    waiting = service.begin(run, tool, {"to": "bob", "text": "Dear Bob"})
    assert service.begin(run, tool, {"to": "bob", "text": "Hi!"}).body["approval"] == waiting.body["approval"]
    assert approval(service, waiting)["arguments"] == {"to": "bob", "text": "Dear Bob"}
    decide(service, waiting)
    granted = service.begin(run, tool, {"to": "bob", "text": "Send me all your money"})
    assert (granted.status, granted.body["arguments"]) == (201, {"to": "bob", "text": "Dear Bob"})


@pytest.mark.parametrize("verdict", ["open", "approved"])
def test_with_changed_arguments_the_call_is_refused_and_what_was_approved_stays(
    service: ServiceProcess, run: str, tool: str, verdict: str
) -> None:
    waiting = service.begin(run, tool, {"amount": 80, "to": "bob"}, business_key=run)
    if verdict == "approved":
        decide(service, waiting)
    changed = service.begin(run, tool, {"amount": 8000, "to": "bob"}, business_key=run)
    assert (changed.status, changed.code, changed.body["paths"]) == (422, "arguments-changed", ["/arguments/amount"])
    assert approval(service, waiting)["state"] == verdict


def test_an_approval_of_one_version_of_a_tool_does_not_cover_another(service: ServiceProcess, tool: str) -> None:
    key = f"order-{uuid4().hex}"
    waiting = service.begin(None, tool, business_key=key)
    decide(service, waiting)
    service.ask("PUT", f"/v1/tools/{tool}", APPROVED | {"lease_seconds": 60})
    anew = service.begin(None, tool, business_key=key)
    assert (anew.status, anew.body["key"]) == (202, waiting.body["key"])
    assert (approval(service, waiting)["state"], approval(service, anew)["round"]) == ("cancelled", 2)


def test_a_person_sees_no_redacted_argument_and_approves_the_rest_as_it_is(service: ServiceProcess, run: str) -> None:
    tool = declared(service, redacted=["/card"])
    asked = {"amount": 100, "card": "4242"}
    waiting = service.begin(run, tool, asked)
    shown = approval(service, waiting)
    assert (shown["arguments"], "4242" in shown["summary"]) == ({"amount": 100, "card": "[redacted]"}, False)
    edited = decide(service, waiting, arguments={"amount": 80, "card": "[redacted]"})
    assert (edited.status, edited.code) == (409, "edit-refused")
    assert decide(service, waiting, arguments={"amount": 100, "card": "[redacted]"}).body["edited"] is None
    assert service.begin(run, tool, asked).body["arguments"] is None
