"""The bell tells relays of what was staged: soon, together, and without ever holding anybody up."""

import asyncio
from typing import cast

import pytest

from guard.ports.relay import RelayStore
from guard.ports.store import StoreUnavailable
from guard.service import bell as bells
from guard.service.bell import Bell


class Relay:
    """Counts how often it was rung, and fails the first so many times."""

    def __init__(self, failures: int = 0) -> None:
        self.rung = 0
        self._failures = failures
        self.heard = asyncio.Event()

    async def ring(self) -> None:
        self.rung += 1
        self.heard.set()
        if self.rung <= self._failures:
            raise StoreUnavailable("away")


def bell_of(relay: Relay) -> Bell:
    return Bell(cast("RelayStore", relay))


async def test_what_is_staged_at_once_is_told_once() -> None:
    relay = Relay()
    bell = bell_of(relay)
    for _ in range(100):
        bell.ring()
    await bell.run_once()
    assert relay.rung == 1


async def test_a_bell_that_nobody_rings_is_silent_and_one_that_fails_rings_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bells, "PAUSE_SECONDS", 0)
    relay = Relay(failures=1)
    bell = bell_of(relay)
    running = asyncio.create_task(bell.run())
    await asyncio.sleep(0)
    assert relay.rung == 0
    for number in (1, 2):
        bell.ring()
        await asyncio.wait_for(relay.heard.wait(), 5)
        relay.heard.clear()
        assert relay.rung == number
    running.cancel()
