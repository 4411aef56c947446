"""The threads of a SQLite store: their work is done in order, waits while the process is forked, and ends with them."""

import asyncio
import functools
import threading

import pytest

from guard.ports.store import StoreUnavailable
from guard.store.sql.forks import FORKS
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
    FORKS.begin()  # as before a fork
    seen.append("forked")
    after = asyncio.ensure_future(workers.do(lambda: seen.append("worked again")))
    await working
    assert seen == ["worked", "let go", "forked"]
    FORKS.end()
    await after
    assert seen[-1] == "worked again"
    await workers.close()


async def test_workers_that_come_about_while_a_fork_is_prepared_wait_until_it_is_over() -> None:
    made: list[Workers] = []
    FORKS.begin()
    FORKS.begin()  # a second caller of one fork changes nothing
    making = threading.Thread(target=lambda: made.append(Workers(1, "test")))
    making.start()
    making.join(0.1)
    assert making.is_alive()
    FORKS.end()
    making.join(0.1)
    assert making.is_alive()
    FORKS.end()
    making.join(10)
    (workers,) = made
    assert await workers.do(lambda: 7) == 7
    await workers.close()


async def test_one_that_cannot_let_go_keeps_no_other_from_it() -> None:
    seen: list[str] = []

    def fail() -> None:
        raise OSError("not now")

    several = [Workers(1, "test", before_fork=fail), Workers(1, "test", before_fork=lambda: seen.append("let go"))]
    FORKS.begin()
    FORKS.end()
    assert seen == ["let go"]
    for workers in several:
        assert await workers.do(lambda: 7) == 7
        await workers.close()
