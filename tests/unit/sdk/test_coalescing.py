"""Coalescing: what waits while a request is in flight goes together, in order, and nobody gets another's answer."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Final

import msgspec
import pytest

from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy._transports.batch import MOST
from twiceshy._transports.coalescing import CoalescingTransport
from twiceshy._transports.connect import connect
from twiceshy_contract.wire import PROBLEM_JSON

PATIENCE: Final = 10.0


def request(number: int, size: int = 0, *, joins: bool = True) -> Request:
    body = msgspec.json.encode({"number": number, "filling": "x" * size})
    return Request(method="POST", path=f"/v1/effects/{number}/commit", body=body, joins=joins, timeout_seconds=PATIENCE)


def number_of(reply: Reply | NoReply) -> int:
    assert isinstance(reply, Reply), reply
    number = msgspec.json.decode(reply.body)["number"]
    assert isinstance(number, int)
    return number


class Echo:
    """A service that answers every request with its own body, and holds the first until it is told to go on."""

    def __init__(self, answer: Callable[[Request], Reply | NoReply] | None = None) -> None:
        self.sent: list[Request] = []
        self.senders: list[int] = []
        self.arrived = threading.Event()
        self.go_on = threading.Event()
        self._answer = answer or echoed
        self._lock = threading.Lock()

    def send(self, request: Request) -> Reply | NoReply:
        if self._note(request):
            assert self.go_on.wait(PATIENCE)
        return self._answer(request)

    async def send_async(self, request: Request) -> Reply | NoReply:
        if self._note(request):
            await asyncio.to_thread(self.go_on.wait, PATIENCE)
        else:
            await asyncio.sleep(0)
        return self._answer(request)

    def close(self) -> None: ...

    async def close_async(self) -> None: ...

    def _note(self, request: Request) -> bool:
        with self._lock:
            self.sent.append(request)
            self.senders.append(threading.get_ident())
            self.arrived.set()
            return len(self.sent) == 1

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.sent]

    @property
    def batches(self) -> list[list[int]]:
        """The numbers of the requests of each batch."""
        return [
            [item["body"]["number"] for item in msgspec.json.decode(request.body or b"")["requests"]]
            for request in self.sent
            if request.path == "/v1/batch"
        ]


def echoed(request: Request) -> Reply:
    body = request.body or b""
    if request.path == "/v1/batch":
        items = msgspec.json.decode(body)["requests"]
        body = msgspec.json.encode({"answers": [{"status": 200, "body": item["body"]} for item in items]})
    return Reply(status=200, content_type="application/json", body=body)


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


def test_threads_that_wait_share_a_batch_and_take_turns_in_sending() -> None:
    service = Echo()
    transport = CoalescingTransport(service)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(transport.send, request(0))
        assert service.arrived.wait(PATIENCE)
        others = [threads.submit(transport.send, request(n)) for n in range(1, 8)]
        queue = transport._threads._queue
        while len(queue) < 7:
            threading.Event().wait(0.001)
        service.go_on.set()
        assert [number_of(done.result(PATIENCE)) for done in (first, *others)] == list(range(8))
    assert sorted(chain.from_iterable(service.batches)) == list(range(1, 8))
    assert len(set(service.senders)) == len(service.senders)


def test_a_thread_waits_no_longer_than_a_moment_for_a_request_that_hangs() -> None:
    service = Echo()
    transport = CoalescingTransport(service)
    with ThreadPoolExecutor(3) as threads:
        hangs = threads.submit(transport.send, request(0))
        assert service.arrived.wait(PATIENCE)
        others = [threads.submit(transport.send, request(n)) for n in (1, 2)]
        assert [number_of(done.result(PATIENCE)) for done in others] == [1, 2]
        assert not hangs.done()
        service.go_on.set()
        assert number_of(hangs.result(PATIENCE)) == 0
    assert number_of(transport.send(request(3))) == 3
    assert transport._threads._in_flight == 0


def test_a_thousand_calls_of_many_threads_get_each_its_own_answer() -> None:
    service = Echo()
    service.go_on.set()
    transport = CoalescingTransport(service)
    with ThreadPoolExecutor(16) as threads:
        replies = threads.map(lambda n: number_of(transport.send(request(n))), range(1000), timeout=60)
        assert list(replies) == list(range(1000))
    assert transport._threads._in_flight == 0
    assert not transport._threads._queue


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_waits_for_nothing_that_its_parent_has_in_flight() -> None:
    service = Echo()
    transport = CoalescingTransport(service)
    with ThreadPoolExecutor(1) as threads:
        hangs = threads.submit(transport.send, request(0))
        assert service.arrived.wait(PATIENCE)
        child = os.fork()
        if not child:
            is_answered = number_of(transport.send(request(1))) == 1 and transport._threads._in_flight == 0
            os._exit(0 if is_answered else 1)
        _, status = os.waitpid(child, 0)
        service.go_on.set()
        assert number_of(hangs.result(PATIENCE)) == 0
    assert os.waitstatus_to_exitcode(status) == 0
