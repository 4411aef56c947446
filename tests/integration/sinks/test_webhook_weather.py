"""In bad weather a webhook is said to be unsent only where that is proved, and is never sent twice by one try."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from aiohttp.abc import ResolveResult

from outbox_relay import posting
from outbox_relay.sinks.base import Delivered, Outgoing, Permanent, Result, Retryable, Unknown
from tests.integration.sinks.conftest import MakeOutgoing
from tests.integration.sinks.webhook_receivers import (
    OK,
    Behaviour,
    Names,
    Visit,
    Webhooks,
    answering,
    receiver,
    status,
)

CLOSED = Unknown(why="The request left, and the receiver closed the connection before it had answered.")
LARGE = 2**30


def then(answer: bytes, end: Callable[[Visit], object]) -> Behaviour:
    async def behave(visit: Visit) -> None:
        await visit.say(answer)
        end(visit)

    return behave


async def never(visit: Visit) -> None:
    await visit.gone()
    visit.hang_up()


async def sent(webhooks: Webhooks, behaviour: Behaviour, outgoing: Outgoing, timeout_seconds: float = 5) -> Result:
    """Send one message, and see that it was posted exactly once."""
    async with receiver(behaviour) as there:
        result = await webhooks.open(there.url(), timeout_seconds=timeout_seconds).send(outgoing)
        assert len(there.requests) == 1
    return result


async def test_a_receiver_that_never_answers_leaves_the_message_unknown_after_the_time_out(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    result = await sent(webhooks, never, make_outgoing(), timeout_seconds=0.2)
    assert result == Unknown(why="The request left, and no answer came within 0.2 s.")


@pytest.mark.parametrize(
    "half",
    [b"", b"HT", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", b"HTTP/1.1 100 Go on\r\n\r\n"],
)
async def test_half_a_head_of_an_answer_leaves_the_message_unknown(
    half: bytes, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    assert await sent(webhooks, then(half, Visit.hang_up), make_outgoing()) == CLOSED


async def test_a_connection_that_breaks_before_an_answer_leaves_the_message_unknown(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    result = await sent(webhooks, then(b"", Visit.reset), make_outgoing())
    assert isinstance(result, Unknown)
    assert result.why.startswith("The request left, and the ")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\xff" * 100,
        b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: no\r\n",
    ],
)
async def test_what_is_no_http_leaves_the_message_unknown(
    garbage: bytes, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    result = await sent(webhooks, then(garbage, Visit.hang_up), make_outgoing())
    assert isinstance(result, Unknown)
    assert len(result.why) < 300


@pytest.mark.parametrize(
    ("answer", "receipt"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut of", "200: cut of"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\nzz", "200"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno length", "200"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x00\x01\x02A", "200: A"),
        (b"HTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\n{surplus}", "201"),
        (b"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 202 Took\r\nContent-Length: 1\r\n\r\n{surplus}", "202"),
        (b"HTTP/1.0 200 OK\r\n\r\nold", "200: old"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: nonsense\r\nX-\xff: \xfe\r\nContent-Length: 2\r\n\r\nok", "200"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: ;;\r\nContent-Length: 2\r\n\r\n\xff\xfe", "200: ��"),
    ],
)
async def test_a_body_that_is_garbage_or_cut_off_does_not_change_what_the_status_says(
    answer: bytes, receipt: str, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    assert await sent(webhooks, then(answer, Visit.hang_up), make_outgoing()) == Delivered(receipt=receipt)


async def test_a_refusal_whose_body_breaks_the_rules_is_a_refusal(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    answer = b"HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\n{surplus}"
    assert await sent(webhooks, answering(answer), make_outgoing()) == Retryable(why="The receiver answered 500")


async def test_of_a_body_of_one_gigabyte_only_the_beginning_is_read(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    written = 0

    async def pour(visit: Visit) -> None:
        nonlocal written
        await visit.say(f"HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n".encode())
        while written < LARGE and not visit.writer.is_closing():
            await visit.say(b"x" * 2**16)
            written += 2**16

    assert await sent(webhooks, pour, make_outgoing()) == Delivered(receipt="200: " + "x" * 200)
    assert written < 2**25


async def test_a_body_that_does_not_end_is_not_waited_for(
    webhooks: Webhooks, make_outgoing: MakeOutgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "ANSWER_SECONDS", 0.1)

    async def trickle(visit: Visit) -> None:
        await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun")
        await never(visit)

    result = await sent(webhooks, trickle, make_outgoing(), timeout_seconds=60)
    assert result == Delivered(receipt="200: begun")


async def test_the_time_out_of_a_try_ends_a_body_as_well(webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    async def trickle(visit: Visit) -> None:
        await visit.say(b"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nbegun")
        await never(visit)

    result = await sent(webhooks, trickle, make_outgoing(), timeout_seconds=0.2)
    assert result == Retryable(why="The receiver answered 500: begun")


async def test_a_kept_connection_that_is_closed_on_a_read_request_is_unknown_and_the_message_is_sent_once(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async def close_on_the_second(visit: Visit) -> None:
        if len(there.requests) == 2:
            visit.hang_up()
        else:
            await visit.say(OK)

    async with receiver(close_on_the_second) as there:
        sink = webhooks.open(there.url())
        results = [await sink.send(make_outgoing()) for _ in range(3)]
    assert results == [Delivered(receipt="200: ok"), CLOSED, Delivered(receipt="200: ok")]
    assert [received.connection for received in there.requests] == [1, 1, 2]
    assert len({received.headers["webhook-id"] for received in there.requests}) == 3


@pytest.mark.parametrize("body", [b"small", b"large" * 2**18])
async def test_a_connection_that_the_receiver_closed_while_it_was_idle_is_not_used_again(
    body: bytes, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    closed = asyncio.Event()

    async def close_when_done(visit: Visit) -> None:
        await visit.say(OK)
        visit.hang_up()
        await visit.writer.wait_closed()
        closed.set()

    async with receiver(close_when_done) as there:
        sink = webhooks.open(there.url())
        assert await sink.send(make_outgoing(body=body)) == Delivered(receipt="200: ok")
        await closed.wait()
        assert await sink.send(make_outgoing(body=body)) == Delivered(receipt="200: ok")
    assert [received.connection for received in there.requests] == [1, 2]


async def test_what_a_receiver_says_unasked_is_not_taken_for_an_answer(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    said = asyncio.Event()

    async def say_twice(visit: Visit) -> None:
        await visit.say(OK)
        if len(there.requests) == 1:
            await done.wait()
            await visit.say(status(202))
            said.set()

    done = asyncio.Event()
    async with receiver(say_twice) as there:
        sink = webhooks.open(there.url())
        assert await sink.send(make_outgoing()) == Delivered(receipt="200: ok")
        done.set()
        await said.wait()
        assert await sink.send(make_outgoing()) == Delivered(receipt="200: ok")
    assert [received.connection for received in there.requests] == [1, 2]


async def test_what_is_refused_a_connection_was_not_sent(webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    async with receiver(answering(OK)) as there:
        url = there.url()
    result = await webhooks.open(url).send(make_outgoing())
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert result.why.startswith("No connection could be made (Connect call failed")
    assert result.why.endswith("Nothing was sent.")


async def test_a_name_that_nobody_knows_is_unreachable(webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    class Nobody(Names):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            raise OSError(None, "Name or service not known")

    result = await webhooks.open("http://nobody.example/", resolver=Nobody()).send(make_outgoing())
    assert result == Retryable(
        why="The receiver's name is not known (Name or service not known). Nothing was sent.", is_unreachable=True
    )


async def test_a_time_out_before_there_is_a_connection_is_unreachable_and_not_unknown(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    class Silent(Names):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            await asyncio.Event().wait()
            return []

    result = await webhooks.open("http://slow.example/", resolver=Silent(), timeout_seconds=0.2).send(make_outgoing())
    assert result == Retryable(why="No connection could be made within 0.2 s. Nothing was sent.", is_unreachable=True)


async def test_a_cancelled_try_ends_at_once_and_its_connection_is_closed(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    closed = asyncio.Event()

    async def until_closed(visit: Visit) -> None:
        await never(visit)
        closed.set()

    async with receiver(until_closed) as there:
        task = asyncio.create_task(webhooks.open(there.url(), timeout_seconds=60).send(make_outgoing()))
        await there.read_one.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(closed.wait(), 5)


async def test_a_large_message_is_sent_whole(webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    body = bytes(range(256)) * 2**13
    async with receiver(answering(OK)) as there:
        assert await webhooks.open(there.url()).send(make_outgoing(body=body)) == Delivered(receipt="200: ok")
    assert there.requests[0].body == body


async def test_a_receiver_that_does_not_read_is_let_go_after_the_time_out(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    here: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.get_running_loop().create_future()

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here.set_result((reader, writer))

    body = b"x" * 2**25
    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        sink = webhooks.open(f"http://127.0.0.1:{port}/", timeout_seconds=0.3)
        assert isinstance(await sink.send(make_outgoing(body=body)), Unknown)
        reader, writer = await here
        read = 0
        with suppress(ConnectionError):
            while chunk := await reader.read(2**16):
                read += len(chunk)
        writer.close()
    assert read < len(body)


async def test_a_header_that_would_break_the_request_is_refused_and_nothing_is_sent(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async with receiver(answering(OK)) as there:
        result = await webhooks.open(there.url()).send(make_outgoing(headers={"X": "a\r\nwebhook-id: b"}))
    assert isinstance(result, Permanent)
    assert there.requests == []
