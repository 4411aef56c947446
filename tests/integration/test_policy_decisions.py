"""`/v1/runs/{run}/forks` and `/v1/policy/decisions`: how forks are made, and what is said of calls nobody makes."""

from typing import Any

import pytest

from tests.integration.forks import Recorded, paid, said
from tests.service import Reply, ServiceProcess


@pytest.fixture
def made(service: ServiceProcess, run: str) -> Recorded:
    """A run that paid Ann before the cut, and Bob after it."""
    return paid(service, run, "ann", "bob")


def ask(made: Recorded, *calls: object, **said_of_them: object) -> Reply:
    """Ask what calls may do."""
    named = [{"tool": made.tool, "arguments": {"to": call}} if isinstance(call, str) else call for call in calls]
    return made.service.ask("POST", "/v1/policy/decisions", {"calls": named} | said_of_them)


def rulings(reply: Reply) -> list[tuple[str, str]]:
    """Return decision and rule of each call."""
    assert reply.status == 200, reply.body
    return [(one["decision"], one["rule"]) for one in reply.body["decisions"]]


def test_a_fork_says_of_what_and_on_which_terms_it_is(made: Recorded) -> None:
    live = [{"tool": "mail", "when": "arguments.to == 'ann'", "calls": 2}, {"tool": made.tool}]
    name = made.fork("full", at=1, reads="recorded", live=live)
    view = made.service.ask("GET", f"/v1/runs/{name}").body
    terms = {key: view[key] for key in ("run", "state", "effects", "fork_of", "at", "reads", "live")}
    assert terms == {
        "run": name,
        "state": "open",
        "effects": 1,
        "fork_of": made.run,
        "at": 1,
        "reads": "recorded",
        "live": live,
    }
    assert made.service.ask("POST", "/v1/runs", {"run": name}).body == view
    assert "fork_of" not in made.service.ask("GET", f"/v1/runs/{made.run}").body


def test_the_same_terms_find_the_same_fork_and_others_are_refused(made: Recorded) -> None:
    path = f"/v1/runs/{made.run}/forks"
    terms: dict[str, Any] = {"fork": f"{made.run}-f", "at": 1, "live": [{"tool": "mail"}]}
    first = made.service.ask("POST", path, terms)
    assert made.service.ask("POST", path, terms).body == first.body
    others: list[dict[str, Any]] = [{"at": 2}, {"reads": "recorded"}, {"live": []}]
    for other in (*others, {"live": [{"tool": "mail", "calls": 1}]}):
        refused = made.service.ask("POST", path, terms | other)
        assert (refused.status, refused.code) == (409, "name-taken")
    taken = made.service.ask("POST", path, {"fork": made.run, "at": 1})
    assert (taken.status, taken.code) == (409, "name-taken")
    assert "is no fork" in taken.body["detail"]


@pytest.mark.parametrize(
    ("terms", "place"),
    [
        ({"at": 3}, "/at"),
        ({"at": -1}, "/at"),
        ({}, "/at"),
        ({"at": 1, "reads": "stub"}, "/reads"),
        ({"at": 1, "live": [{"tool": "mail", "calls": 0}]}, "/live/0/calls"),
        ({"at": 1, "live": [{"tool": "pay"}, {"tool": "mail", "when": "a ||"}]}, "/live/1/when"),
        ({"at": 1, "live": [{"tool": "pay"}, {"tool": "pay"}]}, ""),
        ({"at": 1, "live": [{"tool": "pay", "unless": "x"}]}, "/live/0/unless"),
        ({"at": 1, "fork": "a/b"}, "/fork"),
    ],
)
def test_terms_that_cannot_be_are_refused_with_their_place(
    made: Recorded, terms: dict[str, object], place: str
) -> None:
    name = f"{made.run}-bad"
    reply = made.service.ask("POST", f"/v1/runs/{made.run}/forks", {"fork": name} | terms)
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, place)
    assert made.service.ask("GET", f"/v1/runs/{name}").status == 404


def test_a_run_that_nobody_opened_is_not_forked(service: ServiceProcess, run: str) -> None:
    reply = service.ask("POST", f"/v1/runs/{run}/forks", {"fork": "f", "at": 0})
    assert (reply.status, reply.code) == (404, "not-found")
    assert service.ask("GET", f"/v1/runs?parent={run}").body["items"] == []


def test_a_finished_run_is_forked_and_its_forks_are_listed(made: Recorded) -> None:
    made.service.ask("POST", f"/v1/runs/{made.run}/finish", {})
    names = [made.fork(name, at=1) for name in ("a", "b", "c")]
    page = made.service.ask("GET", f"/v1/runs?parent={made.run}&limit=2").body
    rest = made.service.ask("GET", f"/v1/runs?parent={made.run}&limit=2&after={page['next']}").body
    assert [item["run"] for item in page["items"] + rest["items"]] == names[::-1]
    assert rest["next"] is None


def test_a_decision_is_what_the_begin_then_does(made: Recorded) -> None:
    fork = made.fork(at=1)
    reply = ask(made, "ann", "bob", "cid", run=fork)
    assert rulings(reply) == [
        ("recorded", "before the cut"), ("recorded", "recorded"), ("suspend", "nothing may answer"),
    ]  # fmt: skip
    for ruling, to in zip(reply.body["decisions"], ("ann", "bob"), strict=False):
        begun = made.call(fork, {"to": to}).body
        assert {key: ruling[key] for key in ("origin", "outcome", "rule", "provenance")} == {
            key: begun[key] for key in ("origin", "outcome", "rule", "provenance")
        }
    assert said(made.call(fork, {"to": "cid"})) == (409, "run-suspended")
    assert rulings(ask(made, "ann", "bob", "cid", run=fork)) == rulings(reply)


def test_a_fork_need_not_exist_to_be_asked_about(made: Recorded) -> None:
    terms = {"parent": made.run, "at": 1}
    assert rulings(ask(made, "ann", "cid", fork=terms)) == [
        ("recorded", "before the cut"), ("suspend", "nothing may answer"),
    ]  # fmt: skip
    live = terms | {"live": [{"tool": made.tool}]}
    assert rulings(ask(made, "cid", fork=live)) == [("suspend", "needs approval")]
    assert made.service.ask("GET", f"/v1/runs?parent={made.run}").body["items"] == []


def test_each_call_is_judged_as_if_those_before_it_had_been_made(made: Recorded) -> None:
    tool = f"light-{made.run}"
    made.service.ask("PUT", f"/v1/tools/{tool}", {"class": "idempotent"})
    terms = {"parent": made.run, "at": 0, "live": [{"tool": tool, "calls": 1}]}
    steps = [{"tool": made.tool, "arguments": {"to": "bob"}, "step": step} for step in ("a", "b", "a")]
    lights = [{"tool": tool, "arguments": {"light": light}} for light in ("on", "off", "on")]
    assert rulings(ask(made, *steps, *lights, fork=terms)) == [
        ("recorded", "recorded"),
        ("suspend", "nothing may answer"),
        ("recorded", "recorded"),
        ("live", "allowed by the fork"),
        ("suspend", "live calls used up"),
        ("live", "allowed by the fork"),
    ]


def test_asking_changes_nothing(made: Recorded) -> None:
    fork = made.fork(at=0)
    step = {"tool": made.tool, "arguments": {"to": "bob"}, "step": "a"}
    assert rulings(ask(made, step, run=fork)) == [("recorded", "recorded")]
    assert said(made.call(fork, {"to": "bob"}, step="b")) == (200, "recorded")
    assert rulings(ask(made, step, run=fork)) == [("suspend", "nothing may answer")]


def test_an_approval_that_was_given_is_weighed(made: Recorded) -> None:
    fork = made.fork(at=1, live=[{"tool": made.tool}])
    asked = made.call(fork, {"to": "cid"})
    assert rulings(ask(made, "cid", run=fork)) == [("suspend", "needs approval")]
    made.decide(asked)
    assert rulings(ask(made, "cid", "dan", run=fork)) == [
        ("live", "allowed by the fork"), ("suspend", "needs approval"),
    ]  # fmt: skip
    made.decide(made.call(fork, {"to": "eve"}), "deny")
    assert rulings(ask(made, "eve", run=fork)) == [("deny", "approval denied")]


def test_a_decision_can_be_asked_as_of_a_time_or_a_version(made: Recorded) -> None:
    before = made.service.ask("GET", f"/v1/tools/{made.tool}").body
    made.declare(fork="deny")
    after = made.service.ask("GET", f"/v1/tools/{made.tool}").body
    terms = {"parent": made.run, "at": 1}
    asked = {to: ask(made, "cid", fork=terms, as_of=view["declared_at"]) for to, view in (("b", before), ("a", after))}
    assert rulings(asked["b"]) == [("suspend", "nothing may answer")]
    assert rulings(asked["a"]) == [("deny", "registry: deny")]
    assert [one["rules_version"] for one in (asked["b"].body["decisions"][0], asked["a"].body["decisions"][0])] == [
        1,
        2,
    ]
    by_version = [{"tool": made.tool, "arguments": {"to": "cid"}, "tool_version": version} for version in (1, 2)]
    assert [ruling[0] for ruling in rulings(ask(made, *by_version, fork=terms))] == ["suspend", "deny"]
    long_ago = ask(made, {"tool": f"new-{made.run}"}, fork=terms, as_of="2020-01-01T00:00:00Z")
    assert rulings(long_ago) == [("suspend", "not registered")]


def test_outside_of_a_fork_a_call_may_run(made: Recorded) -> None:
    reply = ask(made, "cid", run=made.run)
    assert rulings(reply) == [("live", "not in a fork")]
    assert reply.body["decisions"][0] == {
        "tool": made.tool, "decision": "live", "rule": "not in a fork", "tool_version": 1, "rules_version": 1,
        "class": "side_effect", "provenance": None, "origin": None, "outcome": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status", "place"),
    [
        ({"calls": [], "run": "x"}, 400, "/calls"),
        ({"calls": [{"tool": "pay"}]}, 400, ""),
        ({"calls": [{"tool": "pay"}], "run": "x", "fork": {"parent": "x", "at": 0}}, 400, ""),
        ({"calls": [{"tool": "pay"}, {"tool": "pay", "step": 1, "business_key": "k"}]}, 400, "/calls/1/step"),
        ({"calls": [{"tool": "pay", "arguments": {"a": {"$no": 1}}}]}, 400, "/calls/0/arguments/a/$no"),
        ({"calls": [{"tool": "pay", "tool_version": 99}]}, 400, "/calls/0/tool_version"),
        ({"calls": [{"tool": "pay"}], "run": "nobody-opened-this"}, 404, None),
        ({"calls": [{"tool": "pay"}], "as_of": "yesterday"}, 400, "/as_of"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_place(
    made: Recorded, body: dict[str, Any], status: int, place: str | None
) -> None:
    scope: dict[str, Any] = {} if {"run", "fork"} & body.keys() or place == "" else {"run": made.run}
    reply = made.service.ask("POST", "/v1/policy/decisions", body | scope)
    assert reply.status == status, reply.body
    if place is not None:
        assert [error["path"] for error in reply.body["errors"]] == [place]
