"""Words between replicas: nothing where nobody waits, one where somebody does, and no end missed between the two."""

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

from guard.service.waiting import Waiters
from guard.service.wakes import MOST_AT_ONCE, MOST_WANTED, WANTED_SECONDS, Wakes

KEY, OTHER = b"k" * 32, b"o" * 32
NOBODY = b"n" * 8


class Air:
    """A wire that carries words to all replicas when it is told to."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.replicas: list[Wakes] = []

    def tell(self, word: bytes) -> None:
        self.said.append(word)

    @asynccontextmanager
    async def listening(self, heard: Callable[[bytes | None], None]) -> AsyncIterator[None]:
        del heard
        yield

    async def close(self) -> None:
        """Hold nothing."""

    def carry(self) -> int:
        """Carry what was said until now; say how many words it was."""
        said, self.said = self.said, []
        for word in said:
            for replica in self.replicas:
                replica.heard(word)
        return len(said)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def two(air: Air, clock: Clock) -> tuple[Waiters, Waiters]:
    """Return those who wait in two replicas."""
    waiters = Waiters(), Waiters()
    air.replicas = [Wakes(each, air, lambda: 0.0, clock) for each in waiters]
    return waiters


async def test_where_nobody_waits_nothing_is_said() -> None:
    air = Air()
    here, _ = two(air, Clock())
    here.wake(KEY)
    assert air.said == []


async def test_an_end_wakes_one_of_those_who_wait_elsewhere() -> None:
    air = Air()
    here, there = two(air, Clock())
    with there.waiting(KEY) as first, there.waiting(KEY) as second:
        assert air.carry() == 1
        here.wake(OTHER)
        assert air.carry() == 0
        here.wake(KEY)
        assert air.carry() == 1
        assert [first.done(), second.done()].count(True) == 1


async def test_every_end_wakes_who_waits_on_as_for_a_second_approver() -> None:
    air = Air()
    here, there = two(air, Clock())
    for wants in (1, 0, 0):
        with there.waiting(KEY) as told:
            assert air.carry() == wants  # it is said once
            here.wake(KEY)
            assert air.carry() == 1
            assert told.done()


async def test_a_want_that_crosses_the_end_is_answered() -> None:
    air = Air()
    here, there = two(air, Clock())
    with there.waiting(KEY) as told:
        here.wake(KEY)  # the want is on its way still
        assert air.carry() == 1
        assert not told.done()
        assert air.carry() == 1
        assert told.done()


async def test_an_end_is_remembered_for_a_turn_and_then_forgotten() -> None:
    air = Air()
    here, there = two(air, Clock())
    here.wake(KEY)
    air.replicas[0].turn()
    with there.waiting(KEY):
        air.carry()
        assert air.carry() == 1
    air.replicas[0].turn()
    air.replicas[0].turn()
    air.replicas[1].turn()
    with there.waiting(KEY):
        air.carry()
        assert air.carry() == 0


async def test_a_want_is_said_once_and_again_while_it_lasts() -> None:
    air, clock = Air(), Clock()
    here, there = two(air, clock)
    with there.waiting(KEY):
        for _ in range(100):
            with there.waiting(KEY):
                pass
        assert air.carry() == 1
        clock.now = WANTED_SECONDS / 2
        air.replicas[1].turn()
        assert air.carry() == 1
        clock.now = WANTED_SECONDS * 1.2
        air.replicas[0].turn()
        here.wake(KEY)
        assert air.carry() == 1
    air.replicas[1].turn()
    assert air.said == []


async def test_when_words_may_be_missed_wants_are_said_again_and_somebody_looks_for_each_key() -> None:
    air = Air()
    _, there = two(air, Clock())
    with there.waiting(KEY) as told:
        air.said.clear()  # lost
        air.replicas[1].heard(None)
        assert await told
        assert len(air.said) == 1


async def test_of_many_wants_few_are_said_in_one_moment() -> None:
    air, clock = Air(), Clock()
    _, there = two(air, clock)
    with ExitStack() as waits:
        for number in range(2 * MOST_AT_ONCE):
            waits.enter_context(there.waiting(number.to_bytes(32, "big")))
        air.said.clear()
        air.replicas[1].heard(None)
        assert air.said == []  # they are spread over a moment
        clock.now = WANTED_SECONDS / 2
        said = set[bytes]()
        for _ in range(2):
            air.replicas[1].turn()
            assert len(air.said) == MOST_AT_ONCE
            said.update(air.said)
            air.said.clear()
        assert len(said) == 2 * MOST_AT_ONCE


async def test_foreign_words_and_floods_change_nothing_and_take_little() -> None:
    air = Air()
    here, there = two(air, Clock())
    with there.waiting(KEY) as told:
        for word in (b"", b"w", b"e" + NOBODY, b"x" + NOBODY + KEY, b"e" + NOBODY + OTHER, b"e" + NOBODY + KEY * 3):
            air.replicas[1].heard(word)
        assert not told.done()
    air.carry()
    for number in range(5 * MOST_WANTED):
        air.replicas[0].heard(b"w" + NOBODY + number.to_bytes(32, "big"))
    here.wake((0).to_bytes(32, "big"))
    assert air.said == []
    here.wake((5 * MOST_WANTED - 1).to_bytes(32, "big"))
    assert len(air.said) == 1
