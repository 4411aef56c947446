"""The threads of a SQLite store: their work is done in order, waits while the process is forked, and ends with them."""

import asyncio
import functools
import os
import threading

import pytest

from guard.ports.store import StoreUnavailable
from guard.store.sql.workers import Workers


async def test_one_thread_does_what_is_asked_in_order_and_hands_back_what_came_of_it() -> None:
    workers = Workers(1, "test")
    done: list[int] = []

    def work(number: int) -> int:
        done.append(number)
        return number

    asked = (workers.do(functools.partial(work, number)) for number in range(20))
    assert await asyncio.gather(*asked) == list(range(20))
    assert done == list(range(20))
    with pytest.raises(ZeroDivisionError):
        await workers.do(lambda: 1 // 0)
    await workers.close()


async def test_several_threads_work_at_the_same_time() -> None:
    workers = Workers(3, "test")
    meeting = threading.Barrier(3)
    await asyncio.gather(*(workers.do(lambda: meeting.wait(10)) for _ in range(3)))
    await workers.close()


async def test_a_closed_store_is_not_there_and_what_was_asked_before_is_still_done() -> None:
    workers = Workers(2, "test")
    asked = [asyncio.ensure_future(workers.do(functools.partial(int, number))) for number in range(50)]
    await asyncio.sleep(0)
    await workers.close()
    assert await asyncio.gather(*asked) == list(range(50))
    with pytest.raises(StoreUnavailable, match="is closed"):
        await workers.do(lambda: 1)
    await workers.close()
    unused = Workers(1, "test")
    await unused.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is a thing of POSIX")
async def test_a_fork_waits_for_the_work_at_hand_and_holds_up_the_next() -> None:
    seen: list[str] = []
    workers = Workers(1, "test", before_fork=lambda: seen.append("let go"))
    is_working, go_on = threading.Event(), threading.Event()

    def work() -> None:
        is_working.set()
        go_on.wait(10)
        seen.append("worked")

    working = asyncio.ensure_future(workers.do(work))
    await asyncio.get_running_loop().run_in_executor(None, is_working.wait, 10)
    threading.Timer(0.1, go_on.set).start()
    workers._stand_still()  # what os.fork calls before it forks
    seen.append("forked")
    after = asyncio.ensure_future(workers.do(lambda: seen.append("worked again")))
    await working
    assert seen == ["worked", "let go", "forked"]
    workers._go_on()
    await after
    assert seen[-1] == "worked again"
    workers._go_on()  # nothing to do
    await workers.close()
