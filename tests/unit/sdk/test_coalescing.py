"""Coalescing: what waits while a request is in flight goes together, in order, and nobody gets another's answer."""

import asyncio
from itertools import chain

import msgspec
import pytest

from tests.unit.sdk.echo import PATIENCE, Echo, echoed, number_of, request
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy._transports.batch import MOST
from twiceshy._transports.coalescing import CoalescingTransport
from twiceshy._transports.connect import connect
from twiceshy_contract.wire import PROBLEM_JSON


async def all_of(transport: CoalescingTransport, requests: list[Request], service: Echo) -> list[Reply | NoReply]:
    """Send the first, and all others while it is in flight."""
    tasks = [asyncio.create_task(transport.send_async(one)) for one in requests]
    for _ in range(3):
        await asyncio.sleep(0)
    service.go_on.set()
    return list(await asyncio.gather(*tasks))


def test_what_goes_over_http_is_coalesced() -> None:
    assert isinstance(connect("http://127.0.0.1:8700", None), CoalescingTransport)


async def test_a_lone_call_goes_at_once_and_alone() -> None:
    service = Echo()
    service.go_on.set()
    transport = CoalescingTransport(service)
    assert [number_of(await transport.send_async(request(n))) for n in range(3)] == [0, 1, 2]
    assert service.paths == ["/v1/effects/0/commit", "/v1/effects/1/commit", "/v1/effects/2/commit"]


async def test_what_waits_while_a_request_is_in_flight_goes_together_in_order() -> None:
    service = Echo()
    replies = await all_of(CoalescingTransport(service), [request(n) for n in range(20)], service)
    assert [number_of(reply) for reply in replies] == list(range(20))
    assert service.batches == [list(range(1, 20))]


async def test_what_may_not_join_goes_by_itself() -> None:
    service = Echo()
    replies = await all_of(CoalescingTransport(service), [request(n, joins=n != 2) for n in range(4)], service)
    assert [number_of(reply) for reply in replies] == [0, 1, 2, 3]
    assert service.batches == [[1, 3]]


async def test_a_batch_takes_so_many_requests_and_no_more_first_come_first_served() -> None:
    service = Echo()
    await all_of(CoalescingTransport(service), [request(n) for n in range(MOST * 2 + 3)], service)
    assert [len(batch) for batch in service.batches] == [MOST, MOST, 2]
    assert list(chain.from_iterable(service.batches)) == list(range(1, MOST * 2 + 3))


async def test_a_batch_takes_so_many_bytes_and_no_more() -> None:
    service = Echo()
    replies = await all_of(CoalescingTransport(service), [request(n, size=400_000) for n in range(5)], service)
    assert [number_of(reply) for reply in replies] == [0, 1, 2, 3, 4]
    assert service.batches == [[1, 2], [3, 4]]


async def test_a_batch_that_is_refused_for_one_of_its_requests_is_sent_one_by_one() -> None:
    def answer(request: Request) -> Reply:
        if request.path == "/v1/batch":
            return Reply(status=400, content_type=PROBLEM_JSON, body=b"{}")
        return echoed(request)

    service = Echo(answer)
    replies = await all_of(CoalescingTransport(service), [request(n) for n in range(4)], service)
    assert [number_of(reply) for reply in replies] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "answer",
    [
        NoReply(reason="gone"),
        Reply(status=503, content_type=PROBLEM_JSON, body=b'{"type":"/problems/store-unavailable"}'),
        Reply(status=401, content_type=PROBLEM_JSON, body=b"{}"),
    ],
)
async def test_what_a_batch_meets_all_of_it_meet(answer: Reply | NoReply) -> None:
    service = Echo(lambda request: answer if request.path == "/v1/batch" else echoed(request))
    replies = await all_of(CoalescingTransport(service), [request(n) for n in range(4)], service)
    assert replies[1:] == [answer] * 3


@pytest.mark.parametrize("body", [b"", b"[]", b'{"answers":[]}', b'{"answers":[{"status":200,"body":{}}]}'])
async def test_a_batch_whose_answer_cannot_be_read_is_no_answer(body: bytes) -> None:
    bad = Reply(status=200, content_type="application/json", body=body)
    service = Echo(lambda request: bad if request.path == "/v1/batch" else echoed(request))
    replies = await all_of(CoalescingTransport(service), [request(n) for n in range(4)], service)
    assert all(isinstance(reply, NoReply) for reply in replies[1:])


async def test_one_problem_in_a_batch_is_that_requests_own() -> None:
    def answer(request: Request) -> Reply:
        if request.path != "/v1/batch":
            return echoed(request)
        answers = [{"status": 200, "body": {"number": 1}}, {"status": 409, "body": {"type": "/problems/in-progress"}}]
        return Reply(status=200, content_type="application/json", body=msgspec.json.encode({"answers": answers}))

    service = Echo(answer)
    replies = await all_of(CoalescingTransport(service), [request(n) for n in range(3)], service)
    assert number_of(replies[1]) == 1
    assert replies[2] == Reply(status=409, content_type=PROBLEM_JSON, body=b'{"type":"/problems/in-progress"}')


async def test_an_answer_that_was_too_large_for_its_batch_is_asked_for_alone() -> None:
    def answer(request: Request) -> Reply:
        if request.path != "/v1/batch":
            return echoed(request)
        answers = [{"status": 200, "body": {"number": 1}}, {"status": 413, "body": {"type": "/problems/too-large"}}]
        return Reply(status=200, content_type="application/json", body=msgspec.json.encode({"answers": answers}))

    service = Echo(answer)
    replies = await all_of(CoalescingTransport(service), [request(n) for n in range(3)], service)
    assert [number_of(reply) for reply in replies] == [0, 1, 2]
    assert service.paths == ["/v1/effects/0/commit", "/v1/batch", "/v1/effects/2/commit"]


async def test_a_caller_that_is_cancelled_while_it_waits_is_not_sent() -> None:
    service = Echo()
    transport = CoalescingTransport(service)
    tasks = [asyncio.create_task(transport.send_async(request(n))) for n in range(4)]
    for _ in range(3):
        await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.sleep(0)
    service.go_on.set()
    replies = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(replies[2], asyncio.CancelledError)
    assert service.batches == [[1, 3]]


async def test_a_caller_that_is_cancelled_in_flight_leaves_nobody_behind() -> None:
    service = Echo()
    transport = CoalescingTransport(service)
    tasks = [asyncio.create_task(transport.send_async(request(n))) for n in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)
    tasks[0].cancel()
    async with asyncio.timeout(PATIENCE):
        assert [number_of(reply) for reply in await asyncio.gather(*tasks[1:])] == [1, 2]
    service.go_on.set()


async def test_a_request_that_hangs_holds_no_other_up() -> None:
    service = Echo()
    transport = CoalescingTransport(service)
    hangs = asyncio.create_task(transport.send_async(request(0)))
    async with asyncio.timeout(PATIENCE):
        assert [
            number_of(reply) for reply in await asyncio.gather(*map(transport.send_async, map(request, (1, 2))))
        ] == [1, 2]
    assert not hangs.done()
    service.go_on.set()
    assert number_of(await hangs) == 0
    assert number_of(await transport.send_async(request(3))) == 3


async def test_a_request_that_hangs_holds_no_other_up_where_the_first_that_waited_gave_up() -> None:
    service = Echo()
    transport = CoalescingTransport(service)
    hangs = asyncio.create_task(transport.send_async(request(0)))
    waiting = [asyncio.create_task(transport.send_async(request(n))) for n in (1, 2, 3)]
    for _ in range(3):
        await asyncio.sleep(0)
    waiting[0].cancel()
    async with asyncio.timeout(PATIENCE / 2):
        assert [number_of(reply) for reply in await asyncio.gather(*waiting[1:])] == [2, 3]
    service.go_on.set()
    assert number_of(await hangs) == 0


async def test_a_batch_that_hangs_holds_no_later_one_up() -> None:
    held, is_second_sent = asyncio.Event(), asyncio.Event()

    class Hanging(Echo):
        async def send_async(self, request: Request) -> Reply | NoReply:
            self.sent.append(request)
            if len(self.sent) == 2:
                is_second_sent.set()
            if len(self.sent) <= 2:
                await held.wait()
            return echoed(request)

    service = Hanging()
    transport = CoalescingTransport(service)
    first = [asyncio.create_task(transport.send_async(request(n))) for n in range(3)]
    await asyncio.wait_for(is_second_sent.wait(), PATIENCE)
    async with asyncio.timeout(PATIENCE / 2):
        later = await asyncio.gather(*map(transport.send_async, map(request, (7, 8))))
    assert [number_of(reply) for reply in later] == [7, 8]
    held.set()
    assert [number_of(reply) for reply in await asyncio.gather(*first)] == [0, 1, 2]
