"""Recordings for tests, and a service that has some in its memory."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from tests.unit.sdk.scripted import answered, problem
from twiceshy import Recording
from twiceshy._payloads import Kept, write_arguments, write_value
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.events import Delivery, Event, Intent
from twiceshy_contract.refusals import JsonValue
from twiceshy_contract.runs import RunView

AT = 1_700_000_000_000_000


def head(run: str = "order-1042", events: int = 0, **fields: Any) -> RunView:
    said = {"id": "0199-1", "state": "open", "effects": 0, "started_at": "2026-10-12T14:00:00Z", "ended_at": None}
    return RunView(**{**said, "run": run, "events": events, **fields})


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def logged(calls: Sequence[tuple[Mapping[str, JsonValue], JsonValue]]) -> tuple[list[Event], dict[str, str]]:
    """Return the events of calls of a tool, one after the other, and what they keep by content."""
    kept, events = Kept(), list[Event]()
    for number, (arguments, value) in enumerate(calls):
        asked = write_arguments(arguments, kept)
        seq, payload = 2 * number + 1, asked.payload or msgspec.UNSET
        events.append(
            Intent(seq=seq, at=AT + seq, kind="tool_call", name="look", digest=asked.digest, arguments=payload)
        )
        events.append(
            Delivery(seq=seq + 1, at=AT + seq, intent=seq, outcome="result", took=7, value=write_value(value, kept))
        )
    return events, kept.pending


def conversation(turns: int = 3) -> Recording:
    """Return the recording of a conversation that sends all of itself with every call."""
    said: list[JsonValue] = [{"role": "user", "content": f"{number}: {'x' * 500}"} for number in range(turns * 3)]
    calls: list[tuple[dict[str, JsonValue], JsonValue]] = [
        ({"model": "m", "messages": said[: 3 * turn + 3]}, f"{turn}: {'y' * 2000}") for turn in range(turns)
    ]
    events, blobs = logged(calls)
    return Recording.from_events(head(events=len(events)), events, blobs)


def saved(recording: Recording, folder: Path, name: str = "run.jsonl") -> Path:
    recording.save(folder / name)
    return folder / name


class LogService:
    """A transport to a service that has logs in its memory, and gives and takes a few at a time."""

    page = 2
    blobs_at_once = 1

    def __init__(self, *recordings: Recording) -> None:
        self.runs: dict[str, RunView] = {}
        self.events: dict[str, list[bytes]] = {}
        self.blobs: dict[str, str] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.fails_at: int | None = None
        for recording in recordings:
            self.keep(recording)

    def keep(self, recording: Recording) -> None:
        """Have a recording."""
        self.runs[recording.run] = recording.head
        texts = [msgspec.json.encode(event) for event in recording.events]
        self.events[recording.run] = texts
        self.blobs |= {part.digest: part.text.decode() for part in recording.parts() if hasattr(part, "digest")}

    def __call__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer over HTTP."""
        reply = self.send(Request(method="POST" if method == "POST" else "GET", path=path, body=body or None))
        assert isinstance(reply, Reply)
        return reply

    def send(self, request: Request) -> Reply | NoReply:  # noqa: C901, PLR0911 - one answer a route
        """Answer."""
        self.asked.append((request.method, request.path, msgspec.json.decode(request.body or b"null")))
        if len(self.asked) == self.fails_at:
            return problem("store-unavailable", 503)
        parts = [unquote(part) for part in urlsplit(request.path).path.split("/")[2:]]
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}
        body = msgspec.json.decode(request.body or b"null")
        match request.method, parts:
            case "GET", ["runs"]:
                return answered(200, {"items": [*self.runs.values()][::-1], "next": None})
            case "POST", ["runs"]:
                return answered(200, self._opened(body))
            case "POST", ["blobs", "read"]:
                return answered(200, self._read(body["digests"]))
            case _, ["runs", run, *_] if run not in self.runs:
                return problem("not-found", 404, detail=f"There is no run {run!r}. Check the key, name or path.")
            case "GET", ["runs", run]:
                return answered(200, self.runs[run])
            case "GET", ["runs", run, "events"]:
                return self._page(run, int(query["after"]))
            case "POST", ["runs", run, "events"]:
                return self._appended(run, body)
            case "POST", ["runs", run, "facts"]:
                return answered(200, self._changed(run, facts={**self.runs[run].facts, **body["facts"]}))
            case "POST", ["runs", run, "finish"]:
                return answered(200, self._changed(run, state=body.get("as", "finished")))
            case _:
                raise AssertionError(f"{request.method} {request.path}")

    async def send_async(self, request: Request) -> Reply | NoReply:
        return self.send(request)

    def close(self) -> None:
        return None

    async def close_async(self) -> None:
        return None

    def _changed(self, run: str, **fields: Any) -> RunView:
        self.runs[run] = msgspec.structs.replace(self.runs[run], **fields)
        return self.runs[run]

    def _opened(self, body: dict[str, Any]) -> RunView:
        run = self.runs.setdefault(body["run"], head(body["run"]))
        self.events.setdefault(run.run, [])
        epoch = run.epoch + bool(body.get("record"))
        return self._changed(run.run, epoch=epoch, parent=body.get("parent"))

    def _page(self, run: str, after: int) -> Reply:
        items = [msgspec.Raw(text) for text in self.events[run][after : after + self.page]]
        reached = after + len(items)
        return answered(200, {"items": items, "next": reached if reached < len(self.events[run]) else None})

    def _read(self, digests: list[str]) -> dict[str, Any]:
        told = [digest for digest in digests if digest in self.blobs][: self.blobs_at_once]
        left = [digest for digest in digests if digest in self.blobs and digest not in told]
        return {"blobs": {digest: self.blobs[digest] for digest in told}, "left": left}

    def _appended(self, run: str, body: dict[str, Any]) -> Reply:
        assert body["epoch"] == self.runs[run].epoch
        for digest, text in body["blobs"].items():
            assert digest_of(text) == digest
        self.blobs |= body["blobs"]
        for event in body["events"]:
            assert event["seq"] == len(self.events[run]) + 1
            self.events[run].append(msgspec.json.encode(event))
        self._changed(run, events=len(self.events[run]))
        return answered(200, {"run": run, "next_seq": len(self.events[run]) + 1})
