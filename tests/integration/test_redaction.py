"""What a tool declares as redacted reaches neither the database nor a log nor a problem, and calls still compare."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.leaks import places_of
from tests.service import Reply, ServiceProcess

SECRET = "sesam-4111-1111"
OTHER = "sesam-5500-0000"
ERROR = {"type": "Busy", "message": "no"}
Find = Callable[[str], list[str]]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def own(database_url: str, log: Path) -> Iterator[ServiceProcess]:
    """A service of the test's own, whose log is kept."""
    with log.open("wb") as errors, ServiceProcess(database_url, errors=errors.fileno()) as process:
        yield process


@pytest.fixture
def find(database_url: str, tmp_path: Path, log: Path) -> Find:
    """Say where a text is found: in the log, in the database's files, in its rows."""

    def anywhere(text: str) -> list[str]:
        return places_of(text, database_url, [log, *tmp_path.glob("guard.db*")])

    return anywhere


class Tool:
    """A tool that takes a secret."""

    def __init__(self, service: ServiceProcess, **declaration: object) -> None:
        self.service = service
        self.name = f"pay-{uuid4().hex[:12]}"
        self.declare(**declaration)

    def declare(self, **declaration: object) -> None:
        declared = {"redacted": ["/card", "/people/*/pin"], "settle_seconds": 0, "backoff_seconds": 0} | declaration
        reply = self.service.ask("PUT", f"/v1/tools/{self.name}", declared)
        assert reply.status == 200, reply.body

    def begin(self, card: object = SECRET, run: str | None = "r", **fields: Any) -> Reply:
        arguments = {"to": "bob", "card": card, "people": [{"pin": f"{SECRET}-pin"}]} | fields.pop("more", {})
        return self.service.begin(run, self.name, arguments, **fields)

    def stored(self, reply: Reply) -> Any:
        return self.service.ask("GET", f"/v1/effects/{reply.body['key']}").body["arguments"]


STORED = {"to": "bob", "card": "[redacted]", "people": [{"pin": "[redacted]"}]}


def test_a_secret_reaches_nothing_through_a_whole_life(own: ServiceProcess, find: Find) -> None:
    tool = Tool(own)
    begun = tool.begin()
    assert begun.body["arguments"] is None
    assert tool.stored(begun) == STORED
    own.report("renew", begun)
    own.report("fail", begun, kind="not_applied", error=ERROR)
    again = tool.begin()
    own.report("fail", again, kind="unknown", error=ERROR)
    settle = {"as": "not_applied", "fence": 2, "reason": "asked"}
    assert own.ask("POST", f"/v1/effects/{begun.body['key']}/resolve", settle).status == 200
    third = tool.begin()
    own.report("commit", third, result="ok")
    assert tool.begin().body["decision"] == "replay"
    assert tool.begin(OTHER, business_key=tool.name).status == 201
    refused = tool.begin(run="other", business_key=tool.name)
    assert refused.code == "arguments-changed"
    assert SECRET not in str(refused.body)
    assert OTHER not in str(refused.body)
    assert find("bob")
    assert find("[redacted]")
    assert find(SECRET) == []
    assert find(OTHER) == []
    own.kill()
    assert find(SECRET) == []


def test_a_secret_reaches_nothing_while_a_person_is_asked(own: ServiceProcess, find: Find) -> None:
    tool = Tool(own, approval={"four_eyes": False, "summary": "pay ${arguments.to} with ${arguments.card}"})
    waiting = tool.begin()
    assert waiting.body["decision"] == "await_approval"
    approval = own.ask("GET", f"/v1/approvals/{waiting.body['approval']}")
    assert approval.status == 200
    assert SECRET not in str(approval.body)
    assert approval.body["arguments"] == STORED
    assert SECRET not in str(waiting.body)
    decide = f"/v1/approvals/{waiting.body['approval']}/decide"
    edited = own.ask("POST", decide, {"verdict": "approve", "by": "eve", "arguments": STORED | {"to": "eve"}})
    assert (edited.status, edited.code) == (409, "edit-refused")
    approved = own.ask("POST", decide, {"verdict": "approve", "by": "eve", "arguments": STORED})
    assert approved.status == 200, approved.body
    granted = tool.begin()
    assert granted.status == 201
    assert granted.body["arguments"] in (None, {"to": "bob", "card": SECRET, "people": [{"pin": f"{SECRET}-pin"}]})
    assert find(SECRET) == []


def test_another_secret_is_another_call_and_its_place_is_named(service: ServiceProcess) -> None:
    tool = Tool(service)
    first = tool.begin(business_key=tool.name)
    assert tool.begin(business_key=tool.name, run="r2").code == "in-progress"
    changed = tool.begin(OTHER, business_key=tool.name)
    assert (changed.status, changed.code) == (422, "arguments-changed")
    assert changed.body["paths"] == ["/arguments/card", "/arguments/people/0/pin"]
    both = tool.begin(OTHER, business_key=tool.name, more={"to": "eve"})
    assert both.body["paths"] == ["/arguments/to"]
    assert tool.begin(OTHER).body["key"] != first.body["key"]


def test_a_redacted_content_drifts_by_its_place(service: ServiceProcess) -> None:
    tool = Tool(service, arguments={"content": ["/card"]})
    service.report("commit", tool.begin(), result="ok")
    assert tool.begin(OTHER).body["drift"] == {"content": ["/card", "/people/0/pin"]}
    assert tool.begin().body["drift"] is None


def test_recorded_arguments_are_run_again_with_the_callers_secret(service: ServiceProcess) -> None:
    tool = Tool(service, **{"class": "idempotent", "arguments": {"content": ["/note", "/people"]}})
    begun = tool.begin(more={"note": "first"})
    service.report("fail", begun, kind="unknown", error=ERROR)
    again = tool.begin(more={"note": "second"})
    assert again.status == 201
    assert again.body["arguments"] == {
        "to": "bob", "card": SECRET, "people": [{"pin": f"{SECRET}-pin"}], "note": "first"
    }  # fmt: skip
    service.report("fail", again, kind="unknown", error=ERROR)
    lacking = tool.begin(more={"people": []})
    assert (lacking.status, lacking.code) == (422, "arguments-changed")
    assert lacking.body["paths"] == ["/arguments/people/0/pin"]


def test_a_record_of_another_version_agrees_with_an_honest_call(service: ServiceProcess) -> None:
    tool = Tool(service)
    service.report("commit", tool.begin(business_key=tool.name, run=None), result="ok")
    declarations: list[dict[str, object]] = [{"redacted": []}, {"redacted": ["/to"]}, {"lease_seconds": 20}]
    for declaration in declarations:
        tool.declare(**declaration)
        replayed = tool.begin(business_key=tool.name, run=None)
        assert (replayed.status, replayed.body.get("decision")) == (200, "replay"), declaration
        assert replayed.body["drift"] is None
    assert tool.begin(business_key=tool.name, run=None, more={"to": "eve"}).code == "arguments-changed"


def test_todays_redaction_counts_in_a_run_that_began_before_it(own: ServiceProcess, find: Find) -> None:
    tool = Tool(own, redacted=[])
    tool.begin("harmless", more={"people": []})
    tool.declare()
    assert tool.stored(tool.begin(more={"people": []}))["card"] == "[redacted]"
    assert find(SECRET) == []


def test_a_secret_names_no_resource_and_no_time(own: ServiceProcess, find: Find) -> None:
    rule = {"name": "safe-${arguments.card}", "start": "/card", "minutes": "/minutes"}
    refused = own.ask("PUT", "/v1/tools/rent", {"redacted": ["/card"], "resource": rule})
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, "/resource/name")
    assert "it needs what is redacted, at /card" in refused.body["errors"][0]["message"]
    own.begin("harmless", "rent", {"card": "none"})
    rent = {"card": SECRET, "start": "2026-10-12T14:00:00Z", "minutes": 5}
    named = own.ask("PUT", "/v1/tools/rent", {"resource": rule | {"start": "/start"}})
    assert named.status == 200
    own.begin("r1", "rent", rent | {"card": "blue"})
    redacted = own.ask("PUT", "/v1/tools/rent", {"redacted": ["/card"], "resource": None})
    assert redacted.status == 200
    begun = own.begin("r1", "rent", rent)
    assert begun.status == 201
    (hold,) = own.ask("GET", f"/v1/holds?key={begun.body['key']}").body["items"]
    assert hold["resource"] == "safe-[redacted]"
    assert find(SECRET) == []


NAMELESS = [
    (["/people/*/pin"], {"people": {"bob": {"pin": SECRET}}}, {"people": {"bob": {"pin": "[redacted]"}}}),
    (["/people/*/pin"], {"people": {"pin": SECRET, "n": 1}}, {"people": {"pin": "[redacted]", "n": "[redacted]"}}),
    (["/people/*/pin"], {"people": [["bob", SECRET]]}, {"people": ["[redacted]"]}),
    (["/people/*"], {"people": {"bob": SECRET}}, {"people": {"bob": "[redacted]"}}),
    (["/card/number"], {"card": [SECRET, 1]}, {"card": "[redacted]"}),
    (["/card/number"], {"card": SECRET}, {"card": "[redacted]"}),
]


def test_a_secret_in_another_shape_than_the_path_expects_is_not_stored(own: ServiceProcess, find: Find) -> None:
    for number, (redacted, arguments, stored) in enumerate(NAMELESS):
        own.ask("PUT", f"/v1/tools/pay-{number}", {"redacted": redacted})
        begun = own.begin("r1", f"pay-{number}", arguments)
        assert own.ask("GET", f"/v1/effects/{begun.body['key']}").body["arguments"] == stored
        assert own.begin("r1", f"pay-{number}", arguments).code == "in-progress"
    assert find(SECRET) == []
