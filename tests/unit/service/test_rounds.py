"""What goes on for ever outlives whatever goes wrong, and does not spin."""

import asyncio

import pytest

from guard.ports.store import StoreUnavailable
from guard.service.rounds import each, for_ever

pytestmark = pytest.mark.anyio


async def test_a_database_that_is_away_is_tried_again() -> None:
    rounds: list[int] = []
    went_on = asyncio.Event()

    async def once() -> bool:
        rounds.append(1)
        if len(rounds) == 1:
            raise StoreUnavailable("away")
        went_on.set()
        return False

    running = asyncio.create_task(for_ever("sweep", once, 0.01))
    await asyncio.wait_for(went_on.wait(), 10)
    running.cancel()


async def test_an_item_that_fails_holds_up_none_of_the_others() -> None:
    done: list[int] = []

    async def do(item: int) -> None:
        if item == 2:
            raise ValueError("this one is broken")
        done.append(item)

    assert await each("sagas", [1, 2, 3], do) == 2
    assert done == [1, 3]


async def test_a_database_that_goes_away_ends_the_round() -> None:
    async def do(_: int) -> None:
        raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable):
        await each("sagas", [1, 2], do)
