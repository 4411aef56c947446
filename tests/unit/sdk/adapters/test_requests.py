"""Sessions of requests record what they send, and are served from the record without a connection."""

import io
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.unit.sdk.adapters.loopback import PATIENCE, free_url, says, serving, streams
from tests.unit.sdk.adapters.recorded import arguments, outcome, recorded, same_again, value
from twiceshy.adapters.requests import RecordingAdapter
from twiceshy.exceptions import RecordMismatch

PARTS = [b"data: one\n\n", b"data: two\n\n", b"data: three\n\n"]


def keeps_waiting(done: threading.Event) -> None:
    done.wait(PATIENCE)


def asks(act: Callable[[requests.Session], Any]) -> Callable[[], Any]:
    def agent() -> Any:
        with requests.Session() as session:
            session.mount("http://", RecordingAdapter())
            return act(session)

    return agent


def reads(url: str, most: int | None = None) -> Callable[[], Any]:
    def act(session: requests.Session) -> Any:
        parts: list[bytes] = []
        try:
            with session.get(url, stream=True, timeout=PATIENCE) as response:
                for part in response.iter_content(None):
                    parts.append(part)
                    if len(parts) == most:
                        break
        except requests.RequestException as error:
            return parts, type(error), str(error)
        return parts

    return asks(act)


def test_an_answer_is_served_from_the_record_where_nobody_listens_any_more() -> None:
    with serving(says({"zulu": 1, "alpha": "ü"})) as server:
        agent = asks(lambda session: session.post(f"{server.url}/a?token=hidden", json={"n": 1}, auth=("me", "hidden")))
        live, recording = recorded(agent)
    again = same_again(recording, agent)
    assert (again.status_code, again.reason, again.text, again.url) == (200, "OK", live.text, live.url)
    assert again.request.method == "POST"
    assert arguments(recording)["url"] == f"{server.url}/a?token=[redacted]"
    assert "hidden" not in str(recording.events[:])


def test_a_bad_status_raises_again() -> None:
    with serving(says({"why": "no"}, 404)) as server:
        agent = asks(lambda session: session.get(server.url))
        _, recording = recorded(agent)
    with pytest.raises(requests.HTTPError, match="404 Client Error: Not Found"):
        same_again(recording, agent).raise_for_status()


def test_a_refused_connection_is_the_librarys_own_error_again() -> None:
    agent = reads(free_url())
    live, recording = recorded(agent)
    assert live[1] is requests.ConnectionError
    assert outcome(recording).outcome == "error"
    assert same_again(recording, agent) == live


def test_a_time_out_knows_its_request_again() -> None:
    done = threading.Event()

    def act(session: requests.Session) -> Any:
        try:
            session.get(server.url, timeout=0.05)
        except requests.Timeout as error:
            return type(error), error.request.url if error.request else None, error.response

    with serving(lambda _: keeps_waiting(done)) as server:
        live, recording = recorded(asks(act))
        done.set()
    assert live == (requests.ReadTimeout, f"{server.url}/", None)
    assert same_again(recording, asks(act)) == live


def test_the_first_part_reaches_the_code_before_the_server_sends_the_second() -> None:
    may_go_on = threading.Event()

    def before_each(number: int) -> None:
        if number:
            assert may_go_on.wait(PATIENCE)

    def act(session: requests.Session) -> Any:
        seen = []
        with session.get(server.url, stream=True, timeout=PATIENCE) as response:
            for line in response.iter_lines(chunk_size=1):
                seen.append(line)
                may_go_on.set()
        return seen

    with serving(streams(PARTS[:2], before_each=before_each)) as server:
        live, recording = recorded(asks(act))
    assert live == [b"data: one", b"", b"data: two", b""]
    assert same_again(recording, asks(act)) == live


def test_a_stream_whose_reader_stops_is_recorded_so() -> None:
    with serving(streams(PARTS)) as server:
        live, recording = recorded(reads(server.url, most=1))
    assert value(recording)["stream"]["end"] == "stopped"
    assert same_again(recording, reads(server.url, most=1)) == live
    with pytest.raises(RecordMismatch, match="stopped reading"):
        same_again(recording, reads(server.url))


def test_a_stream_that_breaks_breaks_again_after_the_same_parts() -> None:
    with serving(streams(PARTS[:2], breaks=True)) as server:
        agent = reads(server.url)
        live, recording = recorded(agent)
    assert (live[0], live[1]) == (PARTS[:2], requests.exceptions.ChunkedEncodingError)
    assert value(recording)["stream"]["end"] == "cut"
    parts, kind, _ = same_again(recording, agent)
    assert (parts, kind) == (live[0], live[1])


@pytest.mark.parametrize("kind", ["file", "generator", "text"])
def test_a_body_that_can_be_read_once_is_sent_and_recorded(kind: str) -> None:
    def act(session: requests.Session) -> Any:
        data: Any = {"file": io.BytesIO(b"abc"), "generator": iter([b"a", b"bc"]), "text": "abc"}[kind]
        return session.post(server.url, data=data).json()

    def echo(handler: Any) -> None:
        body = handler.body
        if not body:  # it comes in parts
            while size := int(handler.rfile.readline(), 16):
                body += handler.rfile.read(size)
                handler.rfile.readline()
            handler.rfile.readline()
        handler.say(200, json.dumps(body.decode()).encode())

    with serving(echo) as server:
        live, recording = recorded(asks(act))
    assert live == "abc"
    assert arguments(recording)["body"] == "abc"
    assert same_again(recording, asks(act)) == "abc"


def test_what_is_read_off_the_raw_answer_is_the_same_again() -> None:
    def act(session: requests.Session) -> Any:
        with session.get(server.url, stream=True) as response:
            return [response.raw.read(4), response.raw.read(4), response.raw.read()]

    with serving(lambda handler: handler.say(200, b"0123456789", "text/plain")) as server:
        live, recording = recorded(asks(act))
    assert live == [b"0123", b"4567", b"89"]
    assert same_again(recording, asks(act)) == live
