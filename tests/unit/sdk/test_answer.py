"""What an agent's loop may show of a call: its value, and that it was done already."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.sdk.scripted import KEY, ScriptedService, answered, committed, executes, replays
from twiceshy import Answer, Guard, Rejected, SetupError

Serve = Callable[..., tuple[Guard, ScriptedService]]
SAID = "done at step 3 of run booking-42, 2026-10-12T14:00:01Z"


def repeats(result: object = 14) -> dict[str, object]:
    return {
        "decision": "replay", "key": KEY, "state": "succeeded", "tool": "pay", "tool_version": 1, "run": "booking-42",
        "step": 3, "occurrence": 1, "generation": 1, "fence": 1, "outcome": {"result": result},
        "committed_at": "2026-10-12T14:00:01Z", "repeat_of": {"run": "booking-42", "step": 3}, "said": SAID,
    }  # fmt: skip


def test_an_answer_says_that_it_was_done_already_and_at_which_step(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    guard, _ = serve(answered(200, repeats()))

    @guard.tool
    def pay(amount: int) -> int:
        pytest.fail("ran")

    with guard.run("booking-42"), caplog.at_level(logging.INFO, logger="twiceshy"):
        answer = pay.answer(7)
    assert answer == Answer(value=14, is_replay=True, said=SAID, step=3, run="booking-42", key=KEY)
    assert f"pay was answered from the record: {SAID} (effect {KEY})." in caplog.text


def test_an_answer_of_now_says_nothing_beside_its_value(serve: Serve) -> None:
    guard, _ = serve(executes(), committed())

    @guard.tool
    def pay(amount: int) -> int:
        return amount * 2

    with guard.run("booking-42"):
        assert pay.answer(7) == Answer(value=14, is_replay=False, said="", step=1, run="booking-42", key=KEY)


def test_a_service_that_does_not_say_it_is_said_for(serve: Serve) -> None:
    guard, _ = serve(replays(14))

    @guard.tool
    def pay(amount: int) -> int:
        pytest.fail("ran")

    with guard.run("booking-42"):
        assert pay.answer(7).said == "done on 2026-10-12T14:00:01Z"


def test_a_stub_answers_in_a_fork_as_a_record_does(serve: Serve) -> None:
    stub = {
        "decision": "stub", "tool": "pay", "tool_version": 1, "run": "fork-1", "outcome": {"result": 14},
        "provenance": "simulator", "rule": "simulator", "origin": None,
    }  # fmt: skip
    guard, _ = serve(answered(200, stub), answered(200, stub))

    @guard.tool
    def pay(amount: int) -> int:
        pytest.fail("ran")

    with guard.run("fork-1"):
        assert pay(7) == 14
        answer = pay.answer(7)
    assert (answer.is_replay, answer.run, answer.key) == (True, "fork-1", None)
    assert answer.said == "not run in this fork; the tool's simulator answers (simulator)"


def test_a_stub_of_a_recorded_rejection_rejects(serve: Serve) -> None:
    stub = {
        "decision": "stub", "tool": "pay", "tool_version": 1, "run": "fork-1", "provenance": "recorded",
        "outcome": {"error": {"type": "CardDeclined", "message": "no money"}}, "rule": "recorded", "origin": KEY,
    }  # fmt: skip
    guard, _ = serve(answered(200, stub))

    @guard.tool
    def pay(amount: int) -> int:
        pytest.fail("ran")

    with guard.run("fork-1"), pytest.raises(Rejected, match="no money"):
        pay(7)


def test_a_reading_tool_answers_with_its_value_alone(serve: Serve) -> None:
    guard, service = serve()

    @guard.tool(effect="read")
    def balance() -> int:
        return 7

    assert balance.answer() == Answer(value=7)
    assert service.paths == []


@pytest.mark.anyio
async def test_an_async_tool_answers_when_it_is_awaited(serve: Serve) -> None:
    guard, _ = serve(answered(200, repeats()))

    @guard.tool
    async def pay(amount: int) -> int:
        pytest.fail("ran")

    @guard.tool(effect="read")
    async def balance() -> int:
        return 7

    async with guard.run("booking-42"):
        assert (await pay.answer_async(7)).said == SAID
        assert await balance.answer_async() == Answer(value=7)


@pytest.mark.anyio
async def test_the_answer_of_the_other_kind_of_function_is_refused_before_anything_begins(serve: Serve) -> None:
    guard, service = serve()

    @guard.tool
    async def later(amount: int) -> int:
        return amount

    @guard.tool
    def now(amount: int) -> int:
        return amount

    unchecked: Any = now
    with guard.run("booking-42"):
        with pytest.raises(SetupError, match=r"await answer_async"):
            later.answer(7)
        with pytest.raises(SetupError, match=r"answer\("):
            await unchecked.answer_async(7)
    assert service.requests == []
