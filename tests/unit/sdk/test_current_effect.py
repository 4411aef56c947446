"""What a tool knows of the effect that it runs for."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import pytest

from tests.unit.sdk.scripted import (
    DOWNSTREAM,
    KEY,
    FakeClock,
    ScriptedService,
    answered,
    committed,
    executes,
)
from twiceshy import (
    CurrentEffect,
    Guard,
    LeaseLost,
    NoEffect,
    current_effect,
)
from twiceshy._transports.base import NoReply

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection reset")


@dataclass(frozen=True)
class Receipt:
    """A result with a type of its own."""

    total: Decimal


def test_current_effect_tells_key_fence_and_time(serve: Serve, clock: FakeClock) -> None:
    guard, _ = serve(executes(), committed())
    seen: list[CurrentEffect] = []

    @guard.tool
    def pay() -> None:
        effect = current_effect()
        seen.append(effect)
        clock.now += 10
        assert effect.seconds_left == 20
        assert not effect.lease_lost
        clock.now += 20
        assert effect.lease_lost
        with pytest.raises(LeaseLost, match="Nothing was sent"), effect.sending():
            pytest.fail("sent without a lease")

    with guard.run("booking-42"):
        pay()
    assert (seen[0].key, seen[0].downstream_key, seen[0].fence) == (KEY, DOWNSTREAM, 1)
    with pytest.raises(NoEffect):
        current_effect()


def test_nested_calls_and_threads_keep_their_own_effect(serve: Serve) -> None:
    guard, _ = serve(executes(), executes(), committed(), committed())
    in_thread: list[type[BaseException]] = []

    def bare_thread() -> None:
        try:
            current_effect()
        except NoEffect as error:
            in_thread.append(type(error))

    @guard.tool
    def inner() -> str:
        return str(current_effect().attempt)

    @guard.tool
    def outer() -> bool:
        before = current_effect().attempt
        differs = inner() != str(before)
        thread = threading.Thread(target=bare_thread)
        thread.start()
        thread.join()
        return differs and current_effect().attempt == before

    with guard.run("booking-42"):
        assert outer()
    assert in_thread == [NoEffect]


@pytest.mark.parametrize(
    ("said", "held", "header"),
    [
        (None, None, "Idempotency-Key"),
        ("X-Request-Key", None, "X-Request-Key"),
        ("X-Request-Key", "PayPal-Request-Id", "PayPal-Request-Id"),
    ],
)
def test_a_tool_sends_its_provider_the_key_in_the_header_that_it_takes(
    serve: Serve, said: str | None, held: str | None, header: str
) -> None:
    guard, service = serve(executes(), committed())
    service.declaration = answered(200, {"declaration": {"class": "side_effect", "provider_key_header": held}})

    @guard.tool(provider_key_header=said)
    def pay() -> list[str]:
        return list(current_effect().provider_header)

    with guard.run("booking-42"):
        assert pay() == [header, DOWNSTREAM]
