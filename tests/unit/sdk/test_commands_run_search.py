"""`twiceshy runs list` with filters and over logs, and `twiceshy runs facts`."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from tests.unit.sdk.commands import Asked, answering, run
from tests.unit.sdk.scripted import answered, problem

RUN = {
    "run": "a b", "id": "0199-1", "state": "finished", "effects": 3, "started_at": "2026-10-12T14:00:00.000001Z",
    "ended_at": None, "events": 7, "epoch": 1, "parent": None, "about": {"workflow": "contracts", "tags": ["eu"]},
    "facts": {"code": "061", "escalated": True, "note": "two words", "score": 61, "word": "true"},
}  # fmt: skip
PLAIN = {**RUN, "run": "plain", "about": None, "facts": {}}
CALL = {
    "run": "r-2", "seq": 8, "at": 1_700_000_000_000_008, "kind": "tool_call", "name": "lookup",
    "arguments": {"jurisdiction": "GB-SCT"}, "outcome": "result", "empty": True,
}  # fmt: skip


def query(asked: Asked) -> dict[str, list[str]]:
    """Return the query of the one request."""
    ((_, path, _),) = asked
    return parse_qs(urlsplit(path).query)


def test_every_filter_of_runs_is_asked_of_the_service() -> None:
    asked: Asked = []
    words = [
        "--state", "open", "--parent", "p", "--children-of", "c", "--workflow", "w x", "--reference", "ref",
        "--tag", "t1", "--tag", "t2", "--fact", "escalated=true", "--fact", "outcome=resolved", "--limit", "3",
    ]  # fmt: skip
    result = run(answering(asked, lambda *_: answered(200, {"items": [], "next": None})), "runs", "list", *words)
    assert result.output == "No runs.\n"
    assert query(asked) == {
        "state": ["open"], "parent": ["p"], "child_of": ["c"], "workflow": ["w x"], "reference": ["ref"],
        "tag": ["t1", "t2"], "fact": ["escalated=true", "outcome=resolved"], "limit": ["3"],
    }  # fmt: skip


def test_runs_are_shown_with_what_they_are_about_and_what_is_known_as_it_may_be_typed() -> None:
    result = run(answering([], lambda *_: answered(200, {"items": [RUN, PLAIN], "next": None})), "runs", "list")
    heading, first, second = result.output.splitlines()
    assert heading.split() == ["run", "state", "effects", "started", "ended", "workflow", "facts"]
    assert first.endswith('contracts  code=061 escalated=true note="two words" score=61 word="true"')
    assert second.split()[-2:] == ["-", "-"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["--argument", "jurisdiction=GB-*"], {"argument": "jurisdiction", "prefix": "GB-"}),
        (["--argument", "jurisdiction=GB"], {"argument": "jurisdiction", "equals": "GB"}),
        (["--argument", r"path=a\*"], {"argument": "path", "equals": "a*"}),
        (["--argument", "a=b=c"], {"argument": "a", "equals": "b=c"}),
        (["--argument", "a=*"], {"argument": "a", "prefix": ""}),
        (["--argument", "a="], {"argument": "a", "equals": ""}),
        (["--argument", "a"], {"argument": "a"}),
        (["--empty", "--outcome", "error"], {"empty": "true", "outcome": "error"}),
        (["--kind", "llm_call", "--workflow", "w"], {"kind": "llm_call", "workflow": "w"}),
        (["--since", "2026-10-12T14:00:00Z"], {"since": "2026-10-12T14:00:00+00:00"}),
    ],
)
def test_calls_are_searched_for_as_they_are_described(words: list[str], expected: dict[str, str]) -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"items": [], "next": None}))
    result = run(handler, "runs", "list", "--called", "lookup", *words)
    assert result.output == "No calls.\n"
    assert asked[0][1].startswith("/v1/events?")
    said = {name: value for name, (value,) in parse_qs(asked[0][1].partition("?")[2], keep_blank_values=True).items()}
    assert said == {"name": "lookup", "limit": "50", **expected}


def test_an_age_is_counted_back_from_now() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"items": [], "next": None}))
    run(handler, "runs", "list", "--called", "lookup", "--since", "30d")
    since = datetime.fromisoformat(query(asked)["since"][0])
    assert abs(datetime.now(UTC) - since - timedelta(days=30)) < timedelta(minutes=1)


def test_found_calls_are_shown_with_their_runs_or_as_json() -> None:
    long = {**CALL, "seq": 4, "arguments": {"text": "x" * 100}, "outcome": None, "empty": None}
    page = {"items": [CALL, long, {**CALL, "run": "r-1", "at": 2**53 - 1, "empty": False}], "next": "n"}
    words = ["runs", "list", "--called", "lookup", "--limit", "3"]
    shown = run(answering([], lambda *_: answered(200, page)), *words).output.splitlines()
    assert shown[1].split() == [
        "r-2", "8", "lookup", '{"jurisdiction":"GB-SCT"}', "result,", "empty", "2023-11-14T22:13:20Z",
    ]  # fmt: skip
    assert shown[2].split()[4:] == ["-", "2023-11-14T22:13:20Z"]
    assert shown[2].split()[3].endswith("…")
    assert shown[4:] == ["3 calls in 2 runs.", "There are more: use --limit or --all."]
    listed = run(answering([], lambda *_: answered(200, page)), *words, "--json")
    assert msgspec.json.decode(listed.output) == page


def test_facts_are_sent_as_they_are_meant_and_shown_as_they_stand() -> None:
    asked: Asked = []
    said = ["outcome=escalated", "score=61", "ratio=0.5", "ok=true", 'code="61"', "id=061"]
    result = run(answering(asked, lambda *_: answered(200, RUN)), "runs", "facts", "a b", *said)
    facts = {"outcome": "escalated", "score": 61, "ratio": 0.5, "ok": True, "code": "61", "id": "061"}
    assert asked == [("POST", "/v1/runs/a%20b/facts", {"facts": facts})]
    assert result.output.splitlines()[0] == "Of run a b is known:"
    assert [line.split(maxsplit=1) for line in result.output.splitlines()[1:]] == [
        ["code", "061"], ["escalated", "true"], ["note", '"two words"'], ["score", "61"], ["word", '"true"'],
    ]  # fmt: skip
    as_json = run(answering([], lambda *_: answered(200, RUN)), "runs", "facts", "a b", "score=1", "--json")
    assert msgspec.json.decode(as_json.output) == RUN


def test_facts_of_a_run_that_is_not_there_are_refused() -> None:
    result = run(answering([], lambda *_: problem("not-found")), "runs", "facts", "nobody", "score=1")
    assert (result.exit_code, "The service says not-found" in result.output) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--fact", "escalated"], "name=value"),
        (["list", "--fact", "Escalated=true"], "not the name of a fact"),
        (["list", "--empty"], "--empty is about calls: name them with --called"),
        (["list", "--argument", "a=b"], "--argument is about calls"),
        (["list", "--since", "30d"], "--since is about calls"),
        (["list", "--called", "x", "--tag", "t"], "--tag does not go with --called"),
        (["list", "--called", "x", "--children-of", "t"], "--children-of does not go with --called"),
        (["list", "--called", "a/b"], "is not the name of a tool"),
        (["list", "--called", "x", "--argument", "=b"], "names no argument"),
        (["list", "--called", "x", "--outcome", "ok"], "'ok' is not one of"),
        (["list", "--called", "x", "--since", "yesterday"], "neither 30d or 12h nor a time"),
        (["list", "--called", "x", "--since", "2026-10-12T14:00:00"], "has no offset"),
        (["list", "--children-of", "a/b"], "is not the name of a run"),
        (["facts", "r"], "Missing argument"),
        (["facts", "r", "score"], "name=value"),
        (["facts", "r", "score=1", "score=2"], "said twice"),
        (["facts", "r", "score=9007199254740992"], "whole number"),
        (["facts", "r", "note=\udc80"], "no Unicode text"),
    ],
)
def test_a_wrong_use_asks_nothing_and_says_what_is_wrong(words: list[str], said: str) -> None:
    asked: Asked = []
    result = run(answering(asked, lambda *_: answered(200, RUN)), "runs", *words)
    assert (result.exit_code, asked) == (2, [])
    assert said in " ".join(result.output.split())
