"""Whether a tool's source proves that it marks what it sends: these expectations decide what may run again."""

import contextlib
import functools
import importlib
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import twiceshy
from tests.unit.sdk.scripted import ScriptedService, executes, failed
from twiceshy import Guard, RunSuspended, current_effect
from twiceshy import current_effect as now
from twiceshy._marks import marks_sending

Serve = Callable[..., tuple[Guard, ScriptedService]]


class Bank:
    """A provider with a member that happens to be called `sending`."""

    def __init__(self) -> None:
        self.sending: Any = None

    def pay(self) -> None:
        """Pay, and fail afterwards."""
        raise TimeoutError("after the payment")


bank = Bank()


def direct() -> None:
    with current_effect().sending():
        bank.pay()


def named_otherwise() -> None:
    with now().sending():
        bank.pay()


def by_a_local_name() -> None:
    effect = current_effect()
    with effect.sending() as _:
        bank.pay()


async def awaited() -> None:
    effect = current_effect()
    async with effect.sending():
        bank.pay()


def under_a_with_that_ends_the_body() -> None:
    effect = current_effect()
    if bank.sending is None:
        raise ValueError("no account")
    with contextlib.nullcontext():
        bank.sending = 1
        with contextlib.nullcontext(), effect.sending():
            bank.pay()


def after_an_early_return() -> None:
    if bank.sending:
        return bank.pay()
    with current_effect().sending():
        bank.pay()
    return None


def after_a_payment_under_if() -> None:
    if bank.sending:
        bank.pay()
    with current_effect().sending():
        bank.pay()


def after_a_loop() -> None:
    while bank.sending:
        bank.pay()
    with current_effect().sending():
        bank.pay()


def within_a_try() -> None:
    try:
        with current_effect().sending():
            bank.pay()
    finally:
        bank.pay()


def within_a_with_that_may_swallow() -> None:
    with contextlib.suppress(ValueError):
        bank.sending = None
        with current_effect().sending():
            bank.pay()
    bank.pay()


class OfClass:
    """Holds a method."""

    def method(self) -> None:
        bank.sending = """a text
at the margin"""
        effect = current_effect()
        with effect.sending():
            bank.pay()


def by_a_name_only() -> None:
    key = current_effect().downstream_key
    bank.sending = key
    bank.pay()


def of_another() -> None:
    current_effect()
    with bank.sending():
        bank.pay()


def under_if() -> None:
    if bank.sending:
        with current_effect().sending():
            bank.pay()
    bank.pay()


def under_for() -> None:
    for _ in range(0):
        with current_effect().sending():
            bank.pay()


def under_while() -> None:
    while bank.sending:
        with current_effect().sending():
            bank.pay()


def under_match() -> None:
    match bank.sending:
        case 1:
            with current_effect().sending():
                bank.pay()
        case _:
            pass


def under_except() -> None:
    try:
        bank.pay()
    except TimeoutError:
        with current_effect().sending():
            bank.pay()


def under_else() -> None:
    try:
        bank.pay()
    except TimeoutError:
        pass
    else:
        with current_effect().sending():
            bank.pay()


def under_finally() -> None:
    try:
        bank.pay()
    finally:
        with current_effect().sending():
            bank.pay()


def in_an_inner_function() -> None:
    def inner() -> None:
        with current_effect().sending():
            bank.pay()

    inner()
    bank.sending.sending()


def assigned_twice() -> None:
    effect = current_effect()
    effect = bank.sending
    with effect.sending():
        bank.pay()


def assigned_from_another() -> None:
    effect = bank.sending() or current_effect()
    with effect.sending():
        bank.pay()


def a_parameter(effect: Any) -> None:
    with effect.sending():
        bank.pay()


def shadowed() -> None:
    current_effect = bank.sending
    with current_effect().sending():
        bank.pay()


def rebound_within() -> None:
    effect = current_effect()

    def swap() -> None:
        nonlocal effect
        effect = bank.sending

    swap()
    with effect.sending():
        bank.pay()


def by_the_module() -> None:
    with twiceshy.current_effect().sending():
        bank.pay()


def entered_by_hand() -> None:
    current_effect().sending().__enter__()
    bank.pay()


@functools.wraps(direct)
def wrapped() -> None:
    direct()


@pytest.mark.parametrize("tool", [direct, named_otherwise, by_a_local_name, awaited, under_a_with_that_ends_the_body])
def test_an_unconditional_mark_of_the_current_effect_is_proof(tool: Callable[..., Any]) -> None:
    assert marks_sending(tool)


def test_methods_are_read_too() -> None:
    assert marks_sending(OfClass.method)
    assert marks_sending(OfClass().method)


@pytest.mark.parametrize(
    "tool",
    [
        by_a_name_only, of_another, after_an_early_return, after_a_payment_under_if, after_a_loop,
        within_a_try, within_a_with_that_may_swallow,
        under_if, under_for, under_while, under_match, under_except, under_else,
        under_finally, in_an_inner_function, assigned_twice, assigned_from_another, a_parameter, shadowed,
        rebound_within, by_the_module, entered_by_hand, wrapped, functools.partial(direct), print, Bank,
        lambda: current_effect().sending(),
    ],
)  # fmt: skip
def test_anything_else_proves_nothing(tool: Callable[..., Any]) -> None:
    assert not marks_sending(tool)


PAYS_FIRST = """from twiceshy import current_effect
def tool(bank):
    bank.pay()
    current_effect().sending()
"""
MARKS = """from twiceshy import current_effect
def tool(bank):
    with current_effect().sending():
        bank.pay()
"""


def test_a_source_that_was_edited_since_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "edited_tool.py").write_text(PAYS_FIRST)
    edited = importlib.import_module("edited_tool")
    (tmp_path / "edited_tool.py").write_text(MARKS)
    linecache.checkcache()
    assert not marks_sending(edited.tool)
    (tmp_path / "other_tool.py").write_text(MARKS)
    assert marks_sending(importlib.import_module("other_tool").tool)


def test_a_tool_without_source_proves_nothing() -> None:
    names: dict[str, Any] = {"current_effect": current_effect}
    exec("def pay():\n    with current_effect().sending():\n        pass\n", names)  # noqa: S102 - that is the case
    assert not marks_sending(names["pay"])


def test_a_payment_beside_a_name_like_the_mark_is_in_doubt_and_not_repeated(serve: Serve) -> None:
    guard, service = serve(executes(), failed("in_doubt"))
    charge = guard.tool(by_a_name_only)
    with guard.run("booking-42"), pytest.raises(RunSuspended):
        charge()
    assert service.bodies("/fail")[0]["kind"] == "unknown"
