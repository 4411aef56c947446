"""The registry over HTTP: what holds, what held, what is refused, and several declarations at once."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.service import Reply, ServiceProcess

ASKS = {"url": "https://pay.example/${key}", "applied": "status == `200`", "not_applied": "status == `404`"}


def declare(service: ServiceProcess, tool: str, **declaration: Any) -> dict[str, Any]:
    reply = service.ask("PUT", f"/v1/tools/{tool}", {name.rstrip("_"): value for name, value in declaration.items()})
    assert reply.status == 200, reply.body
    body: dict[str, Any] = reply.body
    return body


def declaration_at(service: ServiceProcess, tool: str, query: str) -> Any:
    reply = service.ask("GET", f"/v1/tools/{tool}?{query}")
    assert reply.status == 200, reply.body
    return reply.body["version"]


def shifted(instant: str, **by: float) -> str:
    return (datetime.fromisoformat(instant) + timedelta(**by)).isoformat().replace("+00:00", "Z")


def test_any_past_version_is_read_by_its_number_and_by_an_instant(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    first = declare(service, tool, attempts=1)
    second = declare(service, tool, attempts=2, declared_by="person")
    assert declare(service, tool, attempts=1)["version"] == 1
    versions = service.ask("GET", f"/v1/tools/{tool}/versions").body["items"]
    assert [(held["version"], held["declared_by"], len(held["terms"])) for held in versions] == [
        (2, "person", 1), (1, "person", 2),
    ]  # fmt: skip
    (second_term,), (first_term, present) = versions[0]["terms"], versions[1]["terms"]
    assert first_term == {"since": first["declared_at"], "until": second["declared_at"]}
    assert second_term == {"since": second["declared_at"], "until": present["since"]}
    assert present["until"] is None
    assert versions[1]["digest"] == first["digest"]
    assert declaration_at(service, tool, "version=2") == 2
    assert declaration_at(service, tool, f"at={first['declared_at']}") == 1
    assert declaration_at(service, tool, f"at={second['declared_at']}") == 2
    assert declaration_at(service, tool, f"at={shifted(present['since'], microseconds=-1)}") == 2
    assert declaration_at(service, tool, f"at={shifted(present['since'], days=1)}") == 1
    then = service.ask("GET", f"/v1/tools?at={second['declared_at']}").body["items"]
    assert [item["version"] for item in then if item["name"] == tool] == [2]
    long_ago = service.ask("GET", "/v1/tools?at=2000-01-01T00:00:00Z")
    assert long_ago.body == {"items": []}


def test_where_nothing_held_the_answer_says_so(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    assert service.ask("GET", f"/v1/tools/{tool}/versions").code == "not-found"
    first = declare(service, tool)
    before = service.ask("GET", f"/v1/tools/{tool}?at={shifted(first['declared_at'], microseconds=-1)}")
    assert (before.status, "nobody had declared" in before.body["detail"]) == (404, True)
    later = service.ask("GET", f"/v1/tools/{tool}?version=2")
    assert (later.status, f"Tool '{tool}' has no version 2." in later.body["detail"]) == (404, True)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("version=0", "version"),
        ("version=x", "version"),
        ("at=yesterday", "at"),
        ("at=2026-10-12T14:00:00", "at"),
        ("version=1&at=2026-10-12T14:00:00Z", ""),
        ("when=1", "when"),
    ],
)
def test_a_question_about_the_past_that_is_none_is_refused(service: ServiceProcess, query: str, place: str) -> None:
    reply = service.ask("GET", f"/v1/tools/pay?{query}")
    assert reply.status == 400
    assert reply.body["errors"][0]["path"].strip("/") == place


def test_a_hint_and_code_lower_nothing_that_a_person_set(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    declare(service, tool, class_="idempotent", attempts=7)
    for by in ("code", "hint"):
        kept = declare(service, tool, class_="read", attempts=1, declared_by=by)
        assert (kept["version"], kept["declaration"]["class"], kept["declaration"]["attempts"]) == (1, "idempotent", 7)
    raised = declare(service, tool, class_="side_effect", attempts=1, declared_by="hint")
    assert (raised["version"], raised["declaration"]["attempts"]) == (2, 7)
    assert (raised["declaration"]["class"], raised["declaration"]["declared_by"]) == ("side_effect", "person")


@pytest.mark.parametrize(
    ("declaration", "places"),
    [
        ({"approval": {"when": "arguments.amount >"}}, ["/approval/when"]),
        ({"probe": {**ASKS, "applied": "("}}, ["/probe/applied"]),
        ({"probe": {**ASKS, "url": "https://me:secret@pay.example/"}}, ["/probe/url"]),
        ({"probe": ASKS, "declared_by": "code"}, ["/probe"]),
        ({"probe": ASKS, "declared_by": "hint"}, ["/probe"]),
        ({"compensation": {"tool": "refund", "arguments": {"id": ["${result.}"]}}}, ["/compensation/arguments/id/0"]),
        ({"arguments": {"content": ["/a"], "ignored": ["/a"]}}, ["/arguments/ignored/0"]),
        ({"arguments": {"content": ["title"]}}, ["/arguments/content/0"]),
        ({"redacted": ["/card", "card"]}, ["/redacted/1"]),
        ({"arguments": {"normalisers": {"/to": "emial"}}}, ["/arguments/normalisers/~1to"]),
    ],
)
def test_a_declaration_that_cannot_be_carried_out_is_refused_by_its_place_and_nothing_is_stored(
    service: ServiceProcess, run: str, declaration: dict[str, Any], places: list[str]
) -> None:
    tool = f"tool-{run}"
    reply = service.ask("PUT", f"/v1/tools/{tool}", declaration)
    assert (reply.status, [error["path"] for error in reply.body["errors"]]) == (400, places)
    assert service.ask("GET", f"/v1/tools/{tool}").status == 404


def test_a_tool_does_not_take_itself_back(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    reply = service.ask("PUT", f"/v1/tools/{tool}", {"compensation": {"tool": tool}})
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, "/compensation/tool")


def planned(reply: Reply) -> list[tuple[str, str, int | None]]:
    assert reply.status == 200, reply.body
    return [(item["name"], item["change"], item["version"]) for item in reply.body["items"]]


def test_a_plan_says_what_would_hold_and_changes_nothing(service: ServiceProcess, run: str) -> None:
    new, old, said, wrong = (f"{word}-{run}" for word in ("new", "old", "said", "wrong"))
    declare(service, old, attempts=1)
    declare(service, old, attempts=2, approval={})
    declare(service, said, attempts=3)
    tools = {
        new: {"class": "read"},
        old: {"attempts": 1},
        said: {"attempts": 9, "declared_by": "hint"},
        wrong: {"approval": {"when": "="}, "compensation": {"tool": wrong}},
    }
    plan = service.ask("POST", "/v1/tools/plan", {"tools": tools})
    assert planned(plan) == [(new, "new", 1), (old, "again", 1), (said, "unchanged", 1), (wrong, "refused", None)]
    items = plan.body["items"]
    assert (items[1]["before"]["version"], items[1]["lowered"]) == (2, ["/approval"])
    assert items[2]["declaration"]["attempts"] == 3
    assert [error["path"] for error in items[3]["errors"]] == ["/approval/when", "/compensation/tool"]
    assert service.ask("GET", f"/v1/tools/{new}").status == 404
    assert service.ask("GET", f"/v1/tools/{old}").body["version"] == 2


def test_all_declarations_are_applied_or_none(service: ServiceProcess, run: str) -> None:
    one, other = f"one-{run}", f"other-{run}"
    wrong = {one: {"class": "read"}, other: {"probe": {**ASKS, "echo": "["}}}
    refused = service.ask("POST", "/v1/tools/apply", {"tools": wrong})
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, f"/tools/{other}/probe/echo")
    malformed = service.ask("POST", "/v1/tools/apply", {"tools": {one: {}, other: {"attempts": 0}}})
    assert (malformed.status, malformed.body["errors"][0]["path"]) == (400, f"/tools/{other}/attempts")
    assert service.ask("GET", f"/v1/tools/{one}").status == 404
    right = {"tools": {one: {"class": "read"}, other: {"attempts": 2}}, "seen": {one: 0, other: 0}}
    assert planned(service.ask("POST", "/v1/tools/apply", right)) == [(one, "new", 1), (other, "new", 1)]
    assert planned(service.ask("POST", "/v1/tools/apply", right)) == [(one, "unchanged", 1), (other, "unchanged", 1)]
    assert service.ask("GET", f"/v1/tools/{other}").body["declaration"]["attempts"] == 2


def test_a_plan_that_somebody_overtook_is_not_applied(service: ServiceProcess, run: str) -> None:
    one, other = f"one-{run}", f"other-{run}"
    declare(service, other, attempts=1)
    seen = {one: 0, other: 1}
    declare(service, other, attempts=2)
    wanted = {"tools": {one: {}, other: {"attempts": 3}}, "seen": seen}
    reply = service.ask("POST", "/v1/tools/apply", wanted)
    assert (reply.status, reply.code) == (409, "registry-changed")
    assert f"{other} is at version 2" in reply.body["detail"]
    assert service.ask("GET", f"/v1/tools/{one}").status == 404


@pytest.mark.parametrize("name", ["plan", "apply", "versions"])
def test_a_tool_may_be_called_like_a_verb(service: ServiceProcess, name: str) -> None:
    assert service.ask("PUT", f"/v1/tools/{name}", {"attempts": 2}).status == 200
    assert service.ask("GET", f"/v1/tools/{name}").body["name"] == name
    assert service.ask("GET", f"/v1/tools/{name}/versions").body["items"][0]["name"] == name


@pytest.mark.parametrize("body", [{"tools": {}}, {}, {"tools": {"a/b": {}}}, {"tools": {"a": {}}, "more": 1}])
def test_a_plan_of_nothing_is_refused(service: ServiceProcess, body: object) -> None:
    assert service.ask("POST", "/v1/tools/plan", json.loads(json.dumps(body))).status == 400
