"""What the registry redacts of a tool is in no log of a run either, whoever sends it and however it comes."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.leaks import places_of
from tests.service import Reply, ServiceProcess
from twiceshy import Guard
from twiceshy._recorder import Recorder
from twiceshy._replay import replay
from twiceshy_contract.events import Intent

A, B = "sesam-4111-1111", "sesam-5500-0000"
MARK = "[redacted]"
DIGEST = "ab" * 32
REDACTED: dict[str, Any] = {"redacted": ["/card", "/people/*/pin"]}
Find = Callable[[str], list[str]]


@pytest.fixture
def own(database_url: str) -> Iterator[ServiceProcess]:
    """A service with a database of the test's own."""
    with ServiceProcess(database_url) as process:
        yield process


@pytest.fixture
def find(database_url: str, tmp_path: Path) -> Find:
    return lambda text: places_of(text, database_url, tmp_path.glob("guard.db*"))


def declare(service: ServiceProcess, tool: str = "pay", **said: object) -> None:
    reply = service.ask("PUT", f"/v1/tools/{tool}", {"declared_by": "person"} | said)
    assert reply.status == 200, reply.body


def call(seq: int, arguments: object, tool: str = "pay", kind: str = "tool_call") -> dict[str, Any]:
    event = {"phase": "intent", "seq": seq, "at": seq, "kind": kind, "name": tool, "digest": DIGEST}
    return {**event, "arguments": arguments}


class Log:
    """A run's log as a client of one's own writes it."""

    def __init__(self, service: ServiceProcess) -> None:
        self.service = service
        self.run = f"run-{uuid4().hex[:12]}"
        self.epoch = service.ask("POST", "/v1/runs", {"run": self.run, "record": True}).body["epoch"]

    def append(self, *events: dict[str, Any], blobs: list[object] | None = None) -> Reply:
        texts = {digest_of(value): json.dumps(value) for value in blobs or []}
        body = {"epoch": self.epoch, "events": events, "blobs": texts}
        return self.service.ask("POST", f"/v1/runs/{self.run}/events", body)

    def arguments(self) -> list[object]:
        return [event["arguments"] for event in self.service.ask("GET", f"/v1/runs/{self.run}/events").body["items"]]

    def kept(self, *values: object) -> list[object]:
        digests = [digest_of(value) for value in values]
        found = self.service.ask("POST", "/v1/blobs/read", {"digests": digests}).body["blobs"]
        return [json.loads(text) for text in found.values()]


def digest_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def test_neither_an_append_nor_a_begin_brings_a_redacted_argument_into_the_database(
    own: ServiceProcess, find: Find
) -> None:
    declare(own, **REDACTED)
    declare(own, "look", **{"class": "read"}, **REDACTED)
    log = Log(own)
    secret, shown = {"to": "bob", "card": A, "people": [{"pin": A, "name": "x"}]}, {"to": "bob", "card": MARK}
    assert log.append(call(1, secret), call(2, {"card": A}, "look")).status == 200
    brought = {"epoch": log.epoch, "events": [call(3, secret), call(4, {"card": A}, "look")]}
    assert own.begin(log.run, "pay", secret, **brought).status == 201
    for again in (call(1, secret), own.ask("GET", f"/v1/runs/{log.run}/events").body["items"][0]):
        assert log.append(again).body["next_seq"] == 5, "the same again, and as it was read"
    assert log.append(call(1, secret | {"to": "eve"})).code == "recording-diverged"
    people = [{"pin": MARK, "name": "x"}]
    assert log.arguments() == [{**shown, "people": people}, {"card": MARK}, {**shown, "people": people}, {"card": MARK}]
    assert find(A) == []
    assert own.ask("GET", f"/v1/events?name=pay&argument=card&equals={A}").body["items"] == []


def test_of_what_is_kept_by_its_content_nothing_is_left_where_a_path_leads_into_it(
    own: ServiceProcess, find: Find
) -> None:
    declare(own, **REDACTED)
    log = Log(own)
    person, told = {"pin": A + "-" * 900, "name": "x"}, "told " * 300
    node = {"items": [{"$blob": digest_of(person)}, {"$blob": digest_of(told)}]}
    event = call(1, {"people": {"$list": digest_of(node)}, "note": {"$blob": digest_of(told)}})
    assert log.append(event, blobs=[person, told, node]).status == 200
    assert log.arguments() == [{"people": MARK, "note": {"$blob": digest_of(told)}}]
    assert log.kept(person, told, node) == [told]
    assert find(A) == []
    assert log.append(event, blobs=[person, told, node]).body["next_seq"] == 2


def test_redaction_that_is_added_in_an_open_run_counts_at_once_and_its_events_can_be_sent_again(
    own: ServiceProcess, find: Find
) -> None:
    log = Log(own)
    declare(own, attempts=3)
    before = call(1, {"card": B})
    assert log.append(before).status == 200
    declare(own, attempts=3, **REDACTED)
    assert log.append(before, call(2, {"card": A})).status == 200
    assert log.arguments() == [{"card": B}, {"card": MARK}]
    assert find(A) == []


def test_a_run_keeps_to_the_redaction_of_the_version_that_it_began_with(own: ServiceProcess, find: Find) -> None:
    declare(own, **REDACTED)
    old, new = Log(own), Log(own)
    assert own.begin(old.run, "pay", {"card": A}).status == 201
    declare(own, redacted=["/pin"])
    for log in (old, new):
        assert log.append(call(1, {"card": B if log is new else A, "pin": A})).status == 200
    assert (old.arguments(), new.arguments()) == ([{"card": MARK, "pin": MARK}], [{"card": B, "pin": MARK}])
    assert find(A) == []


def test_the_sdk_sends_no_log_with_what_the_registry_alone_redacts_and_replays_it(
    own: ServiceProcess, find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(own, **REDACTED)
    declare(own, "look", **{"class": "read"}, **REDACTED)
    sent: list[bytes] = []
    send = Recorder._asked

    def watched(recorder: Recorder, request: Any) -> Any:
        sent.append(request.body)
        return send(recorder, request)

    monkeypatch.setattr(Recorder, "_asked", watched)
    with Guard(own.url, spool=tmp_path / "spool", record=True) as guard:

        @guard.tool
        def pay(card: str, to: str) -> str:
            return f"paid {to}"

        @guard.tool(effect="read")
        def look(card: str, people: list[dict[str, str]]) -> int:
            return len(people)

        people = [{"pin": f"{A}-{at}", "name": "x" * 400} for at in range(4)]

        def agent(card: str = A) -> list[object]:
            with guard.run("r-1") as run:
                return [look(card, people), pay(card, "bob"), run.random()]

        told = agent()
        with guard.recording("r-1") as recording:
            calls = [event for event in recording.events if isinstance(event, Intent)]
            assert [recording.arguments(event) for event in calls] == [
                {"card": MARK, "people": [{"pin": MARK, "name": "x" * 400}] * 4},
                {"card": MARK, "to": "bob"},
                {},
            ]
            assert (replay(recording, agent).value, replay(recording, agent).is_same) == (told, True)
            changed = replay(recording, lambda: [look(A, []), agent()])
            assert not changed.is_same
    assert sent
    assert not any(A.encode() in body for body in sent)
    assert find(A) == []


def test_a_run_that_was_recorded_in_clear_replays_and_goes_on_after_the_redaction_was_added(
    own: ServiceProcess, find: Find
) -> None:
    stops = True

    def agent(guard: Guard, card: str) -> list[str]:
        @guard.tool(name="pay")
        def pay(card: str, to: str) -> str:
            return f"paid {to}"

        with guard.run("r-1", record=True, resume=True):
            first = pay(B, "bob")
            if stops:
                return [first]
            return [first, pay(card, "eve")]

    with Guard(own.url, spool=None) as guard:
        assert agent(guard, A) == ["paid bob"]
    declare(own, **REDACTED)
    stops = False
    with Guard(own.url, spool=None) as guard:
        assert agent(guard, A) == ["paid bob", "paid eve"]
        with guard.recording("r-1") as recording:
            assert replay(recording, lambda: agent(guard, A)).is_same
    assert find(A) == []
