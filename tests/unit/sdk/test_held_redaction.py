"""What the registry alone redacts is left out of a log from the first call on, in the order of the calls."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.unit.sdk.recording import SILENCE, LogService, recorded
from tests.unit.sdk.scripted import answered
from twiceshy import Guard
from twiceshy._transports.base import Reply, Request
from twiceshy_contract.events import Intent

pytestmark = pytest.mark.anyio


def redacting(request: Request) -> Reply:
    class_ = msgspec.json.decode(request.body or b"")["class"]
    return answered(200, {"declaration": {"class": class_, "redacted": ["/card"]}})


@pytest.fixture
def service() -> LogService:
    service = LogService()
    service.declaration = redacting
    return service


@pytest.fixture
def guard(service: LogService) -> Iterator[Guard]:
    with recorded(service, unavailable_seconds=0.2) as guard:
        yield guard


def calls(service: LogService) -> list[Any]:
    return [event.arguments for event in service.events["r1"] if isinstance(event, Intent)]


def test_the_registry_is_asked_once_before_the_first_call_is_written(service: LogService, guard: Guard) -> None:
    @guard.tool(redacted=["/pin"])
    def pay(card: str, pin: str, to: str) -> str:
        return to

    with guard.run("r1"):
        assert [pay("4111", "1", "bob"), pay("4111", "2", "eve")] == ["bob", "eve"]
    assert calls(service) == [{"card": "[redacted]", "pin": "[redacted]", "to": to} for to in ("bob", "eve")]
    assert [request.method for request in service.requests].count("PUT") == 1
    (first, _) = [event for event in service.events["r1"] if isinstance(event, Intent)]
    assert first.redacted == ("/pin", "/card")


def test_where_the_registry_gives_no_answer_what_the_code_redacts_is_left_out(
    service: LogService, guard: Guard
) -> None:
    service.declaration = SILENCE

    @guard.tool(effect="read", redacted=["/pin"])
    def look(card: str, pin: str) -> str:
        return "seen"

    with guard.run("r1"):
        assert look("4111", "1") == "seen"
    assert calls(service) == [{"card": "4111", "pin": "[redacted]"}]


async def test_calls_of_one_tool_are_written_in_their_order_though_the_first_one_asks(
    service: LogService, guard: Guard
) -> None:
    @guard.tool(effect="read")
    async def look(card: str, at: int) -> int:
        return at

    async def answers_the_second_question_first(request: Request) -> None:
        if request.method == "PUT":
            questions.append(request)
            await asyncio.sleep(0 if len(questions) > 1 else 0.05)

    questions: list[Request] = []
    service.holding = answers_the_second_question_first
    async with guard.run("r1") as run:
        assert await run.gather(look("4111", 1), look("4111", 2)) == [1, 2]
    assert calls(service) == [{"card": "[redacted]", "at": 1}, {"card": "[redacted]", "at": 2}]
    assert len(questions) == 1


async def test_a_call_that_is_cancelled_while_the_registry_is_asked_is_in_the_log_as_cancelled(
    service: LogService, guard: Guard
) -> None:
    @guard.tool(redacted=["/card"])
    async def pay(card: str) -> str:
        return "paid"

    asked = asyncio.Event()

    async def hold(request: Request) -> None:
        if request.method == "PUT":
            asked.set()
            await asyncio.Event().wait()

    service.holding = hold
    async with guard.run("r1") as run:
        call = asyncio.create_task(pay("4111"))
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        run.random()
    assert service.kinds("r1") == ["1 tool_call pay", "2 cancelled of 1", "3 random random", "4 result of 3"]
