"""The link: nobody waits long for Redis, and after the first failure nobody waits at all until it answers again."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from redis import exceptions as failures

from guard.accelerator.link import PATIENCE_SECONDS, Link
from guard.accelerator.meters import Meters
from guard.accelerator.pipe import Command, Lost, Pipe, Told
from guard.accelerator.reads import AWAY, Reads

PING: list[Command] = [("PING",)]


class Scripted:
    """A client that does as the test says, and counts."""

    def __init__(self) -> None:
        self.answers: list[Any] | Exception = [b"PONG"]
        self.hangs = False
        self.is_there = True
        self.asked = 0
        self.greeted = 0
        self.is_closed = False

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers * len(commands)

    async def greet(self, lost: Lost) -> None:
        self.greeted += 1
        self.lost = lost
        if not self.is_there:
            raise failures.ConnectionError("nobody there")

    async def listener(self, told: Told, lost: Lost) -> Pipe:
        raise AssertionError

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    monkeypatch.setattr("guard.accelerator.link.FIRST_WAIT_SECONDS", 0.001)
    return Scripted()


@pytest.fixture
async def link(client: Scripted) -> AsyncIterator[Link]:
    made = Link(client, "redis://there:6379/0", Meters())
    made.start()
    await until(made, is_up=True)
    yield made
    await made.close()
    assert client.is_closed


async def until(link: Link, *, is_up: bool) -> None:
    async with asyncio.timeout(5):
        for _ in itertools.count():
            if link.is_up == is_up:
                return
            await asyncio.sleep(0)


async def test_what_redis_answers_is_passed_on(link: Link) -> None:
    assert await link.ask(PING * 2) == [b"PONG", b"PONG"]


async def test_one_that_hangs_is_waited_for_once_and_then_by_nobody(link: Link, client: Scripted) -> None:
    client.hangs, client.is_there = True, False
    began = asyncio.get_running_loop().time()
    assert await link.ask(PING) is None
    assert asyncio.get_running_loop().time() - began >= PATIENCE_SECONDS
    assert not link.is_up
    for _ in range(100):
        assert await link.ask(PING) is None
    assert client.asked == 1
    assert link.why == "no answer within 50 ms"


@pytest.mark.parametrize(
    "failure",
    [
        failures.ConnectionError("gone"),
        OSError("no route"),
        failures.InvalidResponse("what is this"),
        ValueError("not a list"),
    ],
)
async def test_every_failure_breaks_it_off(link: Link, client: Scripted, failure: Exception) -> None:
    client.answers, client.is_there = failure, False
    assert await link.ask(PING) is None
    assert not link.is_up
    assert str(failure) in link.why


async def test_one_that_refuses_everything_is_left_alone(link: Link, client: Scripted) -> None:
    client.answers, client.is_there = [failures.NoPermissionError("not yours")], False
    assert await link.ask(PING) is None
    assert not link.is_up


@pytest.mark.parametrize(
    "refusal",
    [failures.ResponseError("WRONGTYPE Operation against a key"), failures.OutOfMemoryError("used memory > maxmemory")],
)
async def test_one_command_that_is_refused_breaks_nothing_off(link: Link, client: Scripted, refusal: Exception) -> None:
    client.answers = [refusal]
    assert await link.ask(PING) == [refusal]
    assert link.is_up


async def test_it_is_asked_again_by_one_task_alone_until_it_is_back(link: Link, client: Scripted) -> None:
    client.answers, client.is_there = failures.ConnectionError("gone"), False
    before = client.greeted
    assert await link.ask(PING) is None
    async with asyncio.timeout(5):
        while client.greeted < before + 3:
            assert await link.ask(PING) is None
            await asyncio.sleep(0)
    client.answers, client.is_there = [b"PONG"], True
    await until(link, is_up=True)
    assert await link.ask(PING) == [b"PONG"]
    assert client.asked == 2


async def test_a_connection_that_ends_by_itself_breaks_it_off_before_anybody_asks(link: Link, client: Scripted) -> None:
    client.is_there = False
    client.lost("closed")
    assert (link.is_up, link.why) == (False, "closed")
    assert await link.ask(PING) is None
    assert client.asked == 0


async def test_reads_gather_and_all_are_let_go_at_the_first_failure(link: Link, client: Scripted) -> None:
    client.hangs, client.is_there = True, False
    reads = Reads(link)
    waiting = [asyncio.create_task(reads.get(b"%d" % number)) for number in range(1_000)]
    assert await asyncio.gather(*waiting) == [AWAY] * 1_000
    assert client.asked == 1


async def test_reads_of_one_moment_are_one_question(link: Link, client: Scripted) -> None:
    client.answers = [b"entry"]
    reads = Reads(link)
    found = await asyncio.gather(*(reads.get(b"%d" % (number % 50)) for number in range(200)))
    assert found == [b"entry"] * 200
    assert client.asked == 1
