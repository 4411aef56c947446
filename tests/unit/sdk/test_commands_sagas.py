"""`twiceshy sagas`: sagas on the command line."""

import msgspec
import pytest

from tests.unit.sdk.commands import KEY, Asked, answering, run
from tests.unit.sdk.scripted import answered, problem

SUMMARY = {
    "saga": "trip 7", "run": "trip", "state": "stuck", "reason": "Rejected: full", "deadline": None,
    "started_at": "2026-10-12T14:00:00Z", "failed_at": "2026-10-12T14:00:09Z", "ended_at": None,
}  # fmt: skip
STEP = {
    "number": 1, "key": KEY, "tool": "pay", "state": "enlisted", "effect": "succeeded", "compensation": "refund",
    "compensation_key": "1f" * 32, "compensation_effect": "failed", "enlisted_at": "2026-10-12T14:00:01Z", "note": None,
}  # fmt: skip
WAITS = {"key": KEY, "why": "its compensation was refused", "retry_after_seconds": 60.0}
VIEW = {**SUMMARY, "steps": [STEP], "due": None, "waits": WAITS}
DUE: dict[str, object] = {
    "purpose": "compensate", "key": KEY, "tool": "refund", "arguments": {}, "run": "trip", "step": "compensate:x",
    "business_key": None, "occurrence": 1,
}  # fmt: skip


def test_sagas_are_listed_by_state_and_run() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"items": [SUMMARY], "next": "x"}))
    result = run(handler, "sagas", "list", "--state", "stuck", "--run", "trip", "--limit", "1")
    assert asked == [("GET", "/v1/sagas?state=stuck&run=trip&limit=1", None)]
    assert "trip 7  trip  stuck  2026-10-12T14:00:00Z  -      Rejected: full" in result.output
    assert "There are more" in result.output


def test_no_sagas_say_so_and_json_is_the_services() -> None:
    empty = answered(200, {"items": [], "next": None})
    assert run(answering([], lambda *_: empty), "sagas", "list").output == "No sagas.\n"
    listed = run(answering([], lambda *_: empty), "sagas", "list", "--json")
    assert msgspec.json.decode(listed.output) == {"items": [], "next": None}


def test_a_saga_is_shown_with_its_steps_and_what_stands_in_its_way() -> None:
    asked: Asked = []
    result = run(answering(asked, lambda *_: answered(200, VIEW)), "sagas", "show", "trip 7")
    assert asked == [("GET", "/v1/sagas/trip%207", None)]
    assert f"next     its compensation was refused; step {KEY}" in result.output
    assert result.output.splitlines()[-1].split() == [
        "1", "pay", "enlisted", "succeeded", KEY, "refund", "failed", "-",
    ]  # fmt: skip
    shown = run(answering([], lambda *_: answered(200, VIEW)), "sagas", "show", "trip 7", "--json")
    assert msgspec.json.decode(shown.output) == VIEW


@pytest.mark.parametrize(
    ("purpose", "said"), [("compensate", "refund takes back"), ("settle", "refund learns whether it was done:")]
)
def test_the_call_that_is_due_is_named(purpose: str, said: str) -> None:
    view = {**VIEW, "steps": [], "waits": None, "due": {**DUE, "purpose": purpose}}
    result = run(answering([], lambda *_: answered(200, view)), "sagas", "show", "trip 7")
    assert f"next     {said} {KEY}" in result.output


@pytest.mark.parametrize(
    ("command", "path", "body"),
    [
        (["fail", "trip 7", "--reason", "no"], "fail", {"reason": "no"}),
        (["resume", "trip 7", "--by", "ann", "--reason", "open"], "resume", {"by": "ann", "reason": "open"}),
        (["settle", "trip 7", KEY, "--as", "done", "--by", "ann", "--reason", "by hand"],
         f"steps/{KEY}/settle", {"as": "done", "by": "ann", "reason": "by hand"}),
    ],
)  # fmt: skip
def test_an_operator_says_what_is_to_become_of_a_saga(command: list[str], path: str, body: object) -> None:
    asked: Asked = []
    result = run(answering(asked, lambda *_: answered(200, VIEW)), "sagas", *command)
    assert (result.exit_code, asked) == (0, [("POST", f"/v1/sagas/trip%207/{path}", body)])
    assert result.output.startswith("saga")


def test_what_is_wrongly_said_or_refused_is_told() -> None:
    handler = answering([], lambda *_: problem("saga-over"))
    assert run(handler, "sagas", "show", "a/b").exit_code == 2
    assert run(handler, "sagas", "settle", "a", KEY, "--as", "maybe", "--by", "ann", "--reason", "r").exit_code == 2
    refused = run(handler, "sagas", "fail", "a", "--reason", "r")
    assert (refused.exit_code, "saga-over" in refused.output) == (1, True)
