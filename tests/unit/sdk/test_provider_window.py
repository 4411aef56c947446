"""A provider that answers a repeated key from its record: the call tries again by itself what is in doubt."""

from collections.abc import Callable

import pytest

from tests.unit.sdk.scripted import (
    DOWNSTREAM,
    FakeClock,
    ScriptedService,
    answered,
    committed,
    executes,
    failed,
    problem,
)
from twiceshy import Guard, OutcomeInDoubt, Rejected, RunSuspended, Tool, current_effect
from twiceshy._transports.base import NoReply

Serve = Callable[..., tuple[Guard, ScriptedService]]


def provided(
    guard: Guard, lost: int, *, deadline_seconds: float = 60, error: type[Exception] = TimeoutError
) -> tuple[Tool[[], int], list[str]]:
    """Put a tool behind the guard whose answers get lost the first times."""
    keys: list[str] = []

    @guard.tool(name="pay", provider_window_seconds=86_400, backoff_seconds=2, deadline_seconds=deadline_seconds)
    def pay() -> int:
        keys.append(current_effect().downstream_key)
        if len(keys) <= lost:
            raise error("connection dropped")
        return 14

    return pay, keys


def test_the_same_call_asks_again_under_the_same_key_until_it_hears(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(executes(), failed("in_doubt"), executes({}), failed("in_doubt"), executes({}), committed())
    pay, keys = provided(guard, 2)
    with guard.run("booking-42"):
        assert pay() == 14
    assert keys == [DOWNSTREAM] * 3
    assert clock.sleeps == [2.0, 4.0]
    assert [body["kind"] for body in service.bodies("/fail")] == ["unknown", "unknown"]


def test_what_the_window_does_not_cover_any_more_is_in_doubt(serve: Serve) -> None:
    guard, _ = serve(executes(), failed("in_doubt"), problem("outcome-in-doubt"))
    pay, keys = provided(guard, 9)
    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        pay()
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert len(keys) == 1


def test_doubt_is_what_is_left_where_the_next_try_would_come_after_the_deadline(serve: Serve, clock: FakeClock) -> None:
    guard, _ = serve(executes(), failed("in_doubt"), executes({}), failed("in_doubt"))
    pay, keys = provided(guard, 9, deadline_seconds=3)
    with guard.run("booking-42"), pytest.raises(RunSuspended, match="connection dropped") as caught:
        pay()
    assert len(keys) == 2
    assert clock.sleeps == [2.0]
    assert "twiceshy: it was tried 2 times." in caught.value.__notes__


def test_that_nobody_knows_outweighs_a_service_that_cannot_be_asked(serve: Serve) -> None:
    guard, _ = serve(executes(), failed("in_doubt"), *[NoReply(reason="connection refused")] * 100)
    pay, _ = provided(guard, 9)
    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        pay()
    assert any("could not be tried again" in note and "connection refused" in note for note in caught.value.__notes__)


def test_without_a_window_doubt_is_never_tried_again(serve: Serve, clock: FakeClock) -> None:
    guard, _ = serve(executes(), failed("in_doubt"))

    @guard.tool
    def pay() -> None:
        raise TimeoutError

    with guard.run("booking-42"), pytest.raises(RunSuspended):
        pay()
    assert clock.sleeps == []


def test_a_window_that_a_person_set_in_the_registry_counts(serve: Serve) -> None:
    guard, service = serve(executes(), failed("in_doubt"), executes({}), committed())
    held = {"class": "side_effect", "provider_window_seconds": 3600.0}
    service.declaration = answered(200, {"declaration": held})
    tries: list[int] = []

    @guard.tool
    def pay() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise TimeoutError
        return 14

    with guard.run("booking-42"):
        assert pay() == 14


def test_a_rejection_while_an_earlier_try_is_in_doubt_stays_in_doubt(serve: Serve) -> None:
    guard, _ = serve(executes(), failed("in_doubt"), executes({}), failed("in_doubt"))
    said = iter([TimeoutError(), Rejected("no money")])

    @guard.tool(provider_window_seconds=3600)
    def pay() -> None:
        raise next(said)

    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        pay()
    assert isinstance(caught.value.__cause__, Rejected)


def test_doubt_that_began_in_an_inner_effect_is_not_asked_for_again(serve: Serve) -> None:
    guard, service = serve(executes(), executes(), failed("in_doubt"), failed("in_doubt"))

    @guard.tool(on_doubt="tell")
    def inner() -> None:
        raise TimeoutError

    @guard.tool(provider_window_seconds=3600)
    def outer() -> None:
        inner()

    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        outer()
    assert isinstance(caught.value.__cause__, OutcomeInDoubt)
    assert service.answers == []
