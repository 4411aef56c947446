"""What comes in parts through httpx and httpx2 goes on at once, and comes from the record in the same parts."""

import asyncio
import json
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.unit.sdk.adapters.httpx_family import LIBRARIES, Library
from tests.unit.sdk.adapters.loopback import PATIENCE, Handler, says, serving, streams
from tests.unit.sdk.adapters.recorded import recorded, replayed, same_again, value
from twiceshy._replay_errors import ReplayStopped
from twiceshy.exceptions import RecordMismatch

PARTS = [b"data: one\n\n", b"data: two\n\n", b"data: three\n\n"]


@pytest.fixture(params=[(name, is_async) for name in LIBRARIES for is_async in (False, True)], ids=str)
def library(request: pytest.FixtureRequest) -> Library:
    name, is_async = request.param
    return Library(name, is_async=is_async)


def test_the_first_part_reaches_the_code_before_the_server_sends_the_second(library: Library) -> None:
    may_go_on = threading.Event()

    def before_each(number: int) -> None:
        if number:
            assert may_go_on.wait(PATIENCE)

    seen: list[bytes] = []

    def act(client: Any) -> Any:
        with client.stream("GET", server.url) as response:
            for part in response.iter_bytes():
                seen.append(part)
                may_go_on.set()

    async def act_async(client: Any) -> Any:
        async with client.stream("GET", server.url) as response:
            async for part in response.aiter_bytes():
                seen.append(part)
                may_go_on.set()

    with serving(streams(PARTS[:2], before_each=before_each)) as server:
        _, recording = recorded(library.agent(act, act_async))
    assert seen == PARTS[:2]
    stream = value(recording)["stream"]
    assert [part for _, part in stream["chunks"]] == ["data: one\n\n", "data: two\n\n"]
    assert stream["chunks"][0][0] <= stream["chunks"][1][0]
    assert stream["end"] == "complete"
    seen.clear()
    same_again(recording, library.agent(act, act_async))
    assert seen == PARTS[:2]


def test_a_stream_that_is_encoded_is_decoded_again(library: Library) -> None:
    packing = zlib.compressobj(wbits=31)
    packed = [packing.compress(part) + packing.flush(zlib.Z_SYNC_FLUSH) for part in PARTS]

    def answer(handler: Handler) -> None:
        handler.begin(content_encoding="gzip")
        for part in packed:
            handler.part(part)
        handler.part(packing.flush())
        handler.end()

    def act(client: Any) -> Any:
        with client.stream("GET", server.url) as response:
            return list(response.iter_lines())

    async def act_async(client: Any) -> Any:
        async with client.stream("GET", server.url) as response:
            return [line async for line in response.aiter_lines()]

    agent = library.agent(act, act_async)
    with serving(answer) as server:
        live, recording = recorded(agent)
    assert [line for line in live if line] == ["data: one", "data: two", "data: three"]
    assert same_again(recording, agent) == live


def test_a_stream_whose_reader_stops_is_recorded_so(library: Library) -> None:
    with serving(streams(PARTS)) as server:
        _, recording = recorded(library.reads(server.url, most=1))
    assert value(recording)["stream"]["end"] == "stopped"
    known = len(value(recording)["stream"]["chunks"])
    assert same_again(recording, library.reads(server.url, most=known))[0] == PARTS[0]
    with pytest.raises(RecordMismatch, match="stopped reading"):
        same_again(recording, library.reads(server.url))


def test_a_stream_that_breaks_breaks_again_after_the_same_parts(library: Library) -> None:
    with serving(streams(PARTS[:2], breaks=True)) as server:
        agent = library.reads(server.url)
        live, recording = recorded(agent)
    assert (b"".join(live[0]), live[1]) == (b"".join(PARTS[:2]), library.module.RemoteProtocolError)
    assert value(recording)["stream"]["end"] == "cut"
    assert same_again(recording, agent) == live


@pytest.mark.parametrize("name", LIBRARIES)
def test_requests_that_are_gathered_get_their_own_answers_again(name: str) -> None:
    order: list[int] = []

    async def ask(client: Any, number: int) -> Any:
        answer = await client.post(url, json={"n": number})
        order.append(number)
        return answer.json()

    async def agent() -> Any:
        transport = LIBRARIES[name][1].AsyncRecordingTransport()
        async with LIBRARIES[name][0].AsyncClient(transport=transport, timeout=PATIENCE) as client:
            return await asyncio.gather(*(ask(client, number) for number in range(12)))

    with serving(lambda handler: handler.say(200, json.dumps({"twice": handler.json["n"] * 2}).encode())) as server:
        url = server.url
        live, recording = recorded(agent)
    assert [answer["twice"] for answer in live] == [2 * number for number in range(12)]
    first, order = order, []
    assert same_again(recording, agent) == live
    assert order == first


@pytest.mark.parametrize("name", LIBRARIES)
def test_threads_get_their_own_answers_again(name: str) -> None:
    import contextvars

    def agent() -> Any:
        transport = LIBRARIES[name][1].RecordingTransport()
        with LIBRARIES[name][0].Client(transport=transport, timeout=PATIENCE) as client, ThreadPoolExecutor(4) as pool:

            def ask(number: int) -> Any:
                return client.post(url, json={"n": number}).json()

            tasks = [pool.submit(contextvars.copy_context().run, ask, number) for number in range(8)]
            return [task.result() for task in tasks]

    with serving(lambda handler: handler.say(200, json.dumps({"twice": handler.json["n"] * 2}).encode())) as server:
        url = server.url
        live, recording = recorded(agent)
    assert same_again(recording, agent) == live


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_reader_that_is_cancelled_is_cancelled_at_the_same_place_again(name: str) -> None:
    async def agent() -> Any:
        parts: list[bytes] = []
        there = asyncio.Event()
        transport = LIBRARIES[name][1].AsyncRecordingTransport()

        async def read() -> None:
            async with client.stream("GET", url) as response:
                async for part in response.aiter_bytes():
                    parts.append(part)
                    there.set()

        async with LIBRARIES[name][0].AsyncClient(transport=transport, timeout=PATIENCE) as client:
            reading = asyncio.ensure_future(read())
            await there.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        return parts

    may_end = threading.Event()

    def before_each(number: int) -> None:
        if number:
            may_end.wait(PATIENCE)

    with serving(streams(PARTS, before_each=before_each)) as server:
        url = server.url
        live, recording = recorded(agent)
        may_end.set()
    assert live == PARTS[:1]
    assert value(recording)["stream"]["end"] == "cancelled"
    assert same_again(recording, agent) == live


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_thread_without_its_context_sends_nothing_in_a_replay(name: str) -> None:
    def agent() -> Any:
        transport = LIBRARIES[name][1].RecordingTransport()
        with LIBRARIES[name][0].Client(transport=transport, timeout=PATIENCE) as client, ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: client.get(url).json()).result()

    with serving(says({"a": 1})) as server:
        url = server.url
        live, recording = recorded(agent)
        again = replayed(recording, agent)
        assert len(server.requests) == 1
    assert live == {"a": 1}
    assert isinstance(again.error, ReplayStopped)
    assert "without its context" in str(again.error)
