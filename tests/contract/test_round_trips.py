"""How often the service asks PostgreSQL: once for all that comes together, and not at all for what it has seen."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import uuid4

import pytest

from guard.probes.http import HttpProvider
from guard.service.outcomes import BeginOutcome, Granted, Replayed, Settled
from guard.service.use_cases import UseCases
from guard.store.sql.engine import open_store
from tests.contract.given import TENANT
from tests.postgres_trips import Trips, counted
from twiceshy_contract.effects import BeginRequest, CommitRequest

HOT = "apply_"
MANY = 64


@pytest.fixture
def backend() -> str:
    """Only a server is asked over a connection."""
    return "postgresql"


@pytest.fixture
async def asking(database_url: str) -> AsyncIterator[tuple[UseCases, Trips]]:
    """The service over a database whose round trips are counted; it knows the run and the tool."""
    async with counted(database_url) as (url, trips):
        store = await open_store(url)
        async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
            await committed(guard, await begun(guard, ["warm"]))
            trips.asked.clear()
            yield guard, trips
        await store.close()


async def begun(guard: UseCases, titles: Sequence[str]) -> list[BeginOutcome]:
    """Begin calls all at once."""
    calls = [BeginRequest(tool="write", run="report", arguments={"title": title}, attempt=uuid4()) for title in titles]
    return await asyncio.gather(*(guard.begin(TENANT, call) for call in calls))


async def committed(guard: UseCases, outcomes: Sequence[BeginOutcome]) -> None:
    """Commit what was granted all at once."""
    granted = [outcome for outcome in outcomes if isinstance(outcome, Granted)]
    assert len(granted) == len(outcomes)
    settled = await asyncio.gather(
        *(
            guard.commit(
                TENANT,
                one.effect.intent.key,
                CommitRequest(attempt=one.token, fence=one.effect.life.fence, result="done"),
            )
            for one in granted
        )
    )
    assert all(isinstance(one, Settled) for one in settled)


async def test_fresh_begins_that_come_together_are_one_round_trip_and_their_commits_another(
    asking: tuple[UseCases, Trips],
) -> None:
    guard, trips = asking
    outcomes = await begun(guard, [f"page {number}" for number in range(MANY)])
    assert trips.of(HOT) == 1
    await committed(guard, outcomes)
    assert trips.of(HOT) == 2
    assert trips.besides(HOT) < MANY / 4, trips.asked  # what sweeps and looks ask now and then


async def test_calls_one_after_the_other_are_two_round_trips_each(asking: tuple[UseCases, Trips]) -> None:
    guard, trips = asking
    for number in range(MANY):
        await committed(guard, await begun(guard, [f"page {number}"]))
    assert trips.of(HOT) == 2 * MANY
    assert trips.besides(HOT) < MANY / 4, trips.asked


async def test_replays_of_what_this_process_has_seen_ask_the_database_nothing(asking: tuple[UseCases, Trips]) -> None:
    guard, trips = asking
    for _ in range(MANY):
        (replayed,) = await begun(guard, ["warm"])
        assert isinstance(replayed, Replayed)
    assert trips.of(HOT) == 0
    assert trips.besides(HOT) < MANY / 4, trips.asked
