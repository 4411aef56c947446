"""What runs are about, late facts, filters of listings, and search over all logs, over HTTP."""

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.integration.recorded_calls import lookup, recorded
from tests.service import Reply, ServiceProcess

ABOUT = {
    "workflow": "contracts", "agent": "reader", "agent_version": "1.4", "prompt_version": "7", "model": "small",
    "temperature": 0.5, "tags": ["eu", "night"], "reference": "contract-17", "input": {"text": "Über"},
}  # fmt: skip


def listed(service: ServiceProcess, **query: object) -> list[str]:
    """Return the names of the runs of a listing."""
    reply = service.ask("GET", f"/v1/runs?{urlencode(query, doseq=True)}")
    assert reply.status == 200, reply.body
    return [item["run"] for item in reply.body["items"]]


def search(service: ServiceProcess, **query: object) -> Reply:
    """Search calls."""
    return service.ask("GET", f"/v1/events?{urlencode(query)}")


def test_the_first_word_about_a_run_is_kept_and_every_answer_shows_it(service: ServiceProcess, run: str) -> None:
    told = service.ask("POST", "/v1/runs", {"run": run, "about": ABOUT})
    assert (told.status, told.body["about"], told.body["facts"], told.body["parent"]) == (200, ABOUT, {}, None)
    assert (told.body["events"], told.body["epoch"]) == (0, 0)
    again = service.ask("POST", "/v1/runs", {"run": run, "about": {"workflow": "other"}, "record": True})
    assert (again.body["about"], again.body["epoch"]) == (ABOUT, 1)
    assert service.ask("GET", f"/v1/runs/{run}").body == again.body
    assert service.ask("POST", f"/v1/runs/{run}/finish").body["about"] == ABOUT


def test_a_listing_leaves_out_what_the_agents_were_given(service: ServiceProcess, run: str) -> None:
    service.ask("POST", "/v1/runs", {"run": run, "about": {**ABOUT, "reference": run}})
    (item,) = service.ask("GET", f"/v1/runs?reference={run}").body["items"]
    assert item["about"] == {name: value for name, value in ABOUT.items() if name != "input"} | {"reference": run}


def test_a_child_names_a_parent_that_is_there_and_has_one_only(service: ServiceProcess, run: str) -> None:
    unknown = service.ask("POST", "/v1/runs", {"run": f"{run}-c", "parent": run})
    assert (unknown.status, unknown.code) == (404, "not-found")
    assert service.ask("GET", f"/v1/runs/{run}-c").status == 404
    for name in (run, f"{run}-x"):
        service.ask("POST", "/v1/runs", {"run": name})
    for _ in range(2):
        child = service.ask("POST", "/v1/runs", {"run": f"{run}-c", "parent": run})
        assert (child.status, child.body["parent"]) == (200, run)
    assert service.ask("POST", "/v1/runs", {"run": f"{run}-c"}).body["parent"] == run
    for name, parent in ((f"{run}-c", f"{run}-x"), (run, f"{run}-c"), (run, run)):
        taken = service.ask("POST", "/v1/runs", {"run": name, "parent": parent, "about": ABOUT})
        assert (taken.status, taken.code) == (409, "name-taken")
        assert service.ask("GET", f"/v1/runs/{name}").body["about"] is None
    assert listed(service, child_of=run) == [f"{run}-c"]
    assert listed(service, parent=run) == []
    assert listed(service, child_of=f"{run}-nobody") == []


def test_facts_are_added_also_after_the_end_and_the_latest_counts(service: ServiceProcess, run: str) -> None:
    service.ask("POST", "/v1/runs", {"run": run})
    path = f"/v1/runs/{run}/facts"
    first = service.ask("POST", path, {"facts": {"escalated": False, "score": 61}})
    assert (first.status, first.body["facts"]) == (200, {"escalated": False, "score": 61})
    service.ask("POST", f"/v1/runs/{run}/finish")
    later = {"facts": {"escalated": True, "outcome": f"resolved {run}"}}
    last = service.ask("POST", path, later)
    assert last.body["facts"] == {"escalated": True, "outcome": f"resolved {run}", "score": 61}
    assert service.ask("POST", path, later).body == last.body
    assert service.ask("GET", f"/v1/runs/{run}").body == last.body
    (item,) = service.ask("GET", "/v1/runs?" + urlencode({"fact": f"outcome=resolved {run}"})).body["items"]
    assert item["facts"] == last.body["facts"]


def test_runs_are_listed_by_what_they_are_about_and_what_became_known(service: ServiceProcess, run: str) -> None:
    names = [f"{run}-{number}" for number in range(4)]
    for number, name in enumerate(names):
        about = {"workflow": run, "tags": [run, f"odd-{number % 2}"], "reference": name}
        service.ask("POST", "/v1/runs", {"run": name, "about": about})
        service.ask("POST", f"/v1/runs/{name}/facts", {"facts": {"escalated": number > 1, "score": number}})
    assert listed(service, workflow=run) == names[::-1]
    assert listed(service, tag=run) == names[::-1]
    assert listed(service, tag=[run, "odd-1"]) == [names[3], names[1]]
    assert listed(service, reference=names[2]) == [names[2]]
    assert listed(service, workflow=run, fact="escalated=true") == [names[3], names[2]]
    assert listed(service, workflow=run, fact=["escalated=true", "score=2.0"]) == [names[2]]
    assert listed(service, workflow=run, fact="score=two") == []
    assert listed(service, workflow=run, state="finished") == []
    page = service.ask("GET", f"/v1/runs?workflow={run}&limit=3").body
    rest = service.ask("GET", f"/v1/runs?workflow={run}&limit=3&after={page['next']}").body
    assert [item["run"] for item in page["items"] + rest["items"]] == names[::-1]
    assert rest["next"] is None


def test_one_query_finds_all_runs_where_a_lookup_came_back_empty(service: ServiceProcess, run: str) -> None:
    tool = f"lookup-{run}"
    logs: dict[str, list[dict[str, Any]]] = {
        "a": [lookup("GB-SCT", name=tool), lookup("GB-WLS", name=tool, empty=False)],
        "b": [lookup("GB", name=tool), lookup("gb-sct", name=tool), lookup("FR", name=tool)],
        "c": [lookup("GB-NIR", name=tool, outcome="error", empty=False, error={"type": "E", "message": "m"})],
        "d": [lookup("GB-SCT", name="other"), lookup("GB-NIR", name=tool)],
    }
    for name, calls in logs.items():
        assert recorded(service, f"{run}-{name}", *calls, about={"workflow": "contracts"}).status == 200
    query = {"name": tool, "argument": "jurisdiction", "prefix": "GB-", "empty": "true"}
    first = search(service, **query, limit=1).body
    assert first["items"] == [
        {
            "run": f"{run}-d", "seq": 3, "at": 1_700_000_000_000_003, "kind": "tool_call", "name": tool,
            "arguments": {"jurisdiction": "GB-NIR", "limit": 5}, "outcome": "result", "empty": True,
        }
    ]  # fmt: skip
    rest = search(service, **query, after=first["next"]).body
    assert [(item["run"], item["seq"]) for item in rest["items"]] == [(f"{run}-a", 1)]
    assert rest["next"] is None
    failed = search(service, name=tool, outcome="error", since="2020-01-01T00:00:00Z").body["items"]
    assert [(item["run"], item["empty"]) for item in failed] == [(f"{run}-c", False)]
    of_run = search(service, run=f"{run}-b", argument="limit", equals="5").body["items"]
    assert [item["seq"] for item in of_run] == [5, 3, 1]
    assert search(service, run=f"{run}-nobody").body == {"items": [], "next": None}
    assert search(service, name=tool, since="2200-01-01T00:00:00Z").body["items"] == []


def test_a_call_that_has_not_ended_is_found_without_an_outcome(service: ServiceProcess, run: str) -> None:
    epoch = service.ask("POST", "/v1/runs", {"run": run, "record": True}).body["epoch"]
    entered = {"phase": "intent", "seq": 1, "at": 1, "kind": "human", "name": run, "digest": "ab" * 32}
    service.ask("POST", f"/v1/runs/{run}/events", {"epoch": epoch, "events": [entered]})
    (item,) = search(service, name=run).body["items"]
    assert (item["outcome"], item["empty"], item["arguments"], item["kind"]) == (None, None, None, "human")


@pytest.mark.parametrize(
    ("query", "path", "said"),
    [
        ("empty=true", "/name", "name the call"),
        ("name=x&prefix=GB", "/prefix", "of which argument"),
        ("name=x&equals=GB", "/equals", "of which argument"),
        ("name=x&argument=a&prefix=G&equals=GB", "/prefix", "or all of it"),
        ("name=x&argument=a&prefix=G%00", "/prefix", "no database holds"),
        ("name=x&argument=a%00", "/argument", "no database holds"),
        ("workflow=a%00", "/workflow", "no database holds"),
        ("name=a/b", "/name", "not a name"),
        ("name=x&kind=tool", "/kind", "Invalid enum value"),
        ("name=x&outcome=ok", "/outcome", "Invalid enum value"),
        ("name=x&empty=maybe", "/empty", "bool"),
        ("name=x&since=yesterday", "/since", "RFC3339"),
        ("name=x&since=2026-01-01T00:00:00", "/since", "timezone"),
        ("name=x&limit=501", "/limit", "<= 500"),
        ("name=x&after=zz", "/after", "next"),
        ("name=x&name=y", "/name", "said twice"),
        ("tool=x", "/tool", "no such parameter"),
    ],
)
def test_a_search_that_cannot_be_is_refused_with_its_place(
    service: ServiceProcess, query: str, path: str, said: str
) -> None:
    reply = service.ask("GET", f"/v1/events?{query}")
    assert (reply.status, reply.code) == (400, "invalid-request")
    assert [error["path"] for error in reply.body["errors"]] == [path]
    assert said in reply.body["errors"][0]["message"]


@pytest.mark.parametrize(
    ("query", "path", "said"),
    [
        ("fact=escalated", "/fact", "name=value"),
        ("fact=Escalated%3Dtrue", "/fact", "not the name of a fact"),
        ("workflow=a%00b", "/workflow", "control characters"),
        ("tag=", "/tag", "length >= 1"),
        ("child_of=a/b", "/child_of", "not a name"),
        ("workflow=a&workflow=b", "/workflow", "said twice"),
        ("&".join(f"tag=t{number}" for number in range(11)), "/tag", "length <= 10"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_with_its_place(
    service: ServiceProcess, query: str, path: str, said: str
) -> None:
    reply = service.ask("GET", f"/v1/runs?{query}")
    assert (reply.status, reply.code) == (400, "invalid-request")
    assert [error["path"] for error in reply.body["errors"]] == [path]
    assert said in reply.body["errors"][0]["message"]


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("facts", {"facts": {}}, "/facts"),
        ("facts", {"facts": {"Score": 1}}, "/facts/Score"),
        ("facts", {"facts": {"ok": 1, "score": 2**60}}, "/facts/score"),
        ("facts", {"facts": {"score": {"a": 1}}}, "/facts/score"),
        ("facts", {"facts": {"note": "x" * 501}}, "/facts/note"),
        ("facts", {"facts": {"note": "\x01" * 400}}, "/facts/note"),
        ("", {"about": {"tags": ["ok", "a\nb"]}}, "/about/tags/1"),
        ("", {"about": {"workflow": ""}}, "/about/workflow"),
        ("", {"about": {"temperature": -1}}, "/about/temperature"),
        ("", {"about": {"wrokflow": "x"}}, "/about/wrokflow"),
        ("", {"parent": "a/b"}, "/parent"),
    ],
)
def test_what_cannot_be_said_of_a_run_is_refused_with_its_place(
    service: ServiceProcess, run: str, path: str, body: dict[str, object], place: str
) -> None:
    service.ask("POST", "/v1/runs", {"run": run})
    asked = body if path else {"run": run, **body}
    reply = service.ask("POST", f"/v1/runs/{run}/{path}" if path else "/v1/runs", asked)
    assert (reply.status, reply.code) == (400, "invalid-request")
    assert [error["path"] for error in reply.body["errors"]] == [place]
    assert service.ask("GET", f"/v1/runs/{run}").body["facts"] == {}


def test_facts_of_a_run_that_is_not_there_are_not_kept(service: ServiceProcess, run: str) -> None:
    assert service.ask("POST", f"/v1/runs/{run}/facts", {"facts": {"score": 1}}).code == "not-found"
    assert service.ask("GET", f"/v1/runs/{run}").status == 404
