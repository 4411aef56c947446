"""What a library puts into its error of a request's secrets is not recorded."""

from typing import Any

import aiohttp
import pytest
import requests

from tests.unit.sdk.adapters.httpx_family import LIBRARIES, Library
from tests.unit.sdk.adapters.loopback import Handler, free_url, serving
from tests.unit.sdk.adapters.recorded import outcome, recorded, replayed
from twiceshy._exchanges.asked import Asked
from twiceshy._exchanges.hidden import Hidden
from twiceshy.adapters.aiohttp import RecordingMiddleware
from twiceshy.adapters.requests import RecordingAdapter
from twiceshy_contract.outcomes import ErrorOutcome


def told(recording: Any) -> ErrorOutcome:
    error = outcome(recording).error
    assert isinstance(error, ErrorOutcome)
    return error


def test_a_refused_connection_of_requests_tells_no_secret_of_the_url() -> None:
    url = f"{free_url()}/x?api_key=hid%2Fden&q=1"

    def agent() -> Any:
        with requests.Session() as session:
            session.mount("http://", RecordingAdapter())
            with pytest.raises(requests.ConnectionError) as raised:
                session.get(url)
            return str(raised.value)

    live, recording = recorded(agent)
    assert "api_key=hid%2Fden&q=1" in live
    assert "/x?api_key=[redacted]&q=1" in told(recording).message
    assert "hid" not in str(recording.events[:])
    assert replayed(recording, agent).value == live.replace("hid%2Fden", "[redacted]")


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_a_header_that_the_family_of_httpx_refuses_is_not_told(name: str, is_async: bool) -> None:  # noqa: FBT001
    library = Library(name, is_async=is_async)

    def get(client: Any) -> Any:
        with pytest.raises(library.module.TransportError):
            client.get(url, headers=headers)

    async def get_async(client: Any) -> Any:
        with pytest.raises(library.module.TransportError):
            await client.get(url, headers=headers)

    with serving(lambda handler: handler.say(200, b"")) as server:
        url, headers = server.url, {"authorization": "Bearer hidden\n"}
        agent = library.agent(get, get_async)
        _, recording = recorded(agent)
    assert told(recording).message.startswith("Illegal header value b'[redacted]")
    assert "hidden" not in str(recording.events[:])


def test_an_answer_that_aiohttp_cannot_read_tells_no_secret_of_the_url() -> None:
    async def agent() -> Any:
        async with aiohttp.ClientSession(middlewares=(RecordingMiddleware(),)) as session:
            with pytest.raises(aiohttp.ClientResponseError) as raised:
                await session.get(url)
            return str(raised.value)

    def nonsense(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 banana\r\n\r\n")
        handler.close_connection = True

    with serving(nonsense) as server:
        url = f"{server.url}/x?token=hidden&q=1"
        live, recording = recorded(agent)
    assert "token=hidden" in live
    assert "/x?token=[redacted]&q=1" in told(recording).message
    assert "hidden" not in str(recording.events[:])


class Fault(Exception):
    """An error with a state."""


@pytest.mark.parametrize(
    "said",
    [
        "https://me:p%40ss@host/x?sig=abcdef%20g&pin=12",
        "/x?sig=abcdef%20g&pin=12 at host",
        "abcdef g",
        "abcdef+g",
        "p@ss",
        "p%40ss",
        "key-1234",
        "Basic key-1234",
        "t0p\nsecret",
    ],
)
def test_a_secret_is_taken_out_of_message_arguments_and_state_however_it_is_written(said: str) -> None:
    asked = Asked.of(
        "POST",
        "https://me:p%40ss@host/x?sig=abcdef%20g&pin=12",
        [("Authorization", "Basic key-1234"), ("content-type", "application/json")],
        b'{"password": "t0p\\nsecret", "n": 1}',
    )
    error = Fault(f"no: {said}", [said])
    vars(error).update(place={"at": said}, times=3)
    written = Hidden(asked, frozenset({"pin"})).written(error)
    for secret in ("p%40ss", "p@ss", "abcdef", "key-1234", "secret", "pin=12"):
        assert secret not in f"{written.message} {written.data}"
    assert "[redacted]" in written.message
    assert isinstance(written.data, dict)
    assert written.data["state"]["times"] == 3
