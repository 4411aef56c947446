"""The log sink on real files."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from outbox_relay.sinks import log
from outbox_relay.sinks.base import Delivered, Retryable, SinkRefused, Unknown
from outbox_relay.sinks.log import LogSink
from tests.integration.sinks.conftest import MakeOutgoing
from tests.integration.sinks.webhook_receivers import Webhooks
from twiceshy_contract.destinations import LogDestination


def opened(path: Path, **settings: Any) -> LogSink:
    return LogSink("orders", LogDestination(path=str(path), **settings), path.parent)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_a_message_is_one_line(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    path = tmp_path / "out.jsonl"
    outgoing = make_outgoing(lane="customer-7")
    assert await opened(path).send(outgoing) == Delivered(receipt=str(path))
    assert lines(path) == [
        {
            "id": f"{outgoing.message}.1",
            "destination": "orders",
            "type": "order.created",
            "lane": "customer-7",
            "content_type": "application/json",
            "headers": {"X-Trace": "abc"},
            "body": {"order": 7},
        }
    ]


async def test_a_body_that_is_not_json_is_text_on_the_same_line(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    path = tmp_path / "out.jsonl"
    sink = opened(path)
    await sink.send(make_outgoing(content_type="text/plain", body=b"two\nlines"))
    await sink.send(make_outgoing(content_type="application/json", body=b"{broken"))
    await sink.send(make_outgoing(content_type="application/octet-stream", body=b"\xff"))
    assert [line["body"] for line in lines(path)] == ["two\nlines", "{broken", "\\xff"]


async def test_many_at_once_are_a_line_each(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    path = tmp_path / "out.jsonl"
    first, second = opened(path), opened(path)
    messages = [make_outgoing() for _ in range(400)]
    sends = [sink.send(outgoing) for sink, outgoing in zip([first, second] * 200, messages, strict=True)]
    results = await asyncio.gather(*sends)
    assert results == [Delivered(receipt=str(path))] * 400
    assert sorted(str(line["id"]) for line in lines(path)) == sorted(outgoing.identity for outgoing in messages)


async def test_a_line_that_was_torn_spoils_no_other(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b'{"id":"torn')
    await opened(path).send(make_outgoing())
    torn, whole = path.read_text(encoding="utf-8").splitlines()
    assert torn == '{"id":"torn'
    assert json.loads(whole)["destination"] == "orders"


async def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    path = tmp_path / "out.jsonl"
    sink = opened(path)
    await sink.send(make_outgoing())
    path.rename(tmp_path / "out.1.jsonl")
    await sink.send(make_outgoing())
    assert len(lines(path)) == 1


async def test_a_full_disk_has_nothing(make_outgoing: MakeOutgoing) -> None:
    result = await opened(Path("/dev/full")).send(make_outgoing())
    assert isinstance(result, Retryable)
    assert result.is_throttled


async def test_a_folder_that_is_missing_is_said(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    sink = opened(tmp_path / "missing" / "out.jsonl")
    result = await sink.send(make_outgoing())
    seen = await sink.check()
    assert isinstance(result, Retryable)
    assert "No such file or directory" in result.why
    assert (seen.ok, seen.detail) == (False, f"{tmp_path / 'missing' / 'out.jsonl'}: No such file or directory")


async def test_a_pipe_that_nobody_reads_holds_nobody_up(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert isinstance(await opened(path).send(make_outgoing()), Retryable)


async def test_a_check_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    seen = await opened(path).check()
    assert (seen.ok, seen.detail) == (True, f"{path} can be written")
    assert not path.exists()


async def test_closing_writes_what_waits(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    path = tmp_path / "out.jsonl"
    sink = opened(path)
    sending = asyncio.create_task(sink.send(make_outgoing()))
    await asyncio.sleep(0)
    await sink.close()
    assert len(lines(path)) == 1
    assert isinstance(await sending, Delivered)


@pytest.mark.parametrize("path", ["/etc/cron.d/x", "../x", "logs/../../x", "link/x", ".", "", "logs/../x", "a\0b"])
def test_no_file_outside_the_folder_is_written(path: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(SinkRefused, match="TWICESHY_RELAY_FILES"):
        LogSink("orders", LogDestination(path=path), tmp_path)


async def test_a_path_is_taken_from_the_folder_on(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    (tmp_path / "logs").mkdir()
    for path in ("logs/out.jsonl", str(tmp_path / "logs" / "out.jsonl")):
        await LogSink("orders", LogDestination(path=path), tmp_path).send(make_outgoing())
    assert len(lines(tmp_path / "logs" / "out.jsonl")) == 2


async def test_a_file_of_another_kind_is_not_spoilt(tmp_path: Path, make_outgoing: MakeOutgoing) -> None:
    path = tmp_path / "twiceshy.db"
    path.write_bytes(b"SQLite format 3\0")
    result = await opened(path).send(make_outgoing())
    assert result == Retryable(why=f"{path}: it holds something else than such lines; name another file")
    assert not (await opened(path).check()).ok
    assert path.read_bytes() == b"SQLite format 3\0"


async def test_what_waits_behind_a_write_that_hangs_was_not_written(
    tmp_path: Path, make_outgoing: MakeOutgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    written = log._append

    def hang(file: int, lines: bytes) -> None:
        begun.set()
        go_on.wait(10)
        written(file, lines)

    monkeypatch.setattr(log, "_append", hang)
    path = tmp_path / "out.jsonl"
    sink = opened(path, timeout_seconds=0.3)
    first = asyncio.create_task(sink.send(make_outgoing()))
    assert await asyncio.to_thread(begun.wait, 10)
    second = asyncio.create_task(sink.send(make_outgoing()))
    assert (type(await first), type(await second)) == (Unknown, Retryable)
    go_on.set()
    await sink.close()
    assert len(lines(path)) == 1


async def test_names_that_hang_hold_up_no_file(
    tmp_path: Path, make_outgoing: MakeOutgoing, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> None:
        asked.set()
        answer.wait(10)
        raise OSError(None, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    sinks = [webhooks.open(f"http://h{number}.example/", timeout_seconds=60) for number in range(40)]
    sends = [asyncio.create_task(sink.send(make_outgoing())) for sink in sinks]
    assert await asyncio.to_thread(asked.wait, 10)
    assert isinstance(await opened(tmp_path / "out.jsonl").send(make_outgoing()), Delivered)
    answer.set()
    assert {type(result) for result in await asyncio.gather(*sends)} == {Retryable}


def test_without_a_path_lines_go_to_standard_output() -> None:
    program = """
import asyncio
from pathlib import Path
from uuid import UUID
from outbox_relay.sinks.base import Outgoing
from outbox_relay.sinks.log import LogSink
from twiceshy_contract.destinations import LogDestination

outgoing = Outgoing(message=UUID(int=7), epoch=2, number=1, destination="orders", content_type="text/plain",
                    body=b"hello", headers={}, staged_at=0)
print(asyncio.run(LogSink("orders", LogDestination(), Path()).send(outgoing)).receipt, flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    line, receipt = done.stdout.splitlines()
    assert json.loads(line) == {
        "id": "00000000-0000-0000-0000-000000000007.2",
        "destination": "orders",
        "content_type": "text/plain",
        "headers": {},
        "body": "hello",
    }
    assert receipt == "standard output"
