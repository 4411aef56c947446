"""What is kept of a request, and of an answer."""

from typing import Any

import pytest

from twiceshy._exchanges.answers import read_answer, written_body
from twiceshy._exchanges.asked import Asked, boundary_of
from twiceshy._exchanges.options import DEFAULT, HttpOptions
from twiceshy.exceptions import SetupError


def asked(body: bytes = b"", kind: str = "", method: str = "post", url: str = "https://api.test/v1/things") -> Asked:
    headers = [("Content-Type", kind), ("Authorization", "hidden"), ("User-Agent", "x")]
    return Asked.of(method, url, [(name, value) for name, value in headers if value], body)


def arguments(body: bytes, kind: str = "application/json", options: HttpOptions = DEFAULT) -> dict[str, Any]:
    kept = boundary_of(asked(body, kind), options).arguments
    return {name: value for name, value in kept.items() if name not in ("method", "url", "headers")}


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings/"]
)
def test_a_request_to_a_model_is_named_by_it(path: str) -> None:
    boundary = boundary_of(asked(b'{"model":"org/gpt"}', "application/json", url=f"https://api.test{path}"), DEFAULT)
    assert (boundary.kind, boundary.name) == ("llm_call", "org|gpt")


def test_without_a_model_in_the_body_the_name_is_that_of_the_request() -> None:
    boundary = boundary_of(asked(b"{}", "application/json", url="https://api.test/v1/messages"), DEFAULT)
    assert (boundary.kind, boundary.name) == ("llm_call", "POST api.test")


def test_another_request_is_named_by_its_method_and_host() -> None:
    boundary = boundary_of(asked(method="get", url="https://me:hidden@api.test:8443/v1/messages"), DEFAULT)
    assert (boundary.kind, boundary.name) == ("custom", "GET api.test:8443")


@pytest.mark.parametrize(
    ("body", "kind", "kept"),
    [
        (b'{"a":1,"$blob":"x"}', "application/json", {"a": 1, "$$blob": "x"}),
        (b'{"url":"u"}', "application/json", {"body": {"url": "u"}}),
        (b"[1,2]", "application/json", {"body": [1, 2]}),
        (b"12345678901234567890", "application/json", {"body": {"$int": "12345678901234567890"}}),
        (b"{not json", "application/json", {"body": "{not json"}),
        (b"\xff", "", {"body": {"$b64": "/w=="}}),
        (b"", "", {}),
        (
            b"grant=x&client_secret=hidden&scope=",
            "application/x-www-form-urlencoded",
            {"body": "grant=x&client_secret=[redacted]&scope="},
        ),
        (b'{"password":"hidden","user":"me"}', "application/json", {"password": "[redacted]", "user": "me"}),
    ],
)
def test_a_body_is_kept(body: bytes, kind: str, kept: dict[str, Any]) -> None:
    assert arguments(body, kind) == kept


def test_only_headers_that_say_what_is_meant_are_kept() -> None:
    assert boundary_of(asked(b"a", "text/plain"), DEFAULT).arguments["headers"] == {"content-type": "text/plain"}


def test_more_names_can_be_secret() -> None:
    more = HttpOptions(secrets=frozenset({"pin"}))
    assert arguments(b'{"pin":"hidden"}', options=more) == {"pin": "[redacted]"}
    url = boundary_of(asked(url="https://api.test/?PIN=hidden&a=b"), more).arguments["url"]
    assert url == "https://api.test/?PIN=[redacted]&a=b"


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b'{"b":1,"a":[1.5,null]}', {"b": 1, "a": [1.5, None]}),
        (b'{"a":1,"a":2}', '{"a":1,"a":2}'),
        (b'{"a":1E5}', '{"a":1E5}'),
        (b'{"a": 1}', '{"a": 1}'),
        (b"text", "text"),
        (b'"text"', '"text"'),
        (b"\xff", {"$b64": "/w=="}),
        (b'{"access_token":"hidden","n":1}', {"access_token": "[redacted]", "n": 1}),
    ],
)
def test_a_body_is_kept_as_json_only_where_that_gives_the_same_bytes_again(body: bytes, kept: Any) -> None:
    written: Any = written_body(200, {}, body)
    assert written["body"] == kept


def test_an_override_may_be_the_body_alone() -> None:
    answer = read_answer({"choices": []}, "gpt-5")
    assert (answer.status, answer.headers, answer.chunks) == (
        200,
        {"content-type": "application/json"},
        [b'{"choices":[]}'],
    )


def test_an_override_with_a_status_is_the_whole_answer() -> None:
    answer = read_answer({"status": 404, "body": "gone"}, "gpt-5")
    assert (answer.status, answer.headers, answer.chunks) == (404, {}, [b"gone"])


@pytest.mark.parametrize("wrong", [{"status": 200, "headers": []}, {"status": 200, "stream": {"chunks": 1}}])
def test_an_override_that_is_no_answer_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="gpt-5"):
        read_answer(wrong, "gpt-5")
