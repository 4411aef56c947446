"""A tool that only reads: it runs without the service, unless the registry holds it stricter than its code."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.sdk.scripted import (
    FakeClock,
    ScriptedService,
    answered,
    committed,
    declared,
    executes,
    payer,
    problem,
    replays,
)
from twiceshy import (
    ApprovalRule,
    Compensation,
    Guard,
    GuardUnavailable,
    NoRun,
    RequestRefused,
    ResourceRule,
    SetupError,
)
from twiceshy._transports.base import NoReply

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection reset")
STRICTER = answered(200, {"declaration": {"class": "side_effect"}})


def test_a_read_runs_each_time_without_a_lease_and_is_declared_once(serve: Serve) -> None:
    guard, service = serve()
    calls: list[int] = []
    balance = payer(guard, calls, effect="read")
    assert [balance(7), balance(7)] == [14, 14]
    assert calls == [7, 7]
    assert [(request.method, request.path) for request in service.requests] == [("PUT", "/v1/tools/pay")]


def test_a_read_runs_while_the_registry_is_away_and_says_so_once(
    serve: Serve, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    guard, service = serve()
    service.declaration = SILENCE
    balance = payer(guard, [], effect="read")
    assert [balance(1), balance(2)] == [2, 4]
    assert sum(clock.sleeps) <= 2
    (said,) = caplog.records
    assert (said.levelno, "connection reset" in said.getMessage()) == (logging.WARNING, True)
    asked = len(service.requests)
    clock.now += 30
    service.declaration = declared
    assert balance(3) == 6
    assert len(service.requests) == asked + 1


def test_a_read_that_the_registry_holds_stricter_goes_through_the_guard(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    guard, service = serve(executes(), committed(), replays(14))
    service.declaration = STRICTER
    calls: list[int] = []
    balance = payer(guard, calls, effect="read")
    with guard.run("booking-42"):
        assert [balance(7), balance(7)] == [14, 14]
    assert calls == [7]
    assert service.bodies("/v1/effects")[0]["arguments"] == {"amount": 7}
    assert "The registry holds pay as side_effect, its code says read." in caplog.text


@pytest.mark.anyio
async def test_an_async_read_does_the_same(serve: Serve) -> None:
    guard, service = serve(executes(), committed())

    @guard.tool(effect="read")
    async def balance(of: str) -> int:
        return 7

    assert await balance("bob") == 7
    guard, service = serve(executes(), committed())
    service.declaration = STRICTER
    stricter = guard.tool(name="stricter", effect="read")(balance.__wrapped__)
    with guard.run("booking-42"):
        assert await stricter("bob") == 7
    assert service.paths == ["effects", "commit"]


def test_a_read_that_is_held_stricter_needs_a_run(serve: Serve) -> None:
    guard, service = serve()
    service.declaration = STRICTER
    calls: list[int] = []
    with pytest.raises(NoRun):
        payer(guard, calls, effect="read")(7)
    assert calls == []


def test_a_read_that_is_known_to_be_held_stricter_fails_closed_while_the_service_is_away(
    serve: Serve, clock: FakeClock
) -> None:
    guard, service = serve(executes(), committed())
    service.declaration = STRICTER
    calls: list[int] = []
    balance = payer(guard, calls, effect="read")
    with guard.run("booking-42"):
        balance(7)
        clock.now += 3600
        service.declaration, service.always = SILENCE, SILENCE
        with pytest.raises(GuardUnavailable):
            balance(8)
    assert calls == [7]


def test_what_a_person_makes_stricter_later_counts_within_a_minute(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(executes(), committed())
    balance = payer(guard, [], effect="read")
    with guard.run("booking-42"):
        balance(7)
        service.declaration = STRICTER
        balance(7)
        assert service.paths == []
        clock.now += 60
        balance(7)
    assert service.paths == ["effects", "commit"]


def test_a_read_whose_declaration_is_refused_does_not_run(serve: Serve) -> None:
    guard, service = serve()
    service.declaration = problem("invalid-request", 400)
    calls: list[int] = []
    with pytest.raises(RequestRefused):
        payer(guard, calls, effect="read")(7)
    assert calls == []


def test_a_read_that_the_registry_holds_idempotent_tells_what_its_agent_knows(serve: Serve) -> None:
    answers = [replays(14, key="aa" * 32), replays(14, key="aa" * 32), executes(), committed()]
    guard, service = serve(*answers)
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})
    light = payer(guard, [], effect="read")
    with guard.run("booking-42"):
        light(7)
        light(7)
    assert service.bodies("/v1/effects")[1]["delivered"] == ["aa" * 32]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("approval", True),
        ("approval", ApprovalRule(quorum=2)),
        ("compensation", Compensation(tool="refund")),
        ("key", "step"),
        ("loop_limit", 3),
        ("provider_window_seconds", 60),
        ("provider_key_header", "Idempotency-Key"),
        ("repeat", "ask"),
        ("resource", ResourceRule(name="room", start="/amount", minutes="/amount")),
        ("scope", "tenant"),
        ("share", False),
    ],
)
def test_an_option_that_means_nothing_for_a_read_is_refused_by_its_name(option: str, said: Any) -> None:
    with pytest.raises(SetupError, match=rf"pay: effect='read' says .* {option} would do nothing"):
        payer(Guard("http://127.0.0.1:1", spool=None), [], effect="read", **{option: said})


def test_options_that_hold_where_the_registry_is_stricter_are_taken_for_a_read() -> None:
    guard = Guard("http://127.0.0.1:1", spool=None)
    payer(guard, [], effect="read", on_approval="wait", on_doubt="tell", wait_seconds=1, redacted=["/amount"])
