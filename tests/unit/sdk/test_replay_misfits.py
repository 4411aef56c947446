"""What is given in the place of an outcome and does not fit ends a replay at once, whatever the code catches."""

import asyncio
import functools
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.replays import RUN, InMemory
from tests.unit.sdk.shop_agents import guard, really_ran
from twiceshy import Override, Recording, SetupError
from twiceshy._exchanges.asked import Asked, boundary_of
from twiceshy._exchanges.options import HttpOptions
from twiceshy._log import Log
from twiceshy._overrides import Overrides
from twiceshy._replay import replay, replay_async
from twiceshy._replay_plan import Plan
from twiceshy._replaying import raise_misfit
from twiceshy._scripts import ReplayScript
from twiceshy._session import Session

PATIENCE = 30.0
"""Nothing here may wait for it."""


@guard.tool(effect="read")
def price(order: str) -> int:
    really_ran("price", order)


@guard.tool(effect="read")
async def price_async(order: str) -> int:
    really_ran("price_async", order)


def model(prompt: str) -> str:
    really_ran("model", prompt)


def recording_of(suffix: str = "") -> Recording:
    log = Writing(RUN)
    log.tool(f"price{suffix}", {"order": "a"}, 5)
    log.tool(f"price{suffix}", {"order": "b"}, 7)
    log.call("llm_call", "model", {"prompt": "which?"}, "a")
    return log.recording()


def careless(orders: tuple[str, ...] = ("a", "b")) -> list[Any]:
    """Catch every Exception, as agents' loops do."""
    seen: list[Any] = []
    with guard.run(RUN) as run:
        calls: list[Callable[[], Any]] = [
            *(functools.partial(price, order) for order in orders),
            lambda: run.llm(model, prompt="which?"),
        ]
        for call in calls:
            try:
                seen.append(call())
            except Exception as error:  # noqa: BLE001 - as an agent's loop does it
                seen.append(error)
    return seen


def shameless() -> list[Any]:
    """Catch whatever is raised."""
    seen: list[Any] = []
    with guard.run(RUN):
        for order in ("a", "b"):
            try:
                seen.append(price(order))
            except BaseException as error:  # noqa: BLE001 - as bare `except:` does it
                seen.append(error)
    return seen


@pytest.mark.parametrize("agent", [careless, shameless])
def test_an_override_of_another_type_is_refused_as_the_override_that_it_is(agent: Callable[[], Any]) -> None:
    began = time.monotonic()
    with pytest.raises(SetupError) as refused:
        replay(recording_of(), agent, overrides=[Override(seq=1, result="five")], patience=PATIENCE)
    assert str(refused.value) == (
        "The override of event 1: 'five' does not fit what price returns: it is a str, the annotation says int: "
        "Expected `int`, got `str`. Give a value of its type, or JSON that fits it."
    )
    assert time.monotonic() - began < PATIENCE / 2


def test_an_override_with_nothing_in_the_place_of_a_number_is_refused() -> None:
    with pytest.raises(SetupError, match="override of event 3: None does not fit what price returns: it is None, the"):
        replay(recording_of(), careless, overrides=[Override(seq=3, result=None)], patience=PATIENCE)


async def test_an_override_is_refused_on_an_event_loop_while_other_calls_wait() -> None:
    async def both() -> Any:
        async with guard.run(RUN):
            return await asyncio.gather(price_async("a"), price_async("b"), return_exceptions=True)

    with pytest.raises(SetupError, match="The override of event 3: 'x' does not fit what price_async returns"):
        await replay_async(recording_of("_async"), both, overrides=[Override(seq=3, result="x")], patience=PATIENCE)


def test_an_answer_of_another_type_is_refused() -> None:
    with pytest.raises(SetupError, match="The answer for price does not fit what price returns: it is a str, the"):
        replay(recording_of(), lambda: careless(("a", "c")), mode="retest", answers={"price": "x"}, patience=PATIENCE)


async def answered_async(prompt: str) -> str:
    return prompt


STAND_INS: list[tuple[Callable[..., Any], str]] = [
    (lambda question: question, r"does not take its arguments \(prompt\): .*'question'. Give it parameters of these"),
    (answered_async, "What stands in for model is async, and the call is not; give a plain function."),
]


@pytest.mark.parametrize(("stand_in", "message"), STAND_INS, ids=["other parameters", "async"])
def test_a_stand_in_that_cannot_be_called_is_refused(stand_in: Callable[..., Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        replay(recording_of(), careless, mode="retest", llm=stand_in, patience=PATIENCE)


def test_what_a_stand_in_raises_is_for_the_code() -> None:
    def broken(prompt: str) -> str:
        raise TypeError(prompt)

    again = replay(recording_of(), careless, mode="retest", llm=broken)
    assert [repr(each) for each in again.value] == ["5", "7", "TypeError('which?')"]


def fork_of(override: Override) -> Session:
    recording = recording_of()
    plan = Plan(mode="fork", at=7, overrides=Overrides([override], recording), is_online=True)
    return Session(Log(InMemory()), ReplayScript(recording, plan))


def test_who_interrupts_the_code_comes_first() -> None:
    session = fork_of(Override(seq=1, result="five"))
    assert session.script is not None
    session.script.refuse(SetupError("does not fit"))
    raise_misfit(session, KeyboardInterrupt())
    with pytest.raises(SetupError, match="does not fit"):
        raise_misfit(session, None)


def test_an_override_of_a_request_is_an_answer_that_can_be_read() -> None:
    asked = Asked.of("GET", "http://shop/a", (), b"")
    boundary = boundary_of(asked, HttpOptions())
    override = Override(seq=1, result={"status": 200, "headers": "none"})
    with pytest.raises(
        SetupError, match="does not fit what GET shop returns: it is no answer of a server: the headers"
    ):
        override.outcome(boundary)
    given = {"status": 200, "headers": {}, "body": {"price": 5}}
    assert Override(seq=1, result=given).outcome(boundary).value == given
