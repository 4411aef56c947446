"""Clients of httpx and httpx2 record what they send, and are served from the record without a connection."""

import asyncio
import gzip
import json
import zlib
from typing import Any

import httpx
import pytest

from tests.unit.sdk.adapters.httpx_family import LIBRARIES, Library
from tests.unit.sdk.adapters.loopback import Handler, free_url, says, serving
from tests.unit.sdk.adapters.recorded import arguments, calls, outcome, recorded, replayed, same_again, value
from twiceshy._replay import replay
from twiceshy.adapters import httpx as httpx_adapter


@pytest.fixture(params=[(name, is_async) for name in LIBRARIES for is_async in (False, True)], ids=str)
def library(request: pytest.FixtureRequest) -> Library:
    name, is_async = request.param
    return Library(name, is_async=is_async)


def test_an_answer_is_served_from_the_record_where_nobody_listens_any_more(library: Library) -> None:
    with serving(says({"zulu": 1, "alpha": [1.0, "ü"]}, x_request_id="r-1")) as server:
        agent = library.asks("GET", f"{server.url}/orders?page=2")
        live, recording = recorded(agent)
        assert len(server.requests) == 1
    again = same_again(recording, agent)
    assert (again.status_code, again.text, again.headers["x-request-id"]) == (200, live.text, "r-1")
    assert list(again.json()) == ["zulu", "alpha"]
    assert calls(recording) == [("custom", f"GET {live.url.host}:{live.url.port}")]


def test_no_secret_of_a_request_is_recorded(library: Library) -> None:
    with serving(says({}, set_cookie="session=hidden")) as server:
        host = server.url.removeprefix("http://")
        agent = library.asks(
            "POST",
            f"http://user:hidden@{host}/v1/things?api_key=hidden&page=2&Token=hidden",
            headers={"authorization": "hidden", "x-api-key": "hidden", "cookie": "a=hidden", "accept": "text/plain"},
            json={"client_secret": "hidden", "grant": "x"},
        )
        _, recording = recorded(agent)
        assert server.requests[0].json["client_secret"] == "hidden"
    assert arguments(recording) == {
        "method": "POST",
        "url": f"http://{host}/v1/things?api_key=[redacted]&page=2&Token=[redacted]",
        "headers": {"accept": "text/plain", "content-type": "application/json"},
        "client_secret": "[redacted]",
        "grant": "x",
    }
    assert "hidden" not in str(recording.events[:])
    same_again(recording, agent)


def test_what_changes_by_itself_is_not_matched(library: Library) -> None:
    with serving(says({})) as server:
        url = server.url
        _, recording = recorded(library.asks("POST", url, json={"a": 1}, headers={"idempotency-key": "1", "x-id": "1"}))
    same_again(recording, library.asks("POST", url, json={"a": 1}, headers={"idempotency-key": "2", "user-agent": "x"}))


def test_a_form_with_a_file_is_the_same_again_although_its_boundary_is_drawn_anew(library: Library) -> None:
    with serving(says({})) as server:
        agent = library.asks("POST", server.url, files={"scan": ("a.txt", b"text", "text/plain")})
        _, recording = recorded(agent)
    same_again(recording, agent)


def test_another_request_than_the_recorded_one_is_not_sent(library: Library) -> None:
    with serving(says({})) as server:
        _, recording = recorded(library.asks("POST", server.url, json={"amount": 1}))
        again = replayed(recording, library.asks("POST", server.url, json={"amount": 2}))
        assert len(server.requests) == 1
    assert not again.is_same
    assert again.divergences[0].class_ == "arguments"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_an_encoded_body_is_recorded_as_its_text(library: Library, encoding: str) -> None:
    body = b'{"a":1,"b":"' + b"x" * 500 + b'"}'
    packed = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
    with serving(lambda handler: handler.say(200, packed, content_encoding=encoding)) as server:
        agent = library.asks("GET", server.url)
        live, recording = recorded(agent)
    assert live.content == body
    assert value(recording)["body"] == json.loads(body)
    assert same_again(recording, agent).content == body


def test_bytes_are_the_same_again(library: Library) -> None:
    with serving(lambda handler: handler.say(200, b"\xff\x00\xfe", "image/png")) as server:
        agent = library.asks("GET", server.url)
        _, recording = recorded(agent)
    assert value(recording)["body"] == {"$b64": "/wD+"}
    assert same_again(recording, agent).content == b"\xff\x00\xfe"


def test_a_redirect_is_two_requests(library: Library) -> None:
    def moved(handler: Handler) -> None:
        handler.say(302, b"", location="/there?token=hidden")

    with serving(moved, says({"here": True})) as server:
        agent = library.asks("GET", f"{server.url}/here", follow_redirects=True)
        _, recording = recorded(agent)
    assert [arguments(recording, call)["url"].removeprefix(server.url) for call in (0, 1)] == [
        "/here",
        "/there?token=[redacted]",
    ]
    assert same_again(recording, agent).json() == {"here": True}


def test_a_refused_connection_is_the_librarys_own_error_again(library: Library) -> None:
    agent = library.reads(free_url())
    live, recording = recorded(agent)
    assert live[1] is library.module.ConnectError
    assert outcome(recording).outcome == "error"
    assert same_again(recording, agent) == live


def test_an_answer_that_a_transport_makes_up_is_recorded(library: Library) -> None:
    module, adapter = library.module, library.adapter
    mock = module.MockTransport(lambda request: module.Response(200, json={"path": request.url.path}))

    def act() -> Any:
        with module.Client(transport=adapter.RecordingTransport(mock)) as client:
            return client.get("http://api.test/a").json()

    async def act_async() -> Any:
        async with module.AsyncClient(transport=adapter.AsyncRecordingTransport(mock)) as client:
            return (await client.get("http://api.test/a")).json()

    agent = act_async if library.is_async else act
    live, recording = recorded(agent)
    assert live == {"path": "/a"}
    assert same_again(recording, agent) == live


def test_outside_of_a_recorded_run_a_client_does_what_it_did(library: Library) -> None:
    with serving(says({"a": 1})) as server:
        answer = library.asks("GET", server.url)()
        response = asyncio.run(answer) if library.is_async else answer
    assert response.json() == {"a": 1}


def test_a_request_outside_of_the_run_is_not_sent_in_a_replay() -> None:
    def agent() -> Any:
        with httpx.Client(transport=httpx_adapter.RecordingTransport()) as client:
            return client.get(url).json()

    with serving(says({"a": 1})) as server:
        url = server.url
        _, recording = recorded(agent)
        with pytest.raises(BaseException, match="outside"):
            _raised(replay(recording, agent))
        assert len(server.requests) == 1


def _raised(again: Any) -> None:
    if again.error is not None:
        raise again.error
    assert again.is_same, again.report()
