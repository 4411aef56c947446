"""10,000 events with 100 MB of payload pass through a small memory: exported, verified, read, and imported."""

import hashlib
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.sdk.logs import AT, head
from tests.unit.sdk.scripted import answered
from twiceshy import Guard, Recording
from twiceshy._commands.recordings_upload import Upload
from twiceshy._commands.service import Service
from twiceshy._transports.base import Reply, Request
from twiceshy_contract.events import Delivery, Intent

CALLS = 5000
FILLING = "x" * 20_000
MOST = 30 * 2**20


def text_of(call: int) -> str:
    return f'"{call:08d}{FILLING}"'


class LargeService:
    """A service that makes what it is asked for, and forgets what it is given."""

    def __init__(self) -> None:
        self.calls = {hashlib.sha256(text_of(call).encode()).hexdigest(): call for call in range(CALLS)}
        self.digests = list(self.calls)
        self.taken = self.taken_bytes = 0

    def send(self, request: Request) -> Reply:
        path, _, query = request.path.partition("?")
        if path == "/v1/blobs/read":
            asked = msgspec.json.decode(request.body or b"")["digests"]
            told = {digest: text_of(self.calls[digest]) for digest in asked[:100]}
            return answered(200, {"blobs": told, "left": asked[100:]})
        if request.method == "GET" and path.endswith("/events"):
            after = int(query.removeprefix("after="))
            events = [self.event(seq) for seq in range(after + 1, after + 1001)]
            return answered(200, {"items": events, "next": after + 1000 if after + 1000 < 2 * CALLS else None})
        if request.method == "POST" and path.endswith("/events"):
            body = msgspec.json.decode(request.body or b"")
            self.taken += len(body["events"])
            self.taken_bytes += sum(map(len, body["blobs"].values()))
            return answered(200, {"run": "large", "next_seq": self.taken + 1})
        known = head("large", 2 * CALLS) if path == "/v1/runs/large" else head("copy", epoch=1)
        return answered(200, known)

    def event(self, seq: int) -> Intent | Delivery:
        call = (seq - 1) // 2
        if seq % 2:
            return Intent(seq=seq, at=AT, kind="tool_call", name="read", digest="0" * 64, arguments={"n": call})
        value = {"$blob": self.digests[call]}
        return Delivery(seq=seq, at=AT, intent=seq - 1, outcome="result", value=value)

    async def send_async(self, request: Request) -> Reply:
        return self.send(request)

    def close(self) -> None:
        return None

    async def close_async(self) -> None:
        return None


def test_a_large_recording_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large: Any = LargeService()
    guard = Guard("http://guard.test", transport=large, spool=None)
    monkeypatch.setattr("twiceshy._commands.service.connect", lambda *_: large)
    tracemalloc.start()
    try:
        with guard.recording("large") as fetched:
            fetched.save(tmp_path / "large.jsonl.zst")
        with Recording.load(tmp_path / "large.jsonl.zst") as read:
            size = sum(len(str(read.value(event))) for event in read.events if isinstance(event, Delivery))
            added = Upload(Service("http://guard.test", None), read, "copy").run(lambda: None).added
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        guard.close()
    assert (size, added) == (CALLS * 20_008, 2 * CALLS)
    assert (large.taken, large.taken_bytes) == (2 * CALLS, CALLS * 20_010)
    assert peak < MOST, f"{peak / 2**20:.1f} MiB"
