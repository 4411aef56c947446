"""How an outcome reaches the service, and what the caller hears where it does not."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import pytest

from tests.unit.sdk.scripted import (
    KEY,
    FakeClock,
    ScriptedService,
    committed,
    executes,
    problem,
)
from twiceshy import (
    Guard,
    LeaseLost,
    NotApplied,
    OutcomeNotDelivered,
    RunSuspended,
    Superseded,
)
from twiceshy._transports.base import NoReply

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection reset")


@dataclass(frozen=True)
class Receipt:
    """A result with a type of its own."""

    total: Decimal


def test_a_commit_that_the_service_refuses_is_sent_as_opaque(serve: Serve) -> None:
    guard, service = serve(executes(), problem("invalid-request", 400), committed())

    @guard.tool
    def pay() -> int:
        return 1

    with guard.run("booking-42"):
        assert pay() == 1
    first, second = service.bodies("/commit")
    assert first["result"] == 1
    assert isinstance(second["result"], dict)


def test_a_commit_is_delivered_through_bad_weather(serve: Serve) -> None:
    guard, service = serve(executes(), SILENCE, problem("store-unavailable", 503), SILENCE, committed())

    @guard.tool
    def pay() -> int:
        return 1

    with guard.run("booking-42"):
        assert pay() == 1
    assert service.bodies("/commit") == [service.bodies("/commit")[0]] * 4


def test_an_undeliverable_commit_carries_the_result(serve: Serve, clock: FakeClock) -> None:
    guard, _ = serve(executes(seconds=45.0), *[SILENCE] * 100)

    @guard.tool
    def pay() -> int:
        return 14

    with guard.run("booking-42"), pytest.raises(OutcomeNotDelivered, match=KEY) as caught:
        pay()
    assert (caught.value.has_result, caught.value.result) == (True, 14)
    assert 40 < clock.now - 1000 <= 45


@pytest.mark.parametrize(
    ("code", "kind"), [("superseded", Superseded), ("lease-lost", LeaseLost), ("not-possible", OutcomeNotDelivered)]
)
def test_a_refused_commit_says_so(serve: Serve, code: str, kind: type[Exception]) -> None:
    guard, _ = serve(executes(), problem(code))

    @guard.tool
    def pay() -> int:
        return 14

    with guard.run("booking-42"), pytest.raises(kind) as caught:
        pay()
    assert getattr(caught.value, "result") == 14  # noqa: B009 - every kind here has it


@pytest.mark.parametrize(("code", "kind"), [("superseded", Superseded), ("not-possible", OutcomeNotDelivered)])
def test_a_refused_report_says_so_and_keeps_the_cause(serve: Serve, code: str, kind: type[Exception]) -> None:
    guard, _ = serve(executes(), problem(code))

    @guard.tool
    def pay() -> None:
        raise NotApplied("closed")

    with guard.run("booking-42"), pytest.raises(kind) as caught:
        pay()
    assert isinstance(caught.value.__cause__, NotApplied)


def test_an_undeliverable_unknown_suspends_all_the_same(serve: Serve) -> None:
    guard, _ = serve(executes(), *[SILENCE] * 100)

    @guard.tool
    def pay() -> None:
        raise TimeoutError

    with guard.run("booking-42"), pytest.raises(RunSuspended):
        pay()
