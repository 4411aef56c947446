"""`twiceshy runs show` tells the replies to a run: where it was recorded, at their time among its calls."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tests.unit.sdk.call_logs import START, Writing
from tests.unit.sdk.commands import Asked, answering, numbered, run
from tests.unit.sdk.scripted import answered
from twiceshy._recording import Recording

EMPTY: dict[str, Any] = {"items": [], "next": None}
CALLS = ["    1  tool_call  1.5 ms", "    3  tool_call  1.5 ms"]


def reply(after: int, **more: object) -> dict[str, object]:
    """Return a reply that came in so many microseconds after the log began."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=START + after)
    return {
        "id": "0199c0de-0000-7000-8000-000000000009", "run": "a b", "thread": "room", "message": None,
        "received_at": at.isoformat(timespec="microseconds").replace("+00:00", "Z"), "message_id": "<r@x.example>",
        "from": "Ann <ann@x.example>", "to": [], "cc": [], "subject": "Re: Room", "date": None, "text": "Yes, please.",
        "html": None, "automatic": False, "cut": False, "attachments": [], **more,
    }  # fmt: skip


FIRST = reply(2500)
LAST = reply(9_000_000, thread=None, subject="Away", text=None, automatic=True)


def recording() -> Recording:
    writing = Writing("a b")
    for page in (0, 1):
        writing.tool("read", {"page": page}, f"page {page}")
    return writing.recording()


def pages(*, recorded: bool) -> dict[str, Any]:
    made = recording()
    head = {**msgspec.to_builtins(made.head), "effects": 1, "events": len(made) if recorded else 0}
    return {
        "/v1/runs/a%20b": head,
        "/v1/effects?run=a+b&limit=500": {"items": [numbered(1)], "next": None},
        "/v1/runs/a%20b/replies?limit=500": {"items": [FIRST], "next": "c"},
        "/v1/runs/a%20b/replies?limit=500&after=c": {"items": [LAST], "next": None},
        "/v1/runs/a%20b/events?after=0": {"items": [msgspec.to_builtins(one) for one in made.events], "next": None},
        "/v1/approvals?run=a+b&limit=500": EMPTY,
    }


def shown(*words: str, recorded: bool = True) -> str:
    asked: Asked = []
    answers = pages(recorded=recorded)
    result = run(answering(asked, lambda _, path: answered(200, answers[path])), "runs", "show", "a b", *words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_replies_stand_among_the_calls_at_their_time() -> None:
    assert shown().splitlines()[-9:] == [
        CALLS[0],
        "       Called read with page 0; it returned 'page 0'.",
        "       reply",
        "       Ann <ann@x.example> answered in room with 'Re: Room': 'Yes, please.'.",
        CALLS[1],
        "       Called read with page 1; it returned 'page 1'.",
        "       reply",
        "       Ann <ann@x.example> answered with 'Away'.",
        "       a machine says that it wrote it",
    ]


def test_a_part_of_the_timeline_has_the_replies_within_it() -> None:
    assert "answered" not in shown("--events", "3-4")
    within = shown("--events", "1-4")
    assert ("Re: Room" in within, "Away" in within) == (True, False)


def test_a_run_that_was_not_recorded_lists_them() -> None:
    last = [line.split() for line in shown(recorded=False).splitlines()[-2:]]
    assert last[0][1:6] == ["Ann", "<ann@x.example>", "Re:", "Room", "room"]
    assert last[1][1:] == ["Ann", "<ann@x.example>", "Away", "-"]


def test_json_has_the_replies_as_the_service_tells_them() -> None:
    assert msgspec.json.decode(shown("--json"))["replies"] == [FIRST, LAST]
    assert msgspec.json.decode(shown("--json", recorded=False))["replies"] == [FIRST, LAST]
