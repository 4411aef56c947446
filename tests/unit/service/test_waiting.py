"""Who waits: everybody is told of an end, and one looks for all in between."""

import asyncio

from guard.core.effects import Key
from guard.service.waiting import GLANCE_SECONDS, Waiters
from tests.unit.service.test_records import effect

KEY = effect(1).intent.key


async def test_all_who_wait_are_told_of_an_end_and_nobody_of_a_lease_that_lasts() -> None:
    waiters = Waiters()
    with waiters.waiting(KEY) as first, waiters.waiting(KEY) as second:
        waiters.tell(effect(1, "executing"))
        assert (first.done(), second.done()) == (False, False)
        waiters.tell(effect(2))
        assert (first.done(), second.done()) == (False, False)
        waiters.tell(effect(1, "in_doubt"))
        assert (await first, await second) == (True, True)


async def test_one_looks_for_all_once_in_a_while() -> None:
    waiters = Waiters()
    other = Key(b"o" * 32)
    with waiters.waiting(KEY), waiters.waiting(KEY), waiters.waiting(other):
        looks = [waiters.may_look(KEY, now) for now in (10.0, 10.0, 10.0 + GLANCE_SECONDS / 2, 10.0 + GLANCE_SECONDS)]
        assert looks == [True, False, False, True]
        assert waiters.may_look(other, 10.0)


async def test_who_begins_to_wait_anew_looks_at_once() -> None:
    waiters = Waiters()
    with waiters.waiting(KEY):
        assert waiters.may_look(KEY, 10.0)
    with waiters.waiting(KEY):
        assert waiters.may_look(KEY, 10.0)


async def test_of_a_key_that_was_looked_at_nothing_is_left_once_it_has_ended() -> None:
    waiters = Waiters()
    with waiters.waiting(KEY):
        assert waiters.may_look(KEY, 10.0)
        waiters.wake(KEY)
    assert waiters.may_look(KEY, 10.0)


async def test_who_is_woken_for_all_and_leaves_lets_the_next_one_look() -> None:
    waiters = Waiters()
    woken: list[asyncio.Future[bool]] = []

    async def wait() -> None:
        with waiters.waiting(KEY) as told:
            woken.append(told)
            await told

    tasks = [asyncio.create_task(wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiters.nudge(KEY)
    (first,) = (task for task, told in zip(tasks, woken, strict=True) if told.done())
    first.cancel()
    done, waiting = await asyncio.wait(set(tasks) - {first}, timeout=20, return_when=asyncio.FIRST_COMPLETED)
    assert (len(done), len(waiting)) == (1, 1)
    waiting.pop().cancel()


async def test_when_the_process_is_to_stop_everybody_is_told() -> None:
    waiters = Waiters()
    with waiters.waiting(KEY) as waiting:
        waiters.close()
        assert await waiting
    assert waiters.is_closed
