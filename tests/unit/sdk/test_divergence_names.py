"""What parts from the record has the name that a person would give it, where several could be meant."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.replays import RUN
from tests.unit.sdk.shop_agents import ask, guard, really_ran
from twiceshy import Recording
from twiceshy._replay import replay

PATIENCE = 0.05


@guard.tool(effect="read")
def take(amount: int, note: dict[str, Any] | None = None) -> str:
    really_ran("take", amount)


@guard.tool(effect="read")
def undo(amount: int, note: dict[str, Any] | None = None) -> str:
    really_ran("undo", amount)


@guard.tool(effect="read")
async def look(place: str) -> str:
    really_ran("look", place)


async def ask_about(prompt: str) -> str:
    really_ran("ask_about", prompt)


def recording_of() -> Recording:
    log = Writing(RUN)
    for tool, amount in (("take", 1), ("take", 2), ("undo", 3)):  # events 1, 3, 5
        log.tool(tool, {"amount": amount, "note": None}, tool)
    log.call("llm_call", "ask", {"prompt": "and now?"}, "go on")  # event 7
    log.tool("take", {"amount": 4, "note": None}, "take")  # event 9
    log.tool("undo", {"amount": 5, "note": None}, "undo")  # event 11
    return log.recording()


def agent(*calls: Callable[[], Any]) -> Callable[[], list[Any]]:
    def made() -> list[Any]:
        with guard.run(RUN) as run:
            return [call() if call is not asking else run.llm(ask, prompt="and now?") for call in calls]

    return made


def asking() -> None:
    """Stand for the question to the model."""


def taking(amount: int) -> Callable[[], Any]:
    return lambda: take(amount)


def undoing(amount: int) -> Callable[[], Any]:
    return lambda: undo(amount)


NAMED: list[tuple[str, list[Callable[[], Any]], str, int | None, str]] = [
    ("another tool first", [undoing(1)], "name", 1, "The code calls undo where the record has take."),
    (
        "another tool in between",
        [taking(1), taking(2), taking(3)],
        "name",
        5,
        "The code calls take where the record has undo.",
    ),
    (
        "one more before another tool",
        [taking(1), taking(2), taking(77)],
        "extra",
        5,
        "The code calls take in a way that the record has not; it goes on with undo.",
    ),
    ("other arguments", [taking(1), taking(99)], "arguments", 3, "take is called with other arguments."),
    (
        "a call that passes nothing but None",
        [taking(1), taking(2), undoing(3), asking, undoing(6)],
        "extra",
        9,
        "The code calls undo in a way that the record has not; it goes on with take.",
    ),
]


@pytest.mark.parametrize(("calls", "named", "seq", "message"), [case[1:] for case in NAMED], ids=[c[0] for c in NAMED])
def test_a_call_is_compared_with_what_comes_next_first(
    calls: list[Callable[[], Any]], named: str, seq: int | None, message: str
) -> None:
    first = replay(recording_of(), agent(*calls), patience=PATIENCE).differences[0]
    assert (first.class_, first.seq, first.message) == (named, seq, message)


def test_a_worker_that_makes_a_call_fewer_at_its_end_misses_that_call() -> None:
    log = Writing(RUN)
    first = [log.asked("tool_call", "look", {"place": place}) for place in ("a1", "b1")]
    last = []
    for intent, place in zip(first, ("a2", "b2"), strict=True):
        log.gave(intent, "seen")
        last.append(log.asked("tool_call", "look", {"place": place}))
    for intent in last:
        log.gave(intent, "seen")
        log.asked("llm_call", "ask_about", {"prompt": "what of 2 places?"})

    async def worker(*places: str) -> str:
        seen = [await look(place) for place in places]
        with guard.run(RUN) as run:
            answer: str = await run.llm(ask_about, prompt=f"what of {len(seen)} places?")
        return answer

    async def workers() -> tuple[str, str]:
        async with guard.run(RUN):
            return await asyncio.gather(worker("a1", "a2"), worker("b1"))

    found = replay(log.recording(), workers, patience=PATIENCE).differences[0]
    assert (found.class_, found.seq, found.recorded is not None and found.recorded.arguments) == (
        "missing",
        last[1],
        {"place": "b2"},
    )
