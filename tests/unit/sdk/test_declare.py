"""A tool is declared once, and again where it is defined anew: what was corrected in a cell must count."""

from collections.abc import Callable

import pytest

from tests.unit.sdk.scripted import ScriptedService, answered, committed, declared, executes, payer
from twiceshy import ApprovalRule, Guard
from twiceshy._transports.base import Reply, Request

Serve = Callable[..., tuple[Guard, ScriptedService]]


def declarations(service: ScriptedService) -> list[object]:
    """What was declared of the approval, in order."""
    return [body["approval"] for body in service.bodies("/v1/tools/pay")]


def serving(serve: Serve, calls: int) -> tuple[Guard, ScriptedService]:
    return serve(*[answer for _ in range(calls) for answer in (executes(), committed())])


def test_a_tool_that_is_defined_anew_is_declared_anew(serve: Serve) -> None:
    guard, service = serving(serve, 4)
    with guard.run("booking-42"):
        payer(guard, [])(1)
        pay = payer(guard, [], approval=True)
        pay(2)
        pay(3)
        payer(guard, [])(4)
    asks = {"when": None, "quorum": 1, "four_eyes": True, "deadline_seconds": None, "summary": None}
    assert declarations(service) == [None, asks, None]


def test_a_cell_that_is_run_again_unchanged_declares_nothing(serve: Serve) -> None:
    guard, service = serving(serve, 2)
    with guard.run("booking-42"):
        payer(guard, [], approval=ApprovalRule(quorum=2))(1)
        payer(guard, [], approval=ApprovalRule(quorum=2))(2)
    assert len(declarations(service)) == 1


def test_a_tool_that_was_defined_before_obeys_the_newest_definition(serve: Serve) -> None:
    guard, service = serving(serve, 3)
    old = payer(guard, [])
    with guard.run("booking-42"):
        payer(guard, [], approval=True)(1)
        old(2)
        old(3)
    assert len(declarations(service)) == 1
    assert declarations(service) != [None]


def test_a_stricter_class_is_said_again_only_where_something_changed(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    guard, service = serving(serve, 2)
    service.declaration = answered(200, {"declaration": {"class": "side_effect"}})
    with guard.run("booking-42"):
        payer(guard, [], effect="idempotent")(1)
        payer(guard, [], effect="idempotent", attempts=2)(2)
    assert len(caplog.records) == 1


def test_a_declaration_is_what_the_newest_definition_says_also_while_it_is_asked_for(serve: Serve) -> None:
    guard, service = serving(serve, 2)
    old = payer(guard, [])

    def corrected_meanwhile(request: Request) -> Reply:
        payer(guard, [], loop_limit=3)
        service.declaration = declared
        return declared(request)

    service.declaration = corrected_meanwhile
    with guard.run("booking-42"):
        old(1)
        old(2)
    assert [body["loop_limit"] for body in service.bodies("/v1/tools/pay")] == [None, 3]
