"""What an error of a tool says, where our own transport saw which requests it sent."""

import asyncio
from collections.abc import Callable
from typing import Any, Unpack

import aiohttp
import httpx
import httpx2
import pytest
import requests
from requests.adapters import HTTPAdapter

import twiceshy
from tests.unit.sdk.adapters.loopback import Loopback, free_url, says, serving
from tests.unit.sdk.adapters.recorded import GUARD, calls, recorded
from tests.unit.sdk.scripted import ScriptedService, executes, failed
from twiceshy import Guard, ToolOptions

Serve = Callable[..., tuple[Guard, ScriptedService]]
Send = Callable[[str], Any]


def by_requests(url: str) -> None:
    requests.post(url, timeout=10).raise_for_status()


def by_httpx(url: str) -> None:
    httpx.post(url).raise_for_status()


def by_httpx2(url: str) -> None:
    httpx2.post(url).raise_for_status()


def by_aiohttp(url: str) -> None:
    async def send() -> None:
        async with aiohttp.ClientSession(raise_for_status=True) as session, session.post(url):
            pass

    asyncio.run(send())


def by_async_httpx(url: str) -> None:
    async def send() -> None:
        async with httpx.AsyncClient() as client:
            (await client.post(url)).raise_for_status()

    asyncio.run(send())


SENDING = [by_requests, by_httpx, by_httpx2, by_aiohttp, by_async_httpx]


def told(serve: Serve, act: Callable[[], Any], **options: Unpack[ToolOptions]) -> str:
    """Call a tool that acts; return what the service is told of its error."""
    guard, service = serve(executes(), failed("pending"))
    said: ToolOptions = {"deadline_seconds": 0, **options}

    @guard.tool(**said)
    def pay() -> None:
        act()

    with twiceshy.instrument(), guard.run("booking-42"), pytest.raises(Exception):  # noqa: B017, PT011 - any of five
        pay()
    return str(service.bodies("/fail")[0]["kind"])


@pytest.mark.parametrize("send", SENDING)
def test_a_refused_connection_applied_nothing(serve: Serve, send: Send) -> None:
    assert told(serve, lambda: send(free_url())) == "not_applied"


@pytest.mark.parametrize("send", SENDING)
@pytest.mark.parametrize(("status", "kind"), [(404, "rejected"), (429, "not_applied"), (500, "unknown")])
def test_a_status_says_what_it_says_of_one_request(serve: Serve, send: Send, status: int, kind: str) -> None:
    with serving(says({}, status)) as server:
        assert told(serve, lambda: send(server.url)) == kind


@pytest.mark.parametrize("send", SENDING)
def test_of_two_requests_an_error_says_nothing(serve: Serve, send: Send) -> None:
    def twice(server: Loopback) -> None:
        send(server.url)
        send(free_url())

    with serving(says({})) as server:
        assert told(serve, lambda: twice(server)) == "unknown"


def test_a_refused_connection_to_something_else_does_not_undo_the_one_request(serve: Serve) -> None:
    def pay_and_note() -> None:
        by_httpx(server.url)
        raise ConnectionRefusedError(111, "the database is down")

    with serving(says({})) as server:
        assert told(serve, pay_and_note) == "unknown"


def test_a_status_of_something_else_does_not_undo_the_one_request(serve: Serve) -> None:
    class NotFound(Exception):
        status = 404

    def pay_and_look() -> None:
        by_httpx(server.url)
        raise NotFound

    with serving(says({})) as server:
        assert told(serve, pay_and_look) == "unknown"


def test_an_adapter_that_tries_again_by_itself_counts_as_several(serve: Serve) -> None:
    def send() -> None:
        with requests.Session() as session:
            session.mount("http://", HTTPAdapter(max_retries=2))
            session.post(free_url(), timeout=10)

    assert told(serve, send) == "unknown"


def test_the_word_that_a_tool_sends_one_request_is_not_believed_where_two_were_seen(serve: Serve) -> None:
    def twice() -> None:
        by_httpx(server.url)
        by_httpx(free_url())

    with serving(says({})) as server:
        assert told(serve, twice, one_request=True) == "unknown"


def test_that_word_holds_where_the_other_request_only_reads(serve: Serve) -> None:
    def look_and_pay() -> None:
        httpx.get(server.url)
        by_httpx(free_url())

    with serving(says({})) as server:
        assert told(serve, look_and_pay, one_request=True) == "not_applied"


def test_without_a_transport_that_sees_it_an_error_says_nothing(serve: Serve) -> None:
    guard, service = serve(executes(), failed("pending"))

    @guard.tool(deadline_seconds=0)
    def pay() -> None:
        by_httpx(free_url())

    with guard.run("booking-42"), pytest.raises(httpx.ConnectError):
        pay()
    assert service.bodies("/fail")[0]["kind"] == "unknown"


def test_what_a_guarded_tool_sends_is_part_of_its_own_event() -> None:
    @GUARD.tool(effect="read")
    def look() -> Any:
        return httpx.get(server.url).json()

    with serving(says({"a": 1})) as server, twiceshy.instrument("httpx"):
        _, recording = recorded(look)
    assert calls(recording) == [("tool_call", "look")]
