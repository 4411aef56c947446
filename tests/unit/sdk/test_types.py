"""What a type checker sees of a guarded tool; mypy reads this file as part of the checks."""

from collections.abc import Callable, Coroutine
from typing import Any, assert_type

from tests.unit.sdk.scripted import ScriptedService, committed, executes
from twiceshy import Answer, Guard

Serve = Callable[..., tuple[Guard, ScriptedService]]


def test_a_guarded_function_keeps_its_types(serve: Serve) -> None:
    guard, _ = serve(*[executes(), committed()] * 3)

    @guard.tool
    def pay(amount: int, note: str = "") -> bytes:
        return note.encode() * amount

    @guard.tool(effect="side_effect", content=["/note"])
    async def pay_later(amount: int, note: str = "") -> bytes:
        return note.encode() * amount

    class Bank:
        """Has a method."""

        @guard.tool
        def transfer(self, amount: int) -> str:
            return str(amount)

    with guard.run("booking-42"):
        assert_type(pay(1, note="a"), bytes)
        assert_type(pay.with_key(step=1)(1, "a"), bytes)
        assert_type(Bank().transfer(1), str)
    coroutine: Coroutine[Any, Any, bytes] = assert_type(pay_later(1), Coroutine[Any, Any, bytes])
    coroutine.close()


def test_an_answer_keeps_the_type_of_its_value(serve: Serve) -> None:
    guard, _ = serve(*[executes(), committed()] * 2)

    @guard.tool
    def pay(amount: int, note: str = "") -> bytes:
        return note.encode() * amount

    @guard.tool(effect="idempotent")
    async def pay_later(amount: int, note: str = "") -> bytes:
        return note.encode() * amount

    class Bank:
        """Has a method."""

        @guard.tool
        def transfer(self, amount: int) -> str:
            return str(amount)

    with guard.run("booking-42"):
        assert_type(pay.with_key(step=1).answer(1, note="a"), Answer[bytes])
        assert_type(Bank().transfer.answer(1).value, str)
    coroutine = assert_type(pay_later.answer_async(1), Coroutine[Any, Any, Answer[bytes]])
    coroutine.close()
