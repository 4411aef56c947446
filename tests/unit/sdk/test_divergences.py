"""Code that does otherwise than the record is stopped at the first call, and the difference has its right name."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.sdk.replays import RUN
from tests.unit.sdk.shop_agents import (
    agent,
    agent_async,
    ask,
    ask_async,
    charge,
    charge_async,
    guard,
    look_up,
    look_up_async,
    notify,
    recording_of,
    refund,
    refund_async,
)
from twiceshy._differences import Difference
from twiceshy._replay import replay
from twiceshy._replay_errors import ReplayDiverged
from twiceshy._replayed import Replayed

PATIENCE = 0.05


def one_more_of_the_same() -> None:
    with guard.run(RUN):
        look_up("a")
        look_up("a")


def another_more_in_between() -> None:
    with guard.run(RUN):
        look_up("a")
        notify("I have looked up a")


def one_more_at_the_end() -> None:
    agent()
    with guard.run(RUN):
        notify("done")


def one_fewer_at_the_end() -> None:
    with guard.run(RUN) as run:
        look_up("a")
        look_up("b")
        run.llm(ask, prompt="which of 5 and 7?")


def one_fewer_in_between() -> None:
    with guard.run(RUN) as run:
        look_up("a")
        run.llm(ask, prompt="which of 5 and 7?")
        charge("a", 5)


def other_arguments() -> None:
    with guard.run(RUN):
        look_up("a")
        look_up("c")


def another_tool() -> None:
    with guard.run(RUN) as run:
        look_up("a")
        look_up("b")
        run.llm(ask, prompt="which of 5 and 7?")
        refund("a", 5)


def another_kind() -> None:
    with guard.run(RUN) as run:
        look_up("a")
        run.custom("charge", charge.__wrapped__, "a", 5)


async def async_one_more_of_the_same() -> None:
    async with guard.run(RUN):
        await asyncio.gather(look_up_async("a"), look_up_async("a"))


async def async_one_fewer_in_between() -> None:
    async with guard.run(RUN) as run:
        await look_up_async("a")
        await run.llm(ask_async, prompt="which of 5 and 7?")
        await charge_async("a", 5)


async def async_one_fewer_at_the_end() -> None:
    async with guard.run(RUN) as run:
        await look_up_async("a")
        await look_up_async("b")
        await run.llm(ask_async, prompt="which of 5 and 7?")


async def async_other_arguments() -> None:
    async with guard.run(RUN):
        await asyncio.gather(look_up_async("a"), look_up_async("c"))


async def async_another_tool() -> None:
    async with guard.run(RUN) as run:
        await look_up_async("a")
        await look_up_async("b")
        await run.llm(ask_async, prompt="which of 5 and 7?")
        await refund_async("a", 5)


async def async_another_kind() -> None:
    async with guard.run(RUN) as run:
        await run.custom("look_up_async", look_up_async.__wrapped__, "a")


NAMED: list[tuple[Callable[[], Any], str, int | None, str]] = [
    (one_more_of_the_same, "extra", 3, "look_up is called once more than the record has it."),
    (another_more_in_between, "extra", 3, "The code calls notify, which the record has not; it goes on with look_up."),
    (one_more_at_the_end, "extra", None, "The record has no call left; the code calls notify."),
    (one_fewer_at_the_end, "missing", 7, "charge (event 7) is not called any more."),
    (one_fewer_in_between, "missing", 3, "look_up (event 3) is not called any more."),
    (other_arguments, "arguments", 3, "look_up is called with other arguments."),
    (another_tool, "name", 7, "The code calls refund where the record has charge."),
    (another_kind, "kind", 7, "charge was a tool_call when it was recorded, and is a custom now."),
    (async_one_more_of_the_same, "extra", 3, "look_up_async is called once more than the record has it."),
    (async_one_fewer_in_between, "missing", 3, "look_up_async (event 3) is not called any more."),
    (async_one_fewer_at_the_end, "missing", 7, "charge_async (event 7) is not called any more."),
    (async_other_arguments, "arguments", 3, "look_up_async is called with other arguments."),
    (async_another_tool, "name", 7, "The code calls refund_async where the record has charge_async."),
    (async_another_kind, "kind", 1, "look_up_async was a tool_call when it was recorded, and is a custom now."),
]


def replayed(changed: Callable[[], Any]) -> Replayed:
    suffix = "_async" if asyncio.iscoroutinefunction(changed) else ""
    return replay(recording_of(suffix=suffix), changed, patience=PATIENCE)


@pytest.mark.parametrize(("changed", "named", "seq", "message"), NAMED, ids=[case[0].__name__ for case in NAMED])
def test_each_difference_has_its_right_name(
    changed: Callable[[], Any], named: str, seq: int | None, message: str
) -> None:
    again = replayed(changed)
    first = again.differences[0]
    assert (first.class_, first.seq, first.message) == (named, seq, message)
    assert (again.is_same, again.exit_code) == (False, 1)


@pytest.mark.parametrize(("code", "suffix"), [(agent, ""), (agent_async, "_async")])
def test_the_recorded_code_is_the_same_to_the_end(code: Callable[[], Any], suffix: str) -> None:
    again = replay(recording_of(suffix=suffix), code)
    assert (again.value, again.divergences, again.is_same, again.exit_code) == ("charged a", (), True, 0)
    assert len(again.events) == 8


def test_sequential_calls_in_another_order_are_a_note() -> None:
    def reordered() -> str:
        with guard.run(RUN) as run:
            second, first = look_up("b")["price"], look_up("a")["price"]
            return charge(run.llm(ask, prompt=f"which of {first} and {second}?"), first)

    again = replay(recording_of(), reordered, patience=PATIENCE)
    assert again.value == "charged a"
    assert [(one.class_, one.seq, one.is_note) for one in again.divergences] == [("reordered", 1, True)]
    assert (again.is_same, again.exit_code) == (True, 0)


def test_concurrent_calls_in_another_order_are_a_note() -> None:
    async def reordered() -> list[int]:
        async with guard.run(RUN) as run:
            second, first = await asyncio.gather(look_up_async("b"), look_up_async("a"))
            await run.llm(ask_async, prompt=f"which of {first['price']} and {second['price']}?")
            await charge_async("a", 5)
            return [first["price"], second["price"]]

    again = replay(recording_of(suffix="_async"), reordered, patience=PATIENCE)
    assert again.value == [5, 7]
    assert [(one.class_, one.is_note) for one in again.divergences] == [("reordered", True)]


def test_code_that_swallows_everything_is_stopped_all_the_same() -> None:
    seen = []

    def stubborn() -> str:
        with guard.run(RUN):
            for order in ("a", "x", "y"):
                try:
                    look_up(order)
                except Exception as error:  # noqa: BLE001 - as an agent's loop does it
                    seen.append(error)
        return "went on"

    again = replay(recording_of(), stubborn)
    assert seen == []
    assert (again.value, again.differences[0].class_) == (None, "arguments")
    assert isinstance(again.error, ReplayDiverged)


def test_the_first_difference_is_shown_with_what_stands_beside_it() -> None:
    again = replay(recording_of(), other_arguments)
    (first,) = again.differences
    assert first.arguments == (Difference("/order", "b", "c"),)
    assert again.report().splitlines() == [
        "Replay (full) of run contract-7: 8 events recorded.",
        "It diverged: look_up is called with other arguments (/order: 'b' -> 'c').",
        "",
        "Divergence at event 3 of the record: arguments",
        "  look_up is called with other arguments.",
        "  recorded: tool_call look_up(order='b')",
        "  now:      tool_call look_up(order='c')",
        "    /order: 'b' -> 'c'",
        "  around it:",
        "          1  Called look_up with order 'a'",
        "          2  look_up (1): {price: 5}",
        "    >     3  Called look_up with order 'b'",
        "          4  look_up (3): {price: 7}",
        "          5  Asked ask 'which of 5 and 7?'",
        "  " + first.advice,
    ]


def test_the_differences_are_an_error_and_json_too() -> None:
    again = replay(recording_of(), one_fewer_in_between, patience=PATIENCE)
    with pytest.raises(ReplayDiverged, match=r"look_up \(event 3\) is not called any more") as raised:
        again.require_same()
    assert [one.class_ for one in raised.value.divergences] == ["missing"]
    told = again.to_json()
    assert told["unused_overrides"] == []
    assert (told["exit_code"], told["divergences"][0]["class"], told["divergences"][0]["seq"]) == (1, "missing", 3)


def test_a_call_after_the_last_recorded_one_is_said_to_be_after_the_end() -> None:
    first = replay(recording_of(), one_more_at_the_end).differences[0]
    assert next(first.lines()) == "Divergence after the end of the record: extra"


def test_a_call_that_comes_before_all_recorded_ones_is_said_to_be_at_the_beginning() -> None:
    def clock_first() -> str:
        with guard.run(RUN) as run:
            run.now()
        return agent()

    note = replay(recording_of(), clock_first, mode="retest").divergences[0]
    assert (next(note.lines()), note.is_note) == ("Note at the beginning of the record: extra", True)


def test_a_tool_outside_of_the_run_is_refused() -> None:
    def outside() -> None:
        agent()
        look_up("a")

    again = replay(recording_of(), outside)
    assert again.differences[0].message.startswith("look_up is called outside of the run contract-7")
    assert next(again.differences[0].lines()) == "Divergence after event 7 of the record: extra"


def test_another_run_than_the_recorded_one_is_refused() -> None:
    def two_runs() -> None:
        agent()
        with guard.run("contract-8"):
            look_up("a")

    again = replay(recording_of(), two_runs)
    assert next(again.differences[0].lines()) == "Divergence after event 7 of the record: extra"
    assert again.differences[0].message == (
        "The code enters the run contract-8; the recording is of contract-7 and holds no such run."
    )
