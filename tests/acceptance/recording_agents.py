"""Agents that record and end in bad ways: `python -m … VERB RUN`. What their tools did stands in the sink."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from twiceshy import Guard, RunTakenOver

guard = Guard(os.environ["AGENT_URL"], record=True, unavailable_seconds=20, deliver_seconds=20)
sink = Path(os.environ["AGENT_SINK"])


def say(word: str) -> None:
    """Tell the test."""
    print(f"{word}\n", end="", flush=True)


def heard() -> str:
    """Wait for the test's word."""
    return sys.stdin.readline().strip()


@guard.tool
def charge(number: int) -> int:
    """Have an effect, then wait for a word."""
    with sink.open("ab", buffering=0) as world:
        world.write(f"charge {number}\n".encode())
    say("inside")
    heard()
    return number * 10


def think() -> str:
    """Answer never."""
    say("inside")
    threading.Event().wait()
    return ""


async def think_async() -> str:
    """Answer never, awaiting."""
    say("inside")
    await asyncio.Event().wait()
    return ""


def stream() -> Iterator[str]:
    """Answer with one piece, and never with the next."""
    yield "one"
    say("inside")
    threading.Event().wait()


def one(run: str) -> None:
    """Record two draws, then wait for ever for a model."""
    with guard.run(run) as here:
        here.random()
        here.llm(think)


def pieces(run: str) -> None:
    """Wait for ever in the middle of a stream."""
    with guard.run(run) as here:
        for _ in here.llm(stream):
            pass


def several(run: str) -> None:
    """Wait on an event loop for several models at once."""

    async def agent() -> None:
        async with guard.run(run) as here:
            here.random()
            await here.gather(*(here.llm(think_async) for _ in range(3)))

    asyncio.run(agent())


def paying(run: str) -> None:
    """Draw, pay and draw."""
    with guard.run(run) as here:
        here.random()
        say(f"paid {charge(1)}")
        here.random()
    say("left")


def drawing(run: str) -> None:
    """Draw as often as the test says a word."""
    with guard.run(run) as here:
        for _ in range(3):
            here.random()
            say("drawn")
            heard()
    say("left")


def forking(run: str) -> None:
    """Fork in the middle of a run; the child tries to go on with it."""
    with guard.run(run) as here:
        here.random()
        child = os.fork()
        try:
            here.random()
            say("went on")
        except RunTakenOver:
            say("refused")
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    say("left")


if __name__ == "__main__":
    verbs = {"one": one, "pieces": pieces, "several": several, "paying": paying, "drawing": drawing, "forking": forking}
    verbs[sys.argv[1]](sys.argv[2])
