"""`instrument` makes every client of a library record, and takes that back."""

import asyncio
import subprocess
import sys
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests

import twiceshy
from tests.unit.sdk.adapters.loopback import says, serving
from tests.unit.sdk.adapters.recorded import calls, recorded, same_again
from twiceshy import HttpOptions, SetupError


async def _aiohttp(url: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.json()


async def _async(library: Any, url: str) -> Any:
    async with library.AsyncClient() as client:
        return (await client.get(url)).json()


def everything(url: str) -> list[Any]:
    """Ask once with each library, as code does that knows nothing of a record."""
    return [
        httpx.get(url).json(),
        httpx2.get(url).json(),
        requests.get(url, timeout=10).json(),
        asyncio.run(_async(httpx, url)),
        asyncio.run(_async(httpx2, url)),
        asyncio.run(_aiohttp(url)),
    ]


def test_every_client_records_and_is_served() -> None:
    with serving(says({"a": 1})) as server:
        with twiceshy.instrument() as instrumented:
            live, recording = recorded(lambda: everything(server.url))
            assert instrumented.libraries == ("aiohttp", "httpx", "httpx2", "requests")
        assert len(calls(recording)) == len(live) == 6
        with twiceshy.instrument():
            assert same_again(recording, lambda: everything(server.url)) == live
        assert len(server.requests) == 6


def test_a_client_that_was_there_before_records_too() -> None:
    with httpx.Client() as client, serving(says({"a": 1})) as server, twiceshy.instrument("httpx"):
        _, recording = recorded(lambda: client.get(server.url).json())
    assert len(calls(recording)) == 1


def test_afterwards_nothing_is_recorded_any_more() -> None:
    with serving(says({"a": 1})) as server:
        before = (requests.Session.get_adapter, httpx.Client.__dict__["_transport_for_url"])
        twiceshy.instrument("httpx", "requests").undo()
        assert (requests.Session.get_adapter, httpx.Client.__dict__["_transport_for_url"]) == before
        with httpx.Client() as client:
            assert client.get(server.url).json() == {"a": 1}


def test_it_lasts_until_the_last_that_asked_for_it_is_done() -> None:
    first, second = twiceshy.instrument("httpx"), twiceshy.instrument("httpx")
    first.undo()
    first.undo()
    with serving(says({"a": 1})) as server:
        _, recording = recorded(lambda: httpx.get(server.url).json())
        second.undo()
    assert len(calls(recording)) == 1


def test_a_client_over_another_library_is_recorded_once() -> None:
    class Through(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, content=requests.get(str(request.url), timeout=10).content)

    def agent() -> Any:
        with httpx.Client(transport=Through()) as client:
            return client.get(server.url).json()

    with serving(says({"a": 1})) as server, twiceshy.instrument("httpx", "requests"):
        _, recording = recorded(agent)
        same_again(recording, agent)
    assert len(calls(recording)) == 1


def test_which_requests_are_calls_of_a_model_can_be_said() -> None:
    options = HttpOptions(
        is_model_call=lambda method, url: method == "POST" and "/generate" in url, secrets=frozenset({"tenant"})
    )

    def agent() -> Any:
        return httpx.post(f"{server.url}/generate?tenant=hidden", json={"model": "org/m", "tenant": "hidden"}).json()

    with serving(says({"a": 1})) as server, twiceshy.instrument("httpx", options=options):
        _, recording = recorded(agent)
    assert calls(recording) == [("llm_call", "org|m")]
    assert "hidden" not in str(recording.events[:])


def test_a_library_that_is_unknown_is_refused_by_name() -> None:
    slip: Any = "htpx"
    with pytest.raises(SetupError, match="knows no 'htpx'; did you mean httpx"):
        twiceshy.instrument(slip)


def test_a_library_that_is_missing_names_its_extra() -> None:
    code = (
        "import sys; sys.modules['requests'] = None\n"
        "import twiceshy\n"
        "try: twiceshy.instrument('httpx', 'requests')\n"
        "except ImportError as error: print(error)\n"
        "import httpx; print(httpx.Client._transport_for_url.__module__)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        'twiceshy.adapters.requests needs requests: pip install "twiceshy[requests]"',
        "httpx._client",
    ]


def test_no_library_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys, twiceshy; print([n for n in ('aiohttp','httpx','httpx2','openai','requests') if n in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
