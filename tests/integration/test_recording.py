"""Recording over HTTP: a run is opened for writing, its log appended to and read, and begins bring events."""

import hashlib
import json
from typing import Any
from uuid import uuid4

import pytest

from tests.service import Reply, ServiceProcess

DIGEST = "ab" * 32
AT = 1_700_000_000_000_000


def intent(seq: int, name: str = "lookup", **fields: object) -> dict[str, object]:
    return {"phase": "intent", "seq": seq, "at": AT, "kind": "tool_call", "name": name, "digest": DIGEST} | fields


def delivery(seq: int, of: int, **fields: object) -> dict[str, object]:
    return {"phase": "delivery", "seq": seq, "at": AT, "intent": of, "outcome": "result", "value": "ok"} | fields


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def record(service: ServiceProcess, run: str) -> Reply:
    return service.ask("POST", "/v1/runs", {"run": run, "record": True})


def append(service: ServiceProcess, run: str, epoch: int, *events: object, **fields: object) -> Reply:
    return service.ask("POST", f"/v1/runs/{run}/events", {"epoch": epoch, "events": events} | fields)


def log_of(service: ServiceProcess, run: str, query: str = "") -> Any:
    reply = service.ask("GET", f"/v1/runs/{run}/events{query}")
    assert reply.status == 200, reply
    return reply.body


def test_each_opening_for_recording_is_a_new_epoch(service: ServiceProcess, run: str) -> None:
    plain = service.ask("POST", "/v1/runs", {"run": run})
    assert (plain.status, plain.body["epoch"], plain.body["events"]) == (200, 0, 0)
    assert record(service, run).body["epoch"] == 1
    append(service, run, 1, intent(1))
    again = record(service, run)
    assert (again.status, again.body["epoch"], again.body["events"]) == (200, 2, 1)
    assert service.ask("POST", "/v1/runs", {"run": run}).body == again.body
    assert service.ask("GET", f"/v1/runs/{run}").body == again.body


def test_an_ended_run_is_recorded_no_more_but_its_writer_may_flush(service: ServiceProcess, run: str) -> None:
    record(service, run)
    service.ask("POST", f"/v1/runs/{run}/finish", {})
    refused = record(service, run)
    assert (refused.status, refused.code) == (409, "run-finished")
    assert service.ask("POST", "/v1/runs", {"run": run}).status == 200
    assert append(service, run, 1, intent(1)).body == {"run": run, "next_seq": 2}


def test_a_log_is_read_as_it_was_appended(service: ServiceProcess, run: str) -> None:
    record(service, run)
    events = [
        intent(1, arguments={"b": 1, "a": {"$dec": "1.50"}}, scope="outer/inner"),
        intent(2, "child", child="other", kind="child_run"),
        delivery(3, 1, value=None, took=17, empty=True, source="recorded"),
        delivery(4, 2, outcome="unknown", child={"run": "other", "events": 3}),
    ]
    del events[3]["value"]
    assert append(service, run, 1, *events).body == {"run": run, "next_seq": 5}
    assert append(service, run, 1, *events).body == {"run": run, "next_seq": 5}
    assert log_of(service, run) == {"items": events, "next": None}
    assert log_of(service, run, "?limit=3") == {"items": events[:3], "next": 3}
    assert log_of(service, run, "?limit=3&after=3") == {"items": events[3:], "next": None}
    assert log_of(service, run, "?after=4") == {"items": [], "next": None}


def test_what_does_not_go_on_is_refused_with_its_reason(service: ServiceProcess, run: str) -> None:
    record(service, run)
    append(service, run, 1, intent(1))
    diverged = append(service, run, 1, intent(1, "other"), intent(2))
    assert (diverged.status, diverged.code) == (409, "recording-diverged")
    assert diverged.body["detail"].startswith(f"Event 1 of run '{run}' is kept, and it is not the one that was sent.")
    gap = append(service, run, 1, intent(3))
    assert (gap.status, gap.code) == (409, "recording-gap")
    assert gap.body["detail"].startswith(f"The log of run '{run}' ends with event 1; what was sent goes on with 3.")
    record(service, run)
    older = append(service, run, 1, intent(2))
    assert (older.status, older.code) == (409, "run-taken-over")
    assert older.body["detail"].startswith(f"Run '{run}' is recorded by its writer of epoch 2, not by that of 1.")
    assert len(log_of(service, run)["items"]) == 1


def test_a_run_that_nobody_records_has_no_writer_and_no_run_has_no_log(service: ServiceProcess, run: str) -> None:
    for reply in (append(service, run, 1, intent(1)), service.ask("GET", f"/v1/runs/{run}/events")):
        assert (reply.status, reply.code) == (404, "not-found")
    service.ask("POST", "/v1/runs", {"run": run})
    never = append(service, run, 1, intent(1))
    assert (never.status, never.code) == (409, "run-taken-over")
    assert never.body["detail"].startswith(f"Run '{run}' was never opened with `record`.")
    assert log_of(service, run) == {"items": [], "next": None}


TEXT = '{"role":"user","content":"Wo ist Zürich?"}'


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"events": []}, "/epoch"),
        ({"epoch": 0}, "/epoch"),
        ({"epoch": 1, "events": [intent(0)]}, "/events/0/seq"),
        ({"epoch": 1, "events": [intent(1), intent(3)]}, "/events/1/seq"),
        ({"epoch": 1, "events": [intent(1), intent(1)]}, "/events/1/seq"),
        ({"epoch": 1, "events": [{**intent(1), "phase": "thought"}]}, "/events/0/phase"),
        ({"epoch": 1, "events": [intent(1, kind="guess")]}, "/events/0/kind"),
        ({"epoch": 1, "events": [intent(1, name="a/b")]}, "/events/0/name"),
        ({"epoch": 1, "events": [intent(1, digest="no")]}, "/events/0/digest"),
        ({"epoch": 1, "events": [intent(1, more=1)]}, "/events/0/more"),
        ({"epoch": 1, "events": [intent(1), delivery(2, 1), delivery(3, 1)]}, "/events/2/intent"),
        ({"epoch": 1, "events": [intent(1), delivery(2, 2)]}, "/events/1/intent"),
        ({"epoch": 1, "events": [delivery(1, 7)]}, "/events/0/intent"),
        ({"epoch": 1, "events": [intent(1, arguments={"x": {"$blob": 5}})]}, "/events/0/arguments/x/$blob"),
        ({"epoch": 1, "blobs": {"ab": TEXT}}, "/blobs/ab"),
        ({"epoch": 1, "blobs": {DIGEST: TEXT}}, f"/blobs/{DIGEST}"),
        ({"epoch": 1, "blobs": {digest_of("[1,"): "[1,"}}, f"/blobs/{digest_of('[1,')}/1"),
        ({"epoch": 1, "events": [intent(seq) for seq in range(1, 1002)]}, "/events"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_place(
    service: ServiceProcess, run: str, body: object, path: str
) -> None:
    record(service, run)
    reply = service.ask("POST", f"/v1/runs/{run}/events", body)
    assert (reply.status, reply.code) == (400, "invalid-request"), reply
    assert reply.body["errors"][0]["path"] == path
    assert log_of(service, run)["items"] == []


@pytest.mark.parametrize(
    ("query", "path"), [("?after=-1", "/after"), ("?after=x", "/after"), ("?limit=1001", "/limit"), ("?seq=1", "/seq")]
)
def test_a_query_that_cannot_be_understood_is_refused(service: ServiceProcess, run: str, query: str, path: str) -> None:
    record(service, run)
    reply = service.ask("GET", f"/v1/runs/{run}/events{query}")
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, path)


def test_values_by_content_come_before_the_events_that_name_them(service: ServiceProcess, run: str) -> None:
    record(service, run)
    message = digest_of(TEXT)
    node = json.dumps({"items": [{"$blob": message}]})
    events = [intent(1, arguments={"messages": {"$list": digest_of(node)}})]
    missing = append(service, run, 1, *events)
    assert (missing.status, missing.code, missing.body["paths"]) == (409, "blobs-missing", [digest_of(node)])
    missing = append(service, run, 1, *events, blobs={digest_of(node): node})
    assert (missing.code, missing.body["paths"]) == ("blobs-missing", [message])
    assert log_of(service, run)["items"] == []
    assert append(service, run, 1, blobs={message: TEXT}).body["next_seq"] == 1
    assert append(service, run, 1, *events, blobs={digest_of(node): node}).body["next_seq"] == 2
    assert append(service, run, 1, *events).body["next_seq"] == 2
    asked = {"digests": [digest_of(node), DIGEST, message, message]}
    reply = service.ask("POST", "/v1/blobs/read", asked)
    assert (reply.status, reply.body) == (200, {"blobs": {digest_of(node): node, message: TEXT}, "left": []})


@pytest.mark.parametrize(
    ("body", "path"), [({}, "/digests"), ({"digests": []}, "/digests"), ({"digests": ["AB" * 32]}, "/digests/0")]
)
def test_a_digest_that_is_none_is_refused(service: ServiceProcess, body: object, path: str) -> None:
    reply = service.ask("POST", "/v1/blobs/read", body)
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, path)


def test_large_values_are_taken_and_read_some_at_a_time(service: ServiceProcess, run: str) -> None:
    record(service, run)
    texts = {digest_of(text): text for text in (json.dumps(letter * 3_000_000) for letter in "abcd")}
    events = [intent(seq, arguments={"x": {"$blob": digest}}) for seq, digest in enumerate(texts, 1)]
    assert append(service, run, 1, *events, blobs=texts).body["next_seq"] == 5
    left = list(texts)
    seen: dict[str, str] = {}
    for _ in range(4):
        reply = service.ask("POST", "/v1/blobs/read", {"digests": left})
        assert len(reply.body["blobs"]) == 1
        seen |= reply.body["blobs"]
        left = reply.body["left"]
    assert (seen, left) == (texts, [])


def test_a_page_ends_after_some_megabytes(service: ServiceProcess, run: str) -> None:
    record(service, run)
    events = [intent(seq, arguments={"x": "x" * 130_000}) for seq in range(1, 70)]
    assert append(service, run, 1, *events).body["next_seq"] == 70
    pages = [log_of(service, run, f"?after={after}") for after in (0, 32, 64)]
    assert [(len(page["items"]), page["next"]) for page in pages] == [(32, 32), (32, 64), (5, None)]


def test_what_is_too_large_is_refused_and_nothing_is_kept(service: ServiceProcess, run: str) -> None:
    record(service, run)
    text = json.dumps("x" * (8 * 2**20))
    large = append(service, run, 1, intent(1), blobs={digest_of(text): text})
    assert (large.status, large.code, large.body["paths"]) == (413, "too-large", [f"/blobs/{digest_of(text)}"])
    larger = append(service, run, 1, intent(1, arguments={"x": "y" * (16 * 2**20)}))
    assert (larger.status, larger.code) == (413, "too-large")
    begun = service.begin(run, epoch=1, events=[intent(1, arguments={"x": "y" * 2**20})])
    assert (begun.status, begun.code) == (413, "too-large")
    inline = intent(1, arguments={"x": "y" * 2**17})
    for reply in (append(service, run, 1, inline), service.begin(run, epoch=1, events=[inline])):
        assert (reply.status, reply.code, reply.body["paths"]) == (413, "too-large", ["/events/0"])
    assert log_of(service, run)["items"] == []


def test_a_begin_keeps_its_events_whatever_the_answer_is(service: ServiceProcess, run: str) -> None:
    record(service, run)
    granted = service.begin(run, epoch=1, events=[intent(1, "pay")])
    assert (granted.status, granted.body["next_seq"]) == (201, 2)
    service.report("commit", granted, result="paid")
    replayed = service.begin(run, epoch=1, events=[intent(1, "pay"), delivery(2, 1), intent(3, "pay")])
    assert (replayed.status, replayed.body["decision"], replayed.body["next_seq"]) == (200, "replay", 4)
    assert "next_seq" not in service.begin(run).body
    refused = service.begin(run, tool="mail", epoch=1, events=[delivery(4, 3), intent(5)], step="1", business_key="k")
    assert refused.status == 400
    busy = service.begin(run, arguments={"to": "eve"}, epoch=1, events=[intent(6)])
    assert (busy.status, busy.body["next_seq"]) == (201, 7)
    again = service.begin(run, arguments={"to": "eve"}, epoch=1, events=[intent(7)])
    assert (again.status, again.code, again.body["next_seq"]) == (409, "in-progress", 8)
    assert [event["seq"] for event in log_of(service, run)["items"]] == [1, 2, 3, 4, 5, 6, 7]


def test_a_begin_whose_events_cannot_be_kept_begins_nothing(service: ServiceProcess, run: str) -> None:
    record(service, run)
    asked = [
        ("recording-gap", service.begin(run, epoch=1, events=[intent(2)])),
        ("blobs-missing", service.begin(run, epoch=1, events=[intent(1, arguments={"x": {"$blob": DIGEST}})])),
        ("run-taken-over", service.begin(run, epoch=2, events=[intent(1)])),
        ("not-found", service.begin(f"{run}-other", epoch=1)),
        ("invalid-request", service.begin(run, epoch=1, events=[delivery(1, 5)])),
        ("invalid-request", service.begin(run, events=[intent(1)])),
        ("invalid-request", service.begin(None, business_key=run, epoch=1)),
    ]
    assert [reply.code for _, reply in asked] == [code for code, _ in asked]
    assert service.ask("GET", f"/v1/effects?run={run}").body["items"] == []
    assert log_of(service, run)["items"] == []
    append(service, run, 1, intent(1))
    assert service.begin(run, epoch=1, events=[intent(1, "other")]).code == "recording-diverged"


def test_an_older_writer_begins_nothing_more_but_what_it_began_counts(service: ServiceProcess, run: str) -> None:
    record(service, run)
    granted = service.begin(run, epoch=1, events=[intent(1, "pay")])
    record(service, run)
    for events in ([], [intent(2)]):
        fenced = service.begin(run, arguments={"to": "eve"}, epoch=1, events=events)
        assert (fenced.status, fenced.code) == (409, "run-taken-over")
    assert append(service, run, 1, intent(2)).code == "run-taken-over"
    assert service.report("renew", granted).status == 200
    assert service.report("commit", granted, result="paid").status == 200
    newer = service.begin(run, epoch=2, events=[delivery(2, 1), intent(3, "pay")])
    assert (newer.body["decision"], newer.body["outcome"]) == ("replay", {"result": "paid"})


def test_a_begin_with_an_epoch_alone_is_told_where_the_log_goes_on(service: ServiceProcess, run: str) -> None:
    record(service, run)
    append(service, run, 1, intent(1))
    granted = service.begin(run, epoch=1)
    assert (granted.status, granted.body["next_seq"]) == (201, 2)


def test_begins_of_a_batch_bring_their_events(service: ServiceProcess, run: str) -> None:
    other = f"{run}-other"
    record(service, run)
    record(service, other)

    def begin(of: str, epoch: int, *events: object) -> dict[str, object]:
        body = {"tool": "pay", "arguments": {"to": of}, "attempt": str(uuid4()), "run": of}
        return {"path": "/v1/effects", "body": body | {"epoch": epoch, "events": events}}

    requests = [begin(run, 1, intent(1)), begin(other, 1, intent(1), intent(2)), begin(run, 9, intent(1))]
    answers = service.ask("POST", "/v1/batch", {"requests": requests}).body["answers"]
    assert [answer["status"] for answer in answers] == [201, 201, 409]
    assert [answer["body"].get("next_seq") for answer in answers] == [2, 3, None]
    assert answers[2]["body"]["type"] == "/problems/run-taken-over"
    assert [len(log_of(service, name)["items"]) for name in (run, other)] == [1, 2]


def test_appends_are_counted(service: ServiceProcess, run: str) -> None:
    record(service, run)
    append(service, run, 1, intent(1), intent(2))
    append(service, run, 7)
    text = service.ask("GET", "/metrics").body
    assert 'twiceshy_appends_total{answer="appended"}' in text
    assert 'twiceshy_appends_total{answer="run-taken-over"}' in text
    assert "twiceshy_events_total" in text
