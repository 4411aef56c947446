"""Sessions of aiohttp record what they send, and are served from the record without a connection."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.unit.sdk.adapters.loopback import PATIENCE, free_url, says, serving, streams
from tests.unit.sdk.adapters.recorded import arguments, calls, outcome, recorded, same_again, value
from twiceshy.adapters.aiohttp import RecordingMiddleware
from twiceshy.exceptions import RecordMismatch

PARTS = [b"data: one\n\n", b"data: two\n\n", b"data: three\n\n"]


def after_the_first(number: int, may_go_on: threading.Event) -> None:
    if number:
        may_go_on.wait(PATIENCE)


def asks(act: Callable[[aiohttp.ClientSession], Any]) -> Callable[[], Any]:
    async def agent() -> Any:
        async with aiohttp.ClientSession(middlewares=(RecordingMiddleware(),)) as session:
            return await act(session)

    return agent


def reads(url: str, most: int | None = None) -> Callable[[], Any]:
    async def act(session: aiohttp.ClientSession) -> Any:
        parts: list[bytes] = []
        try:
            async with session.get(url) as response:
                async for part in response.content.iter_any():
                    parts.append(part)
                    if len(parts) == most:
                        break
        except aiohttp.ClientError as error:
            return parts, type(error), str(error)
        return parts

    return asks(act)


def test_an_answer_is_served_from_the_record_where_nobody_listens_any_more() -> None:
    async def act(session: aiohttp.ClientSession) -> Any:
        async with session.post(f"{server.url}/a?token=hidden", json={"n": 1}, headers={"x-api-key": "hidden"}) as it:
            return it.status, it.reason, await it.text(), await it.json(), it.content_type, str(it.url), it.ok

    with serving(says({"zulu": 1, "alpha": "ü"})) as server:
        live, recording = recorded(asks(act))
    assert same_again(recording, asks(act)) == live
    assert calls(recording) == [("custom", f"POST {server.url.removeprefix('http://')}")]
    assert (arguments(recording)["url"], arguments(recording)["n"]) == (f"{server.url}/a?token=[redacted]", 1)
    assert "hidden" not in str(recording.events[:])


def test_a_bad_status_raises_again() -> None:
    async def act(session: aiohttp.ClientSession) -> Any:
        try:
            async with session.get(server.url, raise_for_status=True):
                return None
        except aiohttp.ClientResponseError as error:
            return error.status, error.message, str(error.request_info.url)

    with serving(says({"why": "no"}, 404)) as server:
        live, recording = recorded(asks(act))
    assert live == (404, "Not Found", server.url)
    assert same_again(recording, asks(act)) == live


def test_a_refused_connection_is_the_librarys_own_error_again() -> None:
    async def act(session: aiohttp.ClientSession) -> Any:
        try:
            await session.get(url)
        except aiohttp.ClientConnectorError as error:
            return str(error), error.errno, error.port, type(error.os_error)

    url = free_url()
    live, recording = recorded(asks(act))
    assert outcome(recording).outcome == "error"
    assert same_again(recording, asks(act)) == live


def test_the_first_part_reaches_the_code_before_the_server_sends_the_second() -> None:
    may_go_on = threading.Event()

    def before_each(number: int) -> None:
        if number:
            assert may_go_on.wait(PATIENCE)

    async def act(session: aiohttp.ClientSession) -> Any:
        seen = []
        async with session.get(server.url) as response:
            async for line in response.content:
                seen.append(line)
                may_go_on.set()
        return seen

    with serving(streams(PARTS[:2], before_each=before_each)) as server:
        live, recording = recorded(asks(act))
    assert live == [b"data: one\n", b"\n", b"data: two\n", b"\n"]
    assert value(recording)["stream"]["end"] == "complete"
    assert same_again(recording, asks(act)) == live


def test_a_stream_whose_reader_stops_is_recorded_so() -> None:
    may_end = threading.Event()
    with serving(streams(PARTS, before_each=lambda number: after_the_first(number, may_end))) as server:
        live, recording = recorded(reads(server.url, most=1))
        may_end.set()
    assert live == PARTS[:1]
    assert value(recording)["stream"]["end"] == "stopped"
    assert same_again(recording, reads(server.url, most=1)) == live
    with pytest.raises(RecordMismatch, match="stopped reading"):
        same_again(recording, reads(server.url))


def test_a_stream_that_breaks_breaks_again_after_the_same_parts() -> None:
    with serving(streams(PARTS[:2], breaks=True)) as server:
        agent = reads(server.url)
        live, recording = recorded(agent)
    assert (b"".join(live[0]), live[1]) == (b"".join(PARTS[:2]), aiohttp.ClientPayloadError)
    assert value(recording)["stream"]["end"] == "cut"
    assert same_again(recording, agent) == live


@pytest.mark.parametrize(
    "way",
    [
        lambda content: content.read(),
        lambda content: content.readline(),
        lambda content: content.readexactly(4),
        lambda content: content.readuntil(b"2"),
        lambda content: content.read(3),
        lambda content: _all(content.iter_chunked(4)),
        lambda content: _all(content.iter_chunks()),
    ],
    ids=["read", "readline", "readexactly", "readuntil", "read(3)", "iter_chunked", "iter_chunks"],
)
def test_each_way_to_read_gives_the_same_again(way: Callable[[Any], Any]) -> None:
    async def act(session: aiohttp.ClientSession) -> Any:
        async with session.get(server.url) as response:
            return await way(response.content)

    with serving(lambda handler: handler.say(200, b"01\n23456789", "text/plain")) as server:
        live, recording = recorded(asks(act))
    assert same_again(recording, asks(act)) == live


def test_requests_that_are_gathered_get_their_own_answers_again() -> None:
    order: list[int] = []

    async def act(session: aiohttp.ClientSession) -> Any:
        async def ask(number: int) -> Any:
            async with session.post(server.url, json={"n": number}) as response:
                answer = await response.json()
            order.append(number)
            return answer

        return await asyncio.gather(*(ask(number) for number in range(12)))

    with serving(lambda handler: handler.say(200, handler.body)) as server:
        live, recording = recorded(asks(act))
    first, order = order, []
    assert same_again(recording, asks(act)) == live == [{"n": number} for number in range(12)]
    assert order == first


def test_a_redirect_is_two_requests() -> None:
    async def act(session: aiohttp.ClientSession) -> Any:
        async with session.get(server.url) as response:
            return await response.json(), str(response.url), len(response.history)

    with serving(lambda handler: handler.say(302, b"", location="/there"), says({"here": True})) as server:
        live, recording = recorded(asks(act))
    assert live == ({"here": True}, f"{server.url}/there", 1)
    assert same_again(recording, asks(act)) == live


def test_a_body_that_comes_in_parts_is_sent_and_recorded() -> None:
    async def parts() -> Any:
        yield b'{"n":'
        yield b"1}"

    async def act(session: aiohttp.ClientSession) -> Any:
        async with session.post(server.url, data=parts(), headers={"content-length": "7"}) as response:
            return await response.text()

    with serving(lambda handler: handler.say(200, handler.body)) as server:
        live, recording = recorded(asks(act))
    assert live == '{"n":1}'
    assert arguments(recording)["n"] == 1
    assert same_again(recording, asks(act)) == live


async def _all(parts: Any) -> list[Any]:
    return [part async for part in parts]
