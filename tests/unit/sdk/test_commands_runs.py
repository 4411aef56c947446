"""`twiceshy runs` and `twiceshy keys`: runs and previews on the command line."""

from pathlib import Path

import msgspec
import pytest

from tests.unit.sdk.commands import KEY, Asked, answering, numbered, run
from tests.unit.sdk.scripted import answered, problem

RUN = {
    "run": "a b", "id": "0199-1", "state": "open", "effects": 3,
    "started_at": "2026-10-12T14:00:00.000001Z", "ended_at": None,
}  # fmt: skip
PREVIEW = {
    "key": None, "rule": "once", "tool": "pay", "tool_version": 0, "identity": '{"amount":5}',
    "identity_digest": "1a" * 32, "content": "{}", "arguments_digest": "2b" * 32,
}  # fmt: skip


def test_runs_are_listed_newest_first_by_state() -> None:
    asked: Asked = []
    ended = {**RUN, "run": "other", "state": "failed", "ended_at": "2026-10-12T15:00:00Z"}
    handler = answering(asked, lambda *_: answered(200, {"items": [RUN, ended], "next": "x"}))
    result = run(handler, "runs", "list", "--state", "open", "--limit", "2")
    assert asked == [("GET", "/v1/runs?state=open&limit=2", None)]
    assert [line.split() for line in result.output.splitlines()[1:3]] == [
        ["a", "b", "open", "3", "2026-10-12T14:00:00Z", "-"],
        ["other", "failed", "3", "2026-10-12T14:00:00Z", "2026-10-12T15:00:00Z"],
    ]
    assert "There are more" in result.output


def test_no_runs_say_so_and_json_is_the_services() -> None:
    empty = answered(200, {"items": [], "next": None})
    assert run(answering([], lambda *_: empty), "runs", "list").output == "No runs.\n"
    listed = run(answering([], lambda *_: empty), "runs", "list", "--json")
    assert msgspec.json.decode(listed.output) == {"items": [], "next": None}


PAGES = {
    "/v1/runs/a%20b": RUN,
    "/v1/effects?run=a+b&limit=500": {"items": [numbered(3), numbered(2)], "next": "p2"},
    "/v1/effects?run=a+b&limit=500&after=p2": {"items": [numbered(1)], "next": None},
    "/v1/runs/a%20b/replies?limit=500": {"items": [], "next": None},
}


def test_a_run_is_shown_with_all_its_effects_oldest_first() -> None:
    asked: Asked = []
    result = run(answering(asked, lambda _, path: answered(200, PAGES[path])), "runs", "show", "a b")
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.output.splitlines()[-3:]] == [
        [str(number), "pay", "in_doubt", f"{number:064x}", "host:1"] for number in (1, 2, 3)
    ]
    assert [path for _, path, _ in asked] == list(PAGES)


def test_a_run_as_json_is_the_run_and_its_effects_oldest_first() -> None:
    result = run(answering([], lambda _, path: answered(200, PAGES[path])), "runs", "show", "a b", "--json")
    effects = [numbered(1), numbered(2), numbered(3)]
    assert msgspec.json.decode(result.output) == {"run": RUN, "effects": effects, "replies": []}


def test_a_run_is_finished_in_the_way_that_is_said() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {**RUN, "state": "failed"}))
    result = run(handler, "runs", "finish", "a b", "--as", "failed")
    assert asked == [("POST", "/v1/runs/a%20b/finish", {"as": "failed"})]
    assert result.output == "Run a b is failed. It serves the record of its 3 effects and takes no new ones.\n"


def test_a_run_that_ended_otherwise_is_refused() -> None:
    result = run(answering([], lambda *_: problem("run-finished")), "runs", "finish", "a b")
    assert (result.exit_code, "The service says run-finished" in result.output) == (1, True)


def test_a_preview_shows_canonical_form_digests_and_key() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {**PREVIEW, "key": KEY, "tool_version": 2}))
    words = ["--tool", "pay", "--arguments", '{"amount": 5.0}', "--run", "r", "--step", "3", "--occurrence", "2"]
    result = run(handler, "keys", "preview", *words)
    assert result.exit_code == 0, result.output
    body = {"tool": "pay", "arguments": {"amount": 5.0}, "run": "r", "step": "3", "occurrence": 2}
    assert asked == [("POST", "/v1/keys", body)]
    for part in (KEY, '{"amount":5}', "1a" * 32, "2b" * 32, "pay (version 2)"):
        assert part in result.output


@pytest.mark.parametrize(
    ("words", "said"), [([], "none: name --run, or --business-key"), (["--run", "r"], "unknown until run r is open")]
)
def test_a_preview_without_a_key_says_why(words: list[str], said: str) -> None:
    handler = answering([], lambda *_: answered(200, PREVIEW))
    result = run(handler, "keys", "preview", "--tool", "pay", "--arguments", "{}", *words)
    assert said in result.output
    assert "pay (version 0: not declared)" in result.output


def test_arguments_come_from_a_file_or_from_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "call.json"
    path.write_text('{"amount": 7}')
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, PREVIEW))
    for where in (f"@{path}", "-"):
        words = ["keys", "preview", "--tool", "pay", "--business-key", "k", "--arguments", where, "--json"]
        result = run(handler, *words, input=path.read_text())
        assert msgspec.json.decode(result.output) == PREVIEW
    assert [body["arguments"] for _, _, body in asked] == [{"amount": 7}, {"amount": 7}]


FORK = {**RUN, "run": "why", "fork_of": "a b", "at": 2, "reads": "recorded", "live": [{"tool": "pay", "calls": 1}]}


def test_a_run_is_forked_on_the_terms_that_are_said() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, FORK))
    terms = ["--at", "2", "--reads", "recorded", "--live", '{"tool": "pay", "calls": 1}', "--live", "search"]
    result = run(handler, "runs", "fork", "a b", "why", *terms)
    live = [{"tool": "pay", "calls": 1}, {"tool": "search"}]
    assert asked == [("POST", "/v1/runs/a%20b/forks", {"fork": "why", "at": 2, "reads": "recorded", "live": live})]
    assert result.output.startswith("Run why is a fork of a b at step 2.\n")
    assert "twiceshy approvals list" in result.output
    assert msgspec.json.decode(run(handler, "runs", "fork", "a b", "why", "--at", "2", "--json").output) == FORK


def test_a_tool_that_may_run_is_named_or_written_as_json() -> None:
    for live in ('{"tool": "pay", "unless": 1}', "a/b", "{"):
        result = run(
            answering([], lambda *_: answered(200, FORK)), "runs", "fork", "r", "f", "--at", "1", "--live", live
        )
        assert (result.exit_code, "--live" in result.output) == (2, True)


def test_a_fork_is_shown_with_its_terms_and_listed_by_its_parent() -> None:
    asked: Asked = []
    empty: dict[str, object] = {"items": [], "next": None}
    pages = {"/v1/runs/why": FORK, "/v1/effects?run=why&limit=500": empty, "/v1/runs/why/replies?limit=500": empty}
    shown = run(answering(asked, lambda _, path: answered(200, pages[path])), "runs", "show", "why")
    assert [line.split(maxsplit=2)[:3] for line in shown.output.splitlines() if "fork of" in line] == [
        ["fork", "of", "a b"]
    ]
    assert '{"tool":"pay","calls":1}' in shown.output
    run(answering(asked, lambda *_: answered(200, empty)), "runs", "list", "--parent", "a b")
    assert asked[-1][1] == "/v1/runs?parent=a+b&limit=50"


RULING = {
    "tool": "pay", "decision": "recorded", "rule": "before the cut", "tool_version": 1, "rules_version": 2,
    "class": "side_effect", "provenance": "recorded", "origin": KEY, "outcome": {"result": 5},
}  # fmt: skip


def test_a_decision_is_asked_and_shown_with_its_rule() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"decisions": [RULING]}))
    said = ["--arguments", '{"to": "bob"}', "--run", "why", "--as-of", "2026-10-12T14:00:00Z"]
    result = run(handler, "policy", "decide", "pay", *said)
    call = {"tool": "pay", "arguments": {"to": "bob"}}
    assert asked == [("POST", "/v1/policy/decisions", {"calls": [call], "run": "why", "as_of": "2026-10-12T14:00:00Z"})]
    assert [line.split(maxsplit=1) for line in result.output.splitlines()[:2]] == [
        ["decision", "recorded"], ["rule", "before the cut"],
    ]  # fmt: skip
    assert KEY in result.output
    assert '{"result":5}' in result.output
    listed = run(handler, "policy", "decide", "pay", *said, "--json")
    assert msgspec.json.decode(listed.output) == {"decisions": [RULING]}


def test_a_fork_that_might_be_is_asked_about_and_half_of_one_is_not() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"decisions": [RULING]}))
    run(handler, "policy", "decide", "pay", "--fork-of", "main", "--at", "3", "--live", "pay")
    fork = {"parent": "main", "at": 3, "live": [{"tool": "pay"}]}
    assert asked == [("POST", "/v1/policy/decisions", {"calls": [{"tool": "pay"}], "fork": fork})]
    for wrong in (["--at", "3"], ["--fork-of", "main"], [], ["--run", "f", "--fork-of", "main", "--at", "3"]):
        assert run(handler, "policy", "decide", "pay", *wrong).exit_code == 2
    assert run(handler, "policy", "decide", "pay", "--run", "f", "--as-of", "yesterday").exit_code == 2
    assert len(asked) == 1
