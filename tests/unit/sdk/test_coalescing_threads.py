"""Coalescing of threads: they share batches, take turns in sending, and get each its own answer."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest

from tests.unit.sdk.echo import PATIENCE, Echo, number_of, request
from twiceshy._transports.coalescing import CoalescingTransport


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
