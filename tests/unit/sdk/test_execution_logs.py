"""Execution logs: a session and its turns are read as a recording, and a recording is written as such a log."""

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.sdk.logs import AT, head, saved
from twiceshy import Recording, RecordingRefused
from twiceshy._execution_log_writing import write_execution_log
from twiceshy._payloads import digest_of
from twiceshy_contract.events import Delivery, Event, Intent
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.refusals import JsonValue

REQUEST: dict[str, JsonValue] = {
    "model": "claude/4",
    "system": "Be kind.",
    "messages": [{"role": "user", "content": "hi"}],
}
LLM = {
    "turnId": "t1",
    "timestamp": "2026-06-15T10:00:01.500Z",
    "type": "llm_call",
    "request": REQUEST,
    "response": {"content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn"},
    "durationMs": 812.5,
}
TOOL = {
    "turnId": "t2",
    "timestamp": "2026-06-15T12:00:03+02:00",
    "type": "tool_call",
    "request": {"name": "check_coverage", "args": {"postcode": "EH1", "$n": 2**60}},
    "response": {"result": {"status": "degraded service"}},
    "durationMs": 40,
}
LOG: dict[str, Any] = {
    "sessionId": "session_abc123",
    "agentVersion": "3.1",
    "promptVersion": "p7",
    "startedAt": "2026-06-15T10:00:00.000Z",
    "turns": [LLM, TOOL],
    "outcome": "abandoned",
    "metadata": {"channelName": "phone", "score": 2, "nested": {"left": "out"}},
}


def recorded(tmp_path: Path, *logs: Any, indent: int | None = None) -> list[Recording]:
    path = tmp_path / "sessions.jsonl"
    path.write_text("\n".join(json.dumps(log, indent=indent) for log in logs) + "\n")
    return Recording.load_all(path)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_log_becomes_a_recording(tmp_path: Path, indent: int | None) -> None:
    (read,) = recorded(tmp_path, LOG, indent=indent)
    with read:
        assert (read.run, read.head.state) == ("session_abc123", "finished")
        assert read.head.started_at == "2026-06-15T10:00:00Z"
        about = read.head.about
        assert about is not None
        assert (about.agent_version, about.prompt_version, about.model) == ("3.1", "p7", "claude/4")
        assert read.head.facts == {"outcome": "abandoned", "channel_name": "phone", "score": 2}
        asked, answered, called, returned = read.events
        assert isinstance(asked, Intent)
        assert isinstance(answered, Delivery)
        assert isinstance(called, Intent)
        assert isinstance(returned, Delivery)
        assert (asked.kind, asked.name, asked.at) == ("llm_call", "claude|4", 1_781_517_601_500_000)
        assert asked.digest == digest_of(REQUEST)
        assert read.arguments(asked) == LLM["request"]
        assert (answered.intent, answered.took, read.value(answered)) == (1, 812_500, LLM["response"])
        assert (called.kind, called.name, called.at) == ("tool_call", "check_coverage", 1_781_517_603_000_000)
        assert read.arguments(called) == {"postcode": "EH1", "$$n": {"$int": str(2**60)}}
        assert (returned.outcome, read.value(returned)) == ("result", {"status": "degraded service"})


def test_several_logs_are_a_line_each(tmp_path: Path) -> None:
    loaded = recorded(tmp_path, LOG, {**LOG, "sessionId": "b", "turns": []})
    assert [(each.run, len(each)) for each in loaded] == [("session_abc123", 4), ("b", 0)]
    for each in loaded:
        each.close()


def test_what_a_log_may_leave_out_is_no_fault(tmp_path: Path) -> None:
    bare = {"type": "llm_call", "timestamp": "2026-06-15T10:00:00Z", "request": {}, "response": {"result": None}}
    tool = {**bare, "type": "tool_call", "request": {"name": "t"}, "response": {"error": {"type": "E", "message": "m"}}}
    (read,) = recorded(tmp_path, {"sessionId": "a/b", "startedAt": "2026-06-15T10:00:00Z", "turns": [bare, tool]})
    with read:
        assert read.run == "a|b"
        assert [event.name for event in read.events if isinstance(event, Intent)] == ["llm", "t"]
        empty, failed = read.events[1], read.events[3]
        assert isinstance(empty, Delivery)
        assert isinstance(failed, Delivery)
        assert (read.value(empty), empty.empty) == (None, True)
        assert (failed.outcome, failed.error) == ("error", ErrorOutcome(type="E", message="m"))


def turn(**fields: Any) -> dict[str, Any]:
    return {**LOG, "turns": [LLM, {**TOOL, **fields}]}


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ({**LOG, "sessionId": 5}, "as an execution log it cannot be read: sessionId"),
        ({**LOG, "turns": [{"type": "guess"}]}, "as an execution log it cannot be read: turns[0].type"),
        ({"some": "object"}, "this is no recording, and as an execution log it cannot be read"),
        ({**LOG, "sessionId": "a\nb"}, "at /sessionId: "),
        ({**LOG, "startedAt": "yesterday"}, "at /startedAt: this is not an ISO 8601 date-time"),
        (turn(timestamp="2026-06-15T10:00:00"), "at /turns/1/timestamp: a date-time without an offset"),
        (turn(timestamp="1815-06-18T10:00:00Z"), "at /turns/1/timestamp: this date-time is before 1970"),
        (turn(durationMs=-1), "at /turns/1/durationMs: a duration is not negative"),
        (turn(request={"args": {}}), "at /turns/1/request/name: "),
        (turn(request={"name": "a/b"}), "at /turns/1/request/name: "),
        (turn(request={"name": "a", "args": []}), "at /turns/1/request/args: the arguments of a tool are an object"),
        (turn(response={"error": {"type": 5, "message": "no"}}), "at /turns/1/response/error: "),
        (
            turn(durationMs=1e300),
            "at /turns/1/durationMs: the turn would have ended after the year 2255. Correct",
        ),
        (
            turn(timestamp="9999-12-31T23:59:59Z"),
            "at /turns/1/timestamp: this date-time is after the year 2255",
        ),
        (LOG, "at /sessionId: line 1 has a log of session session_abc123 already. Give each session its own"),
        ({**LOG, "agentVersion": "v" * 300}, "agent_version"),
    ],
)
def test_a_log_that_is_wrong_is_refused_with_line_and_reason(tmp_path: Path, log: Any, reason: str) -> None:
    with pytest.raises(RecordingRefused) as refusal:
        recorded(tmp_path, LOG, log)
    assert refusal.value.line == 2
    assert reason in str(refusal.value)


def test_what_is_neither_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text, line, says in [
        ("hello\n", 1, "this is not JSON"),
        ("[1]\n", 1, "this is no line of a recording"),
        ('{"sessionId": \n', 1, "this is neither a recording nor an execution log; as JSON it is wrong"),
        (json.dumps(LOG) + '\n\n{"sessionId"\n', 3, "as JSON it is wrong"),
        ('{"a": 1, "a": 2}\n', 1, "the key stands twice"),
    ]:
        path.write_text(text)
        with pytest.raises(RecordingRefused) as refusal:
            Recording.load_all(path)
        assert (refusal.value.line, says in str(refusal.value)) == (line, True), refusal.value


def test_a_log_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twiceshy._execution_log.MAX_LOG_BYTES", 400)
    for indent in (None, 2):
        with pytest.raises(RecordingRefused, match="an execution log has at most 400 bytes"):
            recorded(tmp_path, LOG, indent=indent)


def test_a_recording_is_written_as_a_log_and_read_back(tmp_path: Path) -> None:
    (read,) = recorded(tmp_path, LOG)
    out = io.BytesIO()
    with read:
        write_execution_log(out, read)
        events = list(read.events)
    written = msgspec.json.decode(out.getvalue())
    assert written["outcome"] == "abandoned"
    assert written["metadata"] == {"channelName": "phone", "score": 2}
    assert written["turns"][1]["request"] == TOOL["request"]
    assert written["turns"][0]["response"] == LLM["response"]
    (again,) = recorded(tmp_path, written)
    with again:
        assert list(again.events) == events
        assert again.head == read.head


def test_what_a_log_has_no_word_for_is_left_out(tmp_path: Path) -> None:
    events: list[Event] = [
        Intent(seq=1, at=AT, kind="time", name="now", digest="0" * 64),
        Delivery(seq=2, at=AT, intent=1, outcome="result", value={"$dt": "2026-06-15T10:00:00Z"}),
        Intent(seq=3, at=AT, kind="tool_call", name="late", digest="0" * 64),
        Intent(seq=4, at=AT, kind="llm_call", name="m", digest="0" * 64),
        Delivery(seq=5, at=AT, intent=4, outcome="result", value="Hello"),
        Delivery(seq=6, at=AT, intent=3, outcome="error", error=ErrorOutcome(type="E", message="m", data={"x": 1})),
        Intent(seq=7, at=AT, kind="tool_call", name="lost", digest="0" * 64),
        Delivery(seq=8, at=AT, intent=7, outcome="unknown"),
        Intent(seq=9, at=AT, kind="tool_call", name="open", digest="0" * 64, arguments={"d": {"$dec": "1.50"}}),
    ]
    recording = Recording.from_events(head(), events)
    saved(recording, tmp_path)
    out = io.BytesIO()
    write_execution_log(out, recording)
    written = msgspec.json.decode(out.getvalue())
    assert written["agentVersion"] == "unknown"
    assert "outcome" not in written
    assert [(each["turnId"], each["request"], each["response"]) for each in written["turns"]] == [
        ("order-1042:4", {}, {"result": "Hello"}),
        ("order-1042:3", {"name": "late", "args": {}}, {"error": {"type": "E", "message": "m"}}),
    ]
