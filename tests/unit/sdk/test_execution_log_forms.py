"""Execution logs are read in each of the forms in which JavaScript writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sdk.commands import run
from tests.unit.sdk.logs import LogService
from twiceshy import Recording, RecordingRefused
from twiceshy_contract.events import Delivery
from twiceshy_contract.outcomes import ErrorOutcome

LLM = {
    "turnId": "t1",
    "timestamp": "2026-06-15T10:00:01.500Z",
    "type": "llm_call",
    "request": {"model": "m"},
    "response": {"content": "Hello"},
    "durationMs": 812,
}
TOOL = {**LLM, "turnId": "t2", "type": "tool_call", "request": {"name": "send", "args": {}}}
LOG = {"sessionId": "s-1", "agentVersion": "3", "promptVersion": "7", "startedAt": "2026-06-15T10:00:00Z", "turns": []}


def read(tmp_path: Path, text: str) -> list[Recording]:
    path = tmp_path / "logs.jsonl"
    path.write_text(text)
    return Recording.load_all(path)


def facts(tmp_path: Path, **members: Any) -> dict[str, Any]:
    (one,) = read(tmp_path, json.dumps({**LOG, **members}))
    with one:
        return dict(one.head.facts)


def delivered(tmp_path: Path, response: object, turn: dict[str, Any] | None = None) -> tuple[str, Any]:
    """Return how the one turn of a log ended."""
    (one,) = read(tmp_path, json.dumps({**LOG, "turns": [{**(turn or TOOL), "response": response}]}))
    with one:
        ended = one.events[1]
        assert isinstance(ended, Delivery)
        return ended.outcome, ended.error if ended.outcome == "error" else one.value(ended)


def test_metadata_that_is_spread_at_the_top_is_metadata(tmp_path: Path) -> None:
    assert facts(tmp_path, channel="phone", customerId="c-1", outcome="escalated", nested={"left": "out"}) == {
        "channel": "phone",
        "customer_id": "c-1",
        "outcome": "escalated",
    }
    assert facts(tmp_path, channel="top", metadata={"channel": "below"}) == {"channel": "below"}


def test_an_outcome_in_the_metadata_is_the_outcome(tmp_path: Path) -> None:
    assert facts(tmp_path, metadata={"outcome": "abandoned"}) == {"outcome": "abandoned"}
    assert facts(tmp_path, outcome=None, metadata={"outcome": "abandoned"}) == {"outcome": "abandoned"}
    assert facts(tmp_path, outcome="sold", metadata={"outcome": "abandoned"}) == {"outcome": "sold"}
    assert facts(tmp_path, outcome={"no": "fact"}, metadata=None) == {}


def test_what_a_tool_returns_that_returns_nothing_is_none(tmp_path: Path) -> None:
    assert delivered(tmp_path, {}) == ("result", None)
    assert delivered(tmp_path, {}, LLM) == ("result", {})


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ({"error": "boom"}, ErrorOutcome(type="Error", message="boom")),
        ({"error": {"message": "boom"}}, ErrorOutcome(type="Error", message="boom")),
        ({"error": {"name": "TypeError", "message": "boom"}}, ErrorOutcome(type="TypeError", message="boom")),
        (
            {"error": {"type": "E", "message": "m", "data": {"n": 1}}},
            ErrorOutcome(type="E", message="m", data={"n": 1}),
        ),
        ({"error": {"code": 5}}, ErrorOutcome(type="Error", message='{"code":5}')),
        ({"error": 5}, ErrorOutcome(type="Error", message="5")),
        ({"result": None, "error": "boom"}, ErrorOutcome(type="Error", message="boom")),
    ],
)
@pytest.mark.parametrize("turn", [TOOL, LLM], ids=["tool", "model"])
def test_an_error_is_one_however_it_is_told(
    tmp_path: Path, response: object, error: ErrorOutcome, turn: dict[str, Any]
) -> None:
    assert delivered(tmp_path, response, turn) == ("error", error)


def test_no_error_is_none(tmp_path: Path) -> None:
    assert delivered(tmp_path, {"result": 1, "error": None}) == ("result", 1)
    assert delivered(tmp_path, {"error": "one of its members", "status": 500}, LLM)[0] == "result"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_list_of_logs_is_read(tmp_path: Path, indent: int | None, end: str) -> None:
    loaded = read(tmp_path, json.dumps([{**LOG, "turns": [LLM]}, {**LOG, "sessionId": "s-2"}], indent=indent) + end)
    assert [(each.run, len(each)) for each in loaded] == [("s-1", 2), ("s-2", 0)]
    for each in loaded:
        each.close()


@pytest.mark.parametrize(("indent", "line"), [(None, 1), (2, 9)])
def test_what_is_wrong_in_a_list_is_refused_where_its_log_begins(tmp_path: Path, indent: int | None, line: int) -> None:
    with pytest.raises(RecordingRefused, match="at /startedAt: ") as refusal:
        read(tmp_path, json.dumps([LOG, {**LOG, "sessionId": "s-2", "startedAt": "now"}], indent=indent))
    assert refusal.value.line == line


def test_two_recordings_of_one_run_are_both_imported(tmp_path: Path) -> None:
    path, both = tmp_path / "one.jsonl", tmp_path / "both.jsonl"
    (one,) = read(tmp_path, json.dumps({**LOG, "turns": [LLM]}))
    with one:
        one.save(path)
    both.write_bytes(path.read_bytes() * 2)
    assert run(LogService(), "runs", "import", str(both)).output == (
        "Run s-1: 2 events were added.\nRun s-1 is there already, with all 2 events.\n"
    )
