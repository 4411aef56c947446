"""Agents that book one calendar: who they are and how much they matter is said on the command line.

A booking is one line in the world. What an agent is told is said to the test, a line each.
"""

import asyncio
import os
import random
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from twiceshy import Guard, GuardError, HoldLost, LeaseLost, ResourceHeld, ResourceRule, RunSuspended, current_effect

guard = Guard(os.environ["AGENT_URL"], unavailable_seconds=float(os.environ["AGENT_PATIENCE"]))
sink = Path(os.environ["AGENT_SINK"])
MORNING = datetime(2026, 10, 12, 8, tzinfo=UTC)
CALENDAR = ResourceRule(name="calendar", start="/start", minutes="/minutes")


def apply(line: str) -> None:
    """Change the world."""
    with sink.open("ab", buffering=0) as world:
        world.write(f"{line}\n".encode())


def say(word: str) -> None:
    """Tell the test."""
    print(word, flush=True)


@guard.tool(resource=CALENDAR, lease_seconds=1, wait_seconds=20, deadline_seconds=0, identity=["/start", "/minutes"])
def book(start: datetime, minutes: int, name: str) -> str:
    """Enter a booking, after a moment of thought."""
    time.sleep(random.uniform(0, 0.03))  # noqa: S311
    with current_effect().sending():
        apply(f"{start.isoformat()} {minutes} {name}")
        time.sleep(random.uniform(0, 0.03))  # noqa: S311
    return name


@guard.tool(resource=CALENDAR, lease_seconds=1, settle_seconds=0, wait_seconds=20, deadline_seconds=0)
async def book_slowly(start: datetime, minutes: int, name: str) -> str:
    """Say that it is about to enter a booking, wait for a word from the test, and enter it."""
    say("inside")
    await asyncio.to_thread(sys.stdin.readline)
    async with current_effect().sending():
        apply(f"{start.isoformat()} {minutes} {name}")
    return name


def many(name: str, priority: str, count: str) -> None:
    """Try to book every slot of the day, in an order of its own; say what became of each."""
    slots = random.Random(name).sample(range(int(count)), int(count))  # noqa: S311
    tool = book.with_key(priority=int(priority))
    say("ready")
    sys.stdin.readline()
    with guard.run(name):
        for slot in slots:
            length = 30 + 15 * (slot % 2)  # some overlap the next
            say(_booked(tool, MORNING + timedelta(minutes=30 * slot), length, name))
    say("over")


def _booked(tool: object, start: datetime, minutes: int, name: str) -> str:
    try:
        assert callable(tool)
        tool(start, minutes, name)
    except ResourceHeld:
        return f"held {start.isoformat()}"
    except (HoldLost, LeaseLost):
        return f"lost {start.isoformat()}"
    except RunSuspended:
        return f"doubt {start.isoformat()}"
    except GuardError as error:
        return f"failed {error}"
    return f"booked {start.isoformat()}"


def one(name: str, priority: str) -> None:
    """Book one time, slowly; say what was heard, and try once more where that was the loss of it."""

    async def call() -> None:
        async with guard.run(name):
            for _ in range(2):
                try:
                    say(f"booked {await book_slowly.with_key(priority=int(priority))(MORNING, 30, name)}")
                except (LeaseLost, HoldLost, ResourceHeld) as error:
                    say(f"{type(error).__name__}: {error}")
                else:
                    return

    asyncio.run(call())


if __name__ == "__main__":
    verbs = {verb.__name__: verb for verb in (many, one)}
    verbs[sys.argv[1]](*sys.argv[2:])
