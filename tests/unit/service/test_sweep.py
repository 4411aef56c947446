"""The sweep outlives whatever goes wrong."""

import asyncio
import json

import pytest

from guard.service.sweep import Sweep

pytestmark = pytest.mark.anyio


class Failing(Sweep):
    """A sweep whose first round fails."""

    def __init__(self) -> None:
        self.rounds = 0
        self.went_on = asyncio.Event()

    async def run_once(self) -> int:
        self.rounds += 1
        if self.rounds == 1:
            raise ValueError("a table was renamed")
        self.went_on.set()
        return 0


async def test_a_round_that_fails_is_logged_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    sweep = Failing()
    running = asyncio.create_task(sweep.run())
    await asyncio.wait_for(sweep.went_on.wait(), 10)
    running.cancel()
    assert [json.loads(record.getMessage())["event"] for record in caplog.records] == ["round_failed"]
