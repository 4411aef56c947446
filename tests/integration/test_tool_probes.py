"""Probes in code: a tool's own function finds out what became of a call, in line and where an agent comes back."""

import asyncio
import inspect
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pytest

from tests.integration.paying import Bank, Guards, Receipt, effects, notes
from tests.service import ServiceProcess
from twiceshy import (
    Applied,
    AsyncTool,
    DoubtfulEffect,
    Guard,
    NotFound,
    OutcomeInDoubt,
    ResultNotKept,
    RunSuspended,
    Tool,
    Unproven,
)


@pytest.fixture
def guards(service: ServiceProcess) -> Iterator[Guards]:
    with ExitStack() as stack:
        yield Guards(service.url, stack)


def test_a_call_whose_payment_the_probe_finds_returns_as_if_the_tool_had(
    guards: Guards, service: ServiceProcess, run: str
) -> None:
    bank = Bank()
    guard, pay = guards.paying(bank, run)
    with guard.run(run):
        assert pay(Decimal("9.50")) == Receipt("p-1", Decimal("9.50"))
        assert pay(Decimal("9.50")) == Receipt("p-1", Decimal("9.50"))
    assert (bank.tries, len(bank.asked)) == (1, 1)
    (effect,) = effects(service, run)
    shown = service.ask("GET", f"/v1/effects/{effect['key']}").body
    assert (shown["state"], shown["attempts"][0]["report"]) == ("succeeded", "unknown")
    assert shown["resolution"] == f"applied (fence 1): the probe of pay-{run} says: applied"
    assert (bank.asked[0].key, bank.asked[0].tool, bank.asked[0].run) == (effect["key"], f"pay-{run}", run)


async def test_an_async_tool_with_an_async_probe_does_the_same(guards: Guards, run: str) -> None:
    bank = Bank()
    guard = guards.new()

    @guard.tool(name=f"pay-{run}", settle_seconds=0)
    async def pay(amount: Decimal) -> Receipt:
        return bank.pay(amount)

    @pay.probe
    async def look(effect: DoubtfulEffect, amount: Decimal) -> Applied | NotFound:
        assert amount == Decimal(5)
        return bank.look(effect)

    assert inspect.iscoroutinefunction(look)
    async with guard.run(run):
        assert await pay(Decimal(5)) == Receipt("p-1", Decimal(5))
    assert bank.tries == 1


async def test_a_probe_that_blocks_stands_beside_an_async_tool_too(guards: Guards, run: str) -> None:
    bank = Bank()
    guard = guards.new()

    @guard.tool(name=f"pay-{run}", settle_seconds=0)
    async def pay(amount: Decimal) -> Receipt:
        return bank.pay(amount)

    @pay.probe(timeout_seconds=5)
    def look(effect: DoubtfulEffect, **arguments: object) -> Applied | NotFound:
        assert arguments == {"amount": Decimal(5)}
        return bank.look(effect)

    async with guard.run(run):
        assert await pay(Decimal(5)) == Receipt("p-1", Decimal(5))


def test_what_the_probe_does_not_find_is_tried_again_in_the_same_call_under_another_downstream_key(
    guards: Guards, run: str
) -> None:
    bank = Bank(loses=1)
    guard, pay = guards.paying(bank, run)
    with guard.run(run):
        assert pay(Decimal(5)) == Receipt("p-1", Decimal(5))
    assert bank.tries == 2
    assert bank.asked[0].downstream_key not in bank.payments


def test_that_nothing_was_found_is_not_believed_before_the_settle_time(guards: Guards, run: str) -> None:
    """The payment lands while the call waits: it is found by the second question, and not made twice."""
    bank = Bank(loses=1)

    def land() -> None:
        bank.payments[bank.asked[0].downstream_key] = Receipt("late", Decimal(5))

    late = threading.Timer(0.5, land)
    guard, pay = guards.paying(bank, run, is_probed=False, settle_seconds=1)
    look = bank.look

    def looked(effect: DoubtfulEffect) -> Applied | NotFound:
        found = look(effect)
        if len(bank.asked) == 1:
            late.start()
        return found

    pay.probe(looked)
    with guard.run(run):
        assert pay(Decimal(5)) == Receipt("late", Decimal(5))
    assert (bank.tries, len(bank.asked)) == (1, 2)


def test_where_there_is_no_time_to_wait_the_run_is_suspended_and_the_next_call_asks_again(
    guards: Guards, run: str
) -> None:
    bank = Bank(loses=1)
    guard, pay = guards.paying(bank, run, settle_seconds=1, deadline_seconds=0.2)
    with guard.run(run):
        with pytest.raises(RunSuspended) as suspended:
            pay(Decimal(5))
        assert "its probe found nothing, which is believed only once" in notes(suspended.value)
        assert isinstance(suspended.value.__cause__, TimeoutError)
        time.sleep(1)
        assert pay(Decimal(5)) == Receipt("p-1", Decimal(5))
    assert bank.tries == 2


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (Unproven("the ledger is closed"), "its probe was asked: the ledger is closed."),
        (ConnectionError("reconnect failed"), "its probe was asked: it raised ConnectionError: reconnect failed."),
        ("paid", "it returned a str, and not Applied, NotFound or Unproven"),
    ],
    ids=["unproven", "raises", "another-word"],
)
def test_a_probe_that_proves_nothing_leaves_the_doubt_and_says_why(
    guards: Guards, service: ServiceProcess, run: str, behaviour: object, words: str
) -> None:
    """durable#37: a failure to reconnect does not mask that the outcome is unknown."""
    bank = Bank()
    guard, pay = guards.paying(bank, run, is_probed=False)

    def look(_: DoubtfulEffect) -> Any:
        if isinstance(behaviour, Exception):
            raise behaviour
        return behaviour

    pay.probe(look)
    with guard.run(run), pytest.raises(RunSuspended) as suspended:
        pay(Decimal(5))
    assert words in notes(suspended.value)
    assert isinstance(suspended.value.__cause__, TimeoutError)
    assert [effect["state"] for effect in effects(service, run)] == ["in_doubt"]


async def test_a_probe_that_hangs_is_cut_off(guards: Guards, run: str) -> None:
    guard, pay = hanging(guards, run, timeout_seconds=0.1)
    async with guard.run(run):
        with pytest.raises(RunSuspended) as suspended:
            await pay(Decimal(5))
    assert "it raised TimeoutError: cut off after 0.1 s" in notes(suspended.value)


def test_a_probe_whose_result_no_call_could_give_back_settles_nothing(guards: Guards, run: str) -> None:
    """What is settled stays; a probe that is mended can still be asked."""
    bank = Bank()
    guard, pay = guards.paying(bank, run, is_probed=False)
    wrong: list[Applied | NotFound] = [Applied("a receipt")]
    pay.probe(lambda effect: wrong.pop() if wrong else bank.look(effect))
    with guard.run(run), pytest.raises(RunSuspended) as suspended:
        pay(Decimal(5))
    assert "its result does not fit the tool's return annotation" in notes(suspended.value)
    with guard.run(run):
        assert pay(Decimal(5)) == Receipt("p-1", Decimal(5))
    assert bank.tries == 1


async def test_a_cancellation_while_the_probe_is_asked_passes_at_once_and_the_doubt_is_on_record(
    guards: Guards, service: ServiceProcess, run: str
) -> None:
    began = asyncio.Event()
    guard, pay = hanging(guards, run, timeout_seconds=60, began=began)
    async with guard.run(run):
        call = asyncio.ensure_future(pay(Decimal(5)))
        await began.wait()
        assert [effect["state"] for effect in effects(service, run)] == ["in_doubt"]
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(call, 2)


def hanging(
    guards: Guards, run: str, *, timeout_seconds: float, began: asyncio.Event | None = None
) -> tuple[Guard, AsyncTool[[Decimal], Receipt]]:
    """Return a guard with a tool whose probe never answers."""
    bank = Bank()
    guard = guards.new()

    @guard.tool(name=f"pay-{run}")
    async def pay(amount: Decimal) -> Receipt:
        return bank.pay(amount)

    @pay.probe(timeout_seconds=timeout_seconds)
    async def look(effect: DoubtfulEffect) -> Unproven:
        if began is not None:
            began.set()
        await asyncio.Event().wait()
        return Unproven()

    assert isinstance(pay, AsyncTool)
    return guard, pay


def test_an_agent_that_comes_back_asks_the_probe_about_the_doubt_that_it_finds(guards: Guards, run: str) -> None:
    """durable#2: sent, the process died before it could say so, and the resumed agent does not send again."""
    bank = Bank()
    first, pay = guards.paying(bank, run, is_probed=False)
    with first.run(run), pytest.raises(RunSuspended):
        pay(Decimal(5))
    second, again = guards.paying(bank, run)
    with second.run(run):
        assert again(Decimal(5)) == Receipt("p-1", Decimal(5))
    assert bank.tries == 1


def test_an_agent_that_comes_back_to_what_was_never_applied_tries_it_again(guards: Guards, run: str) -> None:
    """idempotency#10: after an outage the row is not stuck for ever, nobody has to repair the database."""
    bank = Bank(loses=1)
    first, pay = guards.paying(bank, run, is_probed=False)
    with first.run(run), pytest.raises(RunSuspended):
        pay(Decimal(5))
    second, again = guards.paying(bank, run)
    with second.run(run):
        assert again(Decimal(5)) == Receipt("p-1", Decimal(5))
    assert bank.tries == 2


def test_the_probe_is_asked_about_the_recorded_arguments_where_the_call_is_worded_anew(
    guards: Guards, run: str
) -> None:
    asked: list[str] = []

    def saying(*, is_probed: bool) -> tuple[Guard, Tool[[str, str], str]]:
        guard = guards.new()

        @guard.tool(name=f"mail-{run}", content=["/text"], settle_seconds=0)
        def mail(to: str, text: str) -> str:
            raise TimeoutError

        if is_probed:

            @mail.probe
            def look(effect: DoubtfulEffect, text: str) -> Applied:
                asked.append(text)
                return Applied("m-1")

        return guard, mail

    first, mail = saying(is_probed=False)
    with first.run(run), pytest.raises(RunSuspended):
        mail("bob", "It is done.")
    second, again = saying(is_probed=True)
    with second.run(run):
        assert again("bob", "Done!") == "m-1"
    assert asked == ["It is done."]


def test_an_applied_call_without_a_result_counts_as_done(guards: Guards, run: str) -> None:
    guard = guards.new()

    @guard.tool(name=f"ring-{run}", settle_seconds=0)
    def ring() -> None:
        raise TimeoutError

    @guard.tool(name=f"book-{run}", settle_seconds=0)
    def book() -> str:
        raise TimeoutError

    ring.probe(lambda _: Applied())
    book.probe(lambda _: Applied(object()))
    with guard.run(run):
        ring()
        with pytest.raises(ResultNotKept):
            book()


def test_a_tool_that_tells_hands_over_the_doubt_as_an_error_after_its_probe_was_asked(guards: Guards, run: str) -> None:
    guard, pay = guards.paying(Bank(), run, is_probed=False, on_doubt="tell")
    pay.probe(lambda _: Unproven("no idea"))
    with guard.run(run), pytest.raises(OutcomeInDoubt) as told:
        pay(Decimal(5))
    assert "no idea" in notes(told.value)


def test_within_its_providers_window_a_call_that_the_probe_cannot_clear_up_is_sent_again(
    guards: Guards, run: str
) -> None:
    bank = Bank(silent=1)
    guard, pay = guards.paying(bank, run, is_probed=False, provider_window_seconds=3600, backoff_seconds=0)
    pay.probe(lambda _: Unproven("the ledger is closed"))
    with guard.run(run):
        assert pay(Decimal(5)).amount == Decimal(5)
    assert bank.tries == 2
    assert len(bank.payments) == 1
