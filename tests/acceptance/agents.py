"""Agents as processes: what they do is said on the command line, what their tools did stands in a file (the sink).

A tool's effect is one line appended to the sink in a single write: nothing that the guard says can change it.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

from twiceshy import Guard, GuardError, InProgress, RunSuspended, current_effect

guard = Guard(os.environ["AGENT_URL"], unavailable_seconds=float(os.environ["AGENT_PATIENCE"]), deliver_seconds=20)
sink = Path(os.environ["AGENT_SINK"])


def apply(line: str) -> None:
    """Change the world."""
    with sink.open("ab", buffering=0) as world:
        world.write(f"{line}\n".encode())


def say(word: str) -> None:
    """Tell the test."""
    print(word, flush=True)


@guard.tool(lease_seconds=1)
def charge(number: int) -> int:
    """Have an effect at once."""
    apply(f"charge {number}")
    return number * 10


@guard.tool(lease_seconds=1)
def slow(number: int) -> int:
    """Have an effect that takes longer than the lease, blocking."""
    apply(f"slow {number}")
    time.sleep(4)
    return number


@guard.tool(lease_seconds=1)
async def slow_async(number: int) -> int:
    """Have an effect that takes longer than the lease, awaiting."""
    apply(f"slow {number}")
    await asyncio.sleep(4)
    return number


@guard.tool(lease_seconds=1)
def pausing(number: int) -> str:
    """Have an effect, then wait for a word from the test."""
    apply(f"pausing {number}")
    say("inside")
    sys.stdin.readline()
    return f"by {current_effect().fence}"


def race(run: str) -> None:
    """Make one call at the word of the test."""
    say("ready")
    sys.stdin.readline()
    with guard.run(run):
        say(str(charge(1)))


def many(name: str, first: str, count: str) -> None:
    """Make many calls; say each that was acknowledged, and each that is in doubt."""
    say("ready")
    sys.stdin.readline()
    for number in range(int(first), int(first) + int(count)):
        with guard.run(f"{name}-{number % 7}"):
            say(_persist(number))


def _persist(number: int) -> str:
    """Call as an agent does that is told to try again: until it is done or in doubt."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            charge(number)
        except RunSuspended:
            return f"doubt {number}"
        except GuardError:
            continue
        return f"done {number}"
    return f"gave-up {number}"


def alone(run: str) -> None:
    """Call the blocking slow tool, or hear that another does."""
    with guard.run(run):
        say(str(slow(1)))


def alone_async(run: str) -> None:
    """Call the awaiting slow tool."""

    async def call() -> int:
        async with guard.run(run):
            return await slow_async(1)

    say(str(asyncio.run(call())))


def pause(run: str) -> None:
    """Call the tool that waits inside."""
    with guard.run(run):
        try:
            say(pausing(1))
        except (GuardError, RunSuspended) as error:
            say(type(error).__name__)


def impatient(run: str) -> None:
    """Call once without patience, and say what was heard."""
    with guard.run(run):
        try:
            say(str(charge(1)))
        except InProgress:
            say("InProgress")
        except GuardError as error:
            say(type(error).__name__)


if __name__ == "__main__":
    verbs = {verb.__name__: verb for verb in (race, many, alone, alone_async, pause, impatient)}
    verbs[sys.argv[1]](*sys.argv[2:])
