"""Agents whose service goes away: what they do is said on the command line, what their tools did stands in the sink."""

import asyncio
import os
import sys
import threading
from pathlib import Path

from twiceshy import Guard, GuardError, NotApplied, RunSuspended

guard = Guard(
    os.environ["AGENT_URL"], unavailable_seconds=20, deliver_seconds=float(os.environ.get("AGENT_DELIVERS", "20"))
)
sink = Path(os.environ["AGENT_SINK"])
going = threading.Event()


def apply(line: str) -> None:
    """Change the world."""
    with sink.open("ab", buffering=0) as world:
        world.write(f"{line}\n".encode())


def say(word: str) -> None:
    """Tell the test."""
    print(f"{word}\n", end="", flush=True)


@guard.tool(lease_seconds=1)
def charge(number: int) -> int:
    """Have an effect, then wait for a word from the test."""
    apply(f"charge {number}")
    say("inside")
    going.wait()
    return number * 10


@guard.tool(lease_seconds=1)
async def charge_async(number: int) -> int:
    """Have an effect, then wait for a word from the test, awaiting."""
    apply(f"charge {number}")
    say("inside")
    await asyncio.to_thread(going.wait)
    return number * 10


@guard.tool(lease_seconds=30)
def ponder() -> None:
    """Have an effect, then wait for ever, blocking."""
    apply("ponder")
    say("inside")
    threading.Event().wait()


@guard.tool(lease_seconds=30)
async def ponder_async() -> None:
    """Have an effect, then wait for ever, awaiting."""
    apply("ponder")
    say("inside")
    await asyncio.Event().wait()


@guard.tool(lease_seconds=30)
def stubborn() -> str:
    """Have an effect at the third try."""
    tried = sink.read_text().count("tried")
    apply("tried")
    if tried < 2:
        raise NotApplied("busy", retry_after=0.05)
    apply("stubborn")
    return "at last"


def one(run: str) -> None:
    """Charge once; the test says when the tool may return."""
    listen()
    with guard.run(run):
        try:
            say(str(charge(1)))
        except (GuardError, RunSuspended) as error:
            say(type(error).__name__)
    sys.stdin.read()


def twenty(run: str) -> None:
    """Charge twenty times at once."""
    listen()

    def call(number: int) -> None:
        with guard.run(run):
            charge(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say("all")
    sys.stdin.read()


def eighty_async(run: str) -> None:
    """Charge eighty times at once on one event loop; say how many ended which way."""
    listen()

    async def calls() -> list[int | BaseException]:
        async with guard.run(run):
            return await asyncio.gather(*(charge_async(number) for number in range(80)), return_exceptions=True)

    ends = [type(end).__name__ for end in asyncio.run(calls())]
    say(" ".join(f"{ends.count(name)} {name}" for name in sorted(set(ends))))
    sys.stdin.read()


def interrupted(run: str) -> None:
    """Be interrupted inside a blocking tool."""
    with guard, guard.run(run):
        ponder()


def interrupted_async(run: str) -> None:
    """Be interrupted inside an awaiting tool."""

    async def call() -> None:
        async with guard, guard.run(run):
            await ponder_async()

    asyncio.run(call())


def again(run: str) -> None:
    """Call the tool that is not applied at first."""
    with guard, guard.run(run):
        say(stubborn())


def listen() -> None:
    """Let the tools return at the next line."""
    threading.Thread(target=lambda: going.set() if sys.stdin.readline() else None, daemon=True).start()


if __name__ == "__main__":
    verbs = {verb.__name__: verb for verb in (one, twenty, eighty_async, interrupted, interrupted_async, again)}
    verbs[sys.argv[1]](*sys.argv[2:])
